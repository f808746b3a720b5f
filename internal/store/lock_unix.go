//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open file until it is unlocked or the process ends.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// unlockFile unlocks an open file, also if other processes have it open.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// errLockHeld is the error of tryLock for a lock held elsewhere. Any other error means a file
// system without locks.
const errLockHeld = syscall.EWOULDBLOCK

// lockShared converts the lock on f to a shared one, or waits for a shared lock. It returns
// nil on file systems without locks.
func lockShared(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOLCK) {
		return err
	}
	return nil
}
