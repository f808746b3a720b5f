package store

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Lock keeps other processes, and other callers in this one, from locking a
// directory or a file until unlock is called or the process dies. It waits for
// them so long, and then says so. No file is made. Where the file system has no
// locks nothing is locked.
func Lock(name string, wait time.Duration) (unlock func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	unlock = func() { letGo(f) }
	for until := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		switch err := tryLock(f); {
		case !errors.Is(err, errBusyLock):
			return unlock, nil
		case time.Now().After(until):
			unlock()
			return nil, fmt.Errorf("another process is at work on %s: try again when it is done", name)
		}
	}
}

// ShareDir says that a directory is in use until release is called or the
// process dies. Where nobody else says so, tidy is called first: what is left
// in the directory then is of no use to anybody.
func ShareDir(dir string, tidy func() error) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if tryLock(f) == nil {
		err = tidy()
	}
	if err == nil {
		err = share(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { letGo(f) }, nil
}

// letGo gives up the lock on a file that was only read, and closes it. Closing
// alone is not enough: a process that is being started has the file, and with it the
// lock, for as long as it takes to become another program.
func letGo(f *os.File) {
	unlockFile(f)
	_ = f.Close()
}
