package filetree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes an exclusive lock on an open directory. Closing the directory releases it. On a file
// system without locks it does nothing.
func lock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		return nil
	}
	return err
}

// takeLock waits for an exclusive lock on an open directory. It returns false on a file system without locks.
func takeLock(dir *os.File) bool { return unix.Flock(int(dir.Fd()), unix.LOCK_EX) == nil }

// syncTree writes the file system that contains an open directory to disk.
func syncTree(dir *os.File) error {
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("syncing the file system: %w", err)
	}
	return nil
}
