//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open file until it is unlocked or the process ends. It does not wait.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// unlockFile unlocks an open file, even if other processes have the file open.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// errLockHeld is the error of tryLock if another caller or process holds the lock. Any other error means that
// the file system has no locks.
const errLockHeld = syscall.EWOULDBLOCK

// lockShared waits for a shared lock on f. If the caller holds an exclusive lock on f, this lock becomes
// shared. On file systems without locks it returns nil.
func lockShared(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOLCK) {
		return err
	}
	return nil
}
