//go:build !linux

package filetree

import "os"

// lock does nothing, because there is no portable lock.
func lock(*os.File) error { return nil }

// takeLock returns false, because there is no portable lock.
func takeLock(*os.File) bool { return false }

// syncTree does nothing, because there is no portable way to sync a file system.
func syncTree(*os.File) error { return nil }
