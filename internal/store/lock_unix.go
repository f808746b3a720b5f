//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open file until it is unlocked, or its process dies.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// unlockFile gives up the lock on an open file, whoever else has it open.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// errBusyLock is what tryLock says where another holds the lock; any other
// error is about a file system without locks.
const errBusyLock = syscall.EWOULDBLOCK

// share makes a lock of f one that others may share, or waits for one.
func share(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOLCK) {
		return err
	}
	return nil
}
