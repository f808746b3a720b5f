package filetree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile puts data where name says and reports whether that changed
// anything. The new file is written beside the old one and takes its place in
// one step, with its mode, and with its owner and group where that is allowed;
// after an error the old one stands as it was.
func WriteFile(name string, data []byte) (written bool, err error) {
	return WriteFileMode(name, data, 0o644)
}

// WriteFileBelow is [WriteFile] that makes the directories above the file, too.
func WriteFileBelow(name string, data []byte) (written bool, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return false, err
	}
	return WriteFile(name, data)
}

// WriteFileMode is [WriteFile] where a file that is new has this mode.
func WriteFileMode(name string, data []byte, mode fs.FileMode) (written bool, err error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return false, err
		}
		return WriteFileMode(name, data, mode)
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
		_ = keepOwner(f, old) // whoever may not give it away has a file of his own
	}
	if err := errors.Join(f.Chmod(mode), f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
