//go:build !linux

package filetree

import "os"

// lock does nothing, because there is no portable lock.
func lock(*os.File) error { return nil }

// isLocked returns false, because there is no portable lock.
func isLocked(*os.File) bool { return false }

// syncTree does nothing, because there is no portable way to sync a file system.
func syncTree(*os.File) error { return nil }
