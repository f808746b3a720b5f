package filetree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes data to the file name and reports whether the content changed. It
// writes a temporary file in the same directory and renames it to name. The new file
// keeps the mode of the old one, and its owner and group if permitted. After an error the
// old file is unchanged.
func WriteFile(name string, data []byte) (written bool, err error) {
	mode := fs.FileMode(0o644)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return false, err
		}
		return WriteFile(name, data)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a regular file", name)
	default:
		mode = info.Mode().Perm()
		if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
			return false, nil
		}
	}
	if err := replaceFile(name, data, mode, info); err != nil {
		return false, fmt.Errorf("writing %s: %w", name, err)
	}
	return true, nil
}

// WriteFileBelow creates missing parent directories and calls [WriteFile].
func WriteFileBelow(name string, data []byte) (written bool, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return false, err
	}
	return WriteFile(name, data)
}

func replaceFile(name string, data []byte, mode fs.FileMode, old fs.FileInfo) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if old != nil {
		_ = keepOwner(f, old) // without permission, the current user owns the new file
	}
	if err := errors.Join(f.Chmod(mode), f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
