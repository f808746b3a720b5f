//go:build !linux

package filetree

// lock does nothing: there is no portable lock.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// syncTree does nothing: there is no portable sync of a file system.
func syncTree(string) error { return nil }
