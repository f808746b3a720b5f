//go:build !linux

package filetree

import "os"

// lock does nothing: there is no portable lock.
func lock(*os.File) error { return nil }

// syncTree does nothing: there is no portable sync of a file system.
func syncTree(*os.File) error { return nil }
