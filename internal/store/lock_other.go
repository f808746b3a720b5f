//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package store

import (
	"errors"
	"os"
)

// errNoLock means that the system has no locks that end with the process.
var errNoLock = errors.New("file locks are not supported on this system")

// tryLock returns errNoLock: nothing is locked on this system.
func tryLock(*os.File) error { return errNoLock }

// unlockFile does nothing, because nothing is locked on this system.
func unlockFile(*os.File) {}

// errLockHeld is never returned on this system.
var errLockHeld = errors.New("locked by another process")

// lockShared does nothing, because nothing is locked on this system.
func lockShared(*os.File) error { return nil }
