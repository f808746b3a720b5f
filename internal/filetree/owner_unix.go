//go:build unix

package filetree

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives the file or directory at name the owner and group of old. It
// fails where the process may not.
func keepOwner(name string, old fs.FileInfo) error {
	is, err := os.Lstat(name)
	if err != nil {
		return err
	}
	have, ok := is.Sys().(*syscall.Stat_t)
	want, both := old.Sys().(*syscall.Stat_t)
	if !ok || !both || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	err = os.Lchown(name, int(want.Uid), int(want.Gid))
	if err != nil && have.Gid != want.Gid {
		_ = os.Lchown(name, -1, int(want.Gid)) // the group at least
	}
	return err
}
