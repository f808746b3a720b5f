package filetree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes an exclusive lock on an open directory, until it is closed. It does nothing on a
// file system without locks.
func lock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		return nil
	}
	return err
}

// syncTree flushes the file system of an open directory to disk.
func syncTree(dir *os.File) error {
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("syncing the file system: %w", err)
	}
	return nil
}
