//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/store"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file} {
		checkLocked(t, name)
	}
}

func checkLocked(t *testing.T, dir string) {
	t.Helper()
	unlock, err := store.Lock(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Lock(dir, 1); err == nil || !strings.Contains(err.Error(), dir+" is locked by another process") {
		t.Errorf("locked twice: %v", err)
	}
	unlock()
	again, err := store.Lock(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestShareDir checks that a directory is tidied only if no other process uses it.
func TestShareDir(t *testing.T) {
	dir, tidied := t.TempDir(), 0
	use := func() func() {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		release, err := store.ShareDir(f, func() error { tidied++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	first := use()
	second := use()
	if tidied != 1 {
		t.Errorf("tidied %d times while it is in use", tidied)
	}
	first()
	second()
	use()()
	if tidied != 2 {
		t.Errorf("tidied %d times", tidied)
	}
}
