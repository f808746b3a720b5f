package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replaceable refuses a directory that is somebody else's and must not be made anew:
// one that holds something, but not the file by which what is made there is known. What
// that is, "an OCI layout", the error says. A directory that is not there is nobody's.
func Replaceable(dir, mark, what string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := os.Lstat(filepath.Join(dir, mark)); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the directory is not empty and not %s", what)
	}
	return nil
}
