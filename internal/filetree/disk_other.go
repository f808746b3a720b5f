//go:build !linux

package filetree

import "fmt"

// swap puts tmp in dir's place in two steps.
func swap(tmp, dir string) error {
	if err := replace(tmp, dir); err != nil {
		return fmt.Errorf("replacing %s: %w", dir, err)
	}
	return nil
}

// lock does nothing: there is no portable lock.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// syncTree leaves the time of writing to the system.
func syncTree(string) error { return nil }
