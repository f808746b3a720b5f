package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"
)

// TestStampDetectsChanges checks that each change of a directory changes its stamp.
func TestStampDetectsChanges(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "sub", "a")
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o777))
	must(t, os.WriteFile(name, []byte("one"), 0o666))
	old := time.Unix(1_000_000, 500)
	must(t, os.Chtimes(name, old, old))
	before := newStamp(t, dir)
	if got := newStamp(t, dir); got.sum() != before.sum() {
		t.Error("the same files have different stamps")
	}
	for _, c := range []struct {
		name        string
		change      func() error
		needsInodes bool // cannot be detected without inodes
	}{
		{"size", func() error { return os.WriteFile(name, []byte("longer"), 0o666) }, false},
		{"time", func() error { return os.Chtimes(name, old, old.Add(1)) }, false},
		{"added file", func() error { return os.WriteFile(name+"b", nil, 0o666) }, false},
		{"name", func() error { return os.Rename(name+"b", name+"c") }, false},
		{"removed file", func() error { return os.Remove(name + "c") }, false},
		{"only content", func() error {
			overwrite(t, name, []byte("LONGER"))
			return nil
		}, runtime.GOOS != "linux"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.needsInodes {
				t.Skip("inodes are not used on this system")
			}
			must(t, c.change())
			after := newStamp(t, dir)
			if after.sum() == before.sum() {
				t.Error("the change is not detected")
			}
			before = after
		})
	}
}

// TestStampSettled checks that a stamp is settled if the newest file is old enough to detect every
// later change.
func TestStampSettled(t *testing.T) {
	now := time.Unix(2_000_000_000, 7)
	for _, c := range []struct {
		name  string
		stamp stamp
		want  bool
	}{
		{"long ago", stamp{taken: now, newest: now.Add(-time.Hour)}, true},
		{"just now", stamp{taken: now, newest: now.Add(-time.Millisecond)}, false},
		{"in the future", stamp{taken: now, newest: now.Add(time.Hour)}, false},
		{"a second ago", stamp{taken: now, newest: now.Add(-time.Second)}, true},
		{"a second ago, in whole seconds", stamp{taken: now, newest: now.Add(-time.Second), coarse: true}, false},
		{"without times", stamp{taken: now}, false}, // a file system without modification times
		{"symbolic links", stamp{taken: now, newest: now.Add(-time.Hour), links: true}, false},
	} {
		if got := c.stamp.isSettled(); got != c.want {
			t.Errorf("%s: isSettled returns %v", c.name, got)
		}
	}
	s, err := stampOf(fstest.MapFS{"link": {Mode: fs.ModeSymlink, Data: []byte("elsewhere")}}, "", now)
	if err != nil || s.isSettled() {
		t.Errorf("a directory with a symbolic link is settled (%v)", err)
	}
}

func newStamp(t *testing.T, dir string) stamp {
	t.Helper()
	s, err := stampOf(os.DirFS(dir), "", time.Now())
	must(t, err)
	return s
}

// overwrite replaces the content of a file and restores its modification time. It repeats this
// until the change time of the inode differs, because that clock advances in ticks.
func overwrite(t *testing.T, name string, content []byte) {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	inode, before := identity(info)
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		must(t, os.WriteFile(name, content, 0o666))
		must(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
		changed, err := os.Stat(name)
		must(t, err)
		if _, after := identity(changed); inode == 0 || !after.Equal(before) {
			return
		}
	}
	t.Fatalf("the change time of the inode of %s does not change", name)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
