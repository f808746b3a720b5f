//go:build unix

package filetree

import (
	"io/fs"
	"os"
	"syscall"
)

// noWait is the flag to open a FIFO without waiting for a writer.
const noWait = syscall.O_NONBLOCK

// keepOwner gives f the owner and group of old. If that is not permitted, keepOwner returns the error, but
// still tries to set the group.
func keepOwner(f *os.File, old fs.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	have, ok := is.Sys().(*syscall.Stat_t)
	want, both := old.Sys().(*syscall.Stat_t)
	if !ok || !both || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	err = f.Chown(int(want.Uid), int(want.Gid))
	if err != nil && have.Gid != want.Gid {
		_ = f.Chown(-1, int(want.Gid)) // ignore the error: set at least the group, if possible
	}
	return err
}
