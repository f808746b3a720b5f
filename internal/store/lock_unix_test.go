//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"os"
	"syscall"
	"testing"
)

// TestUnlockWithInheritedFile releases a lock while another descriptor of the file is open, as in a child
// process between fork and exec.
func TestUnlockWithInheritedFile(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := tryLock(f); err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)

	unlockAndClose(f)
	unlock, err := Lock(dir, 0)
	if err != nil {
		t.Fatalf("once it is given up: %v", err)
	}
	unlock()
}
