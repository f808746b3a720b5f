//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package store

import (
	"errors"
	"os"
)

// errNoLock is returned on systems without locks that end with the process.
var errNoLock = errors.New("file locks are not supported on this system")

// tryLock locks nothing.
func tryLock(*os.File) error { return errNoLock }

// unlockFile does nothing: see tryLock.
func unlockFile(*os.File) {}

// errLockHeld is never returned here: directories are not locked.
var errLockHeld = errors.New("locked by another process")

// lockShared does nothing: see tryLock.
func lockShared(*os.File) error { return nil }
