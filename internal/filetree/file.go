package filetree

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// WriteFile writes data to a file atomically, through a temporary file in the same directory.
// written is false if the file already has this content. The file keeps its mode and, if permitted,
// its owner and group. Missing directories are created. After an error, the old file is unchanged.
func (d Dir) WriteFile(name string, data []byte) (written bool, err error) {
	full, err := d.resolveName(name)
	if err != nil {
		return false, err
	}
	top, err := d.root.open()
	if err != nil {
		return false, err
	}
	real, err := d.root.resolveLinks(full)
	if err == nil {
		written, err = replaceFile(top, real, data)
	}
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", d.displayPath(name), causeOf(err))
	}
	return written, nil
}

// WriteFile is [Dir.WriteFile] for a file that the user has named.
func WriteFile(name string, data []byte) (written bool, err error) {
	dir, base := NamedFile(name)
	return dir.WriteFile(base, data)
}

// ReadFile returns the content of a file that the user has named.
func ReadFile(name string) ([]byte, error) {
	dir, base := NamedFile(name)
	data, err := fs.ReadFile(dir.FS(), base)
	if at := new(fs.PathError); errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	}
	return data, err
}

func replaceFile(top *os.Root, name string, data []byte) (written bool, err error) {
	mode := fs.FileMode(0o644)
	old, err := top.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := top.MkdirAll(path.Dir(name), 0o755); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case !old.Mode().IsRegular():
		return false, errors.New("not a regular file")
	}
	if dir, err := top.Open(path.Dir(name)); err == nil { // a directory without read permission is not cleaned
		defer dir.Close() // releases the lock
		if takeLock(dir) {
			removeLeftovers(top, dir, name)
		}
	}
	if old != nil {
		mode = old.Mode().Perm()
		if have, err := top.ReadFile(name); err == nil && bytes.Equal(have, data) {
			return false, nil
		}
	}
	f, temporary, err := CreateTemp(top, path.Dir(name), "."+path.Base(name)+".")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = top.Remove(temporary)
		}
	}()
	_, err = f.Write(data)
	if err == nil && old != nil {
		_ = keepOwner(f, old) // ignore the error: without permission, the current user owns the new file
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	return true, top.Rename(temporary, name)
}

// removeLeftovers removes the temporary files that killed runs left behind for a file in dir. The caller must
// have locked dir, so that the temporary files do not belong to another running process.
func removeLeftovers(top *os.Root, dir *os.File, name string) {
	entries, _ := dir.ReadDir(-1) // ignore errors: leftovers do no harm
	for _, e := range entries {
		suffix, is := strings.CutPrefix(e.Name(), "."+path.Base(name)+".")
		if is && e.Type().IsRegular() && len(suffix) == len(rand.Text()) && strings.Trim(suffix, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
			_ = top.Remove(path.Join(path.Dir(name), e.Name()))
		}
	}
}

// CreateTemp creates a file in directory dir of top, with a new name that begins with prefix.
func CreateTemp(top *os.Root, dir, prefix string) (f *os.File, name string, err error) {
	name = path.Join(dir, prefix+rand.Text())
	f, err = top.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, name, err
}

// CheckReplaceable returns an error if the content of a directory must not be replaced. A directory is
// replaceable if it is missing, is empty, or contains a regular file with the name mark. kind describes the
// expected directory for the message, such as "an OCI layout".
func CheckReplaceable(dir fs.FS, mark, kind string) error {
	entries, err := fs.ReadDir(dir, ".")
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := fs.Lstat(dir, mark); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the directory is not empty and not %s", kind)
	}
	return nil
}
