package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replaceable returns an error if dir must not be replaced: it is not empty and does not
// contain the regular file mark. The error uses what as the expected kind of directory,
// for example "an OCI layout". A missing directory is replaceable.
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
