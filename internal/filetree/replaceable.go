package filetree

import (
	"errors"
	"fmt"
	"io/fs"
)

// CheckReplaceable returns an error if the content of a directory must not be replaced: it is not
// empty, and contains no regular file with the name mark. kind describes the expected directory for
// the message, such as "an OCI layout". A missing directory is replaceable.
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
