package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Lock locks a directory or file by name. See [LockFile].
func Lock(name string, wait time.Duration) (unlock func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return LockFile(f, wait)
}

// LockFile locks an open directory or file against other processes and other callers in this process, until
// unlock is called or the process ends. If another caller still holds the lock after the time wait,
// LockFile returns an error. It creates no file. On file systems without locks, it locks nothing. unlock
// closes f. If LockFile fails, LockFile closes f.
func LockFile(f *os.File, wait time.Duration) (unlock func(), err error) {
	unlock = func() { unlockAndClose(f) }
	for until := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		switch err := tryLock(f); {
		case !errors.Is(err, errLockHeld):
			return unlock, nil
		case time.Now().After(until):
			unlock()
			return nil, fmt.Errorf("%s is locked by another process: try again later", f.Name())
		}
	}
}

// OpenLock opens the lock file with this name in the store. It creates the file if it does not
// exist.
func (s *Store) OpenLock(name string) (*os.File, error) {
	dir := filepath.Join(s.dir, "locks")
	if s.dir == "" {
		return nil, errors.New("no cache directory")
	}
	if err := os.MkdirAll(dir, dirPerm); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, strings.TrimPrefix(DigestOf([]byte(name)), "sha256:")), os.O_RDWR|os.O_CREATE, 0o600)
}

// ShareDir marks an open directory as in use, until release is called or the process ends. If no other process
// uses the directory, ShareDir first calls tidy, which removes leftover files. release closes f. If ShareDir
// fails, ShareDir closes f.
func ShareDir(f *os.File, tidy func() error) (release func(), err error) {
	if tryLock(f) == nil {
		err = tidy()
	}
	if err == nil {
		err = lockShared(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { unlockAndClose(f) }, nil
}

// unlockAndClose unlocks and closes f. Closing alone is not enough: between fork and exec, a child process has
// the file open and thereby keeps the lock.
func unlockAndClose(f *os.File) {
	unlockFile(f)
	_ = f.Close()
}
