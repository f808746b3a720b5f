//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package store

import (
	"errors"
	"os"
)

const noFollow = 0

// tryLock says no: without locks that end with their process, nobody can tell
// whether a file is in use, and every fetch begins anew.
func tryLock(*os.File) error { return errBusy }

// unlockFile does nothing: see tryLock.
func unlockFile(*os.File) {}

// errBusyLock is never returned here: directories are not locked.
var errBusyLock = errors.New("locked by another process")

// share does nothing: see tryLock.
func share(*os.File) error { return nil }
