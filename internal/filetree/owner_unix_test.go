package filetree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listAccess returns the mode, owner and group of dir and everything below it.
func listAccess(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		st := info.Sys().(*syscall.Stat_t)
		got[rel] = fmt.Sprint(info.Mode(), st.Uid, st.Gid)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// setAccess changes owner, group and mode of a file. A negative uid or gid is ignored.
func setAccess(t *testing.T, name string, uid, gid int, mode fs.FileMode) {
	t.Helper()
	if err := os.Lchown(name, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// TestWriteKeepsAccess writes over a shared tree. Existing files and directories keep their modes, including
// the setgid bit. If root writes, they also keep their owners and groups. New files and directories inherit the
// group of a setgid directory.
func TestWriteKeepsAccess(t *testing.T) {
	uid, gid := -1, -1
	if os.Getuid() == 0 {
		uid, gid = 1234, 5678
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"a": "1", "d/x": "1", "d/e/y": "1", "d/same": "1", "secret": "1"})); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "mine", "m")
	setAccess(t, dir, uid, gid, fs.ModeSetgid|0o775)
	setAccess(t, filepath.Join(dir, "d"), uid, gid, fs.ModeSetgid|0o750)
	setAccess(t, filepath.Join(dir, "d", "e"), uid, gid, fs.ModeSticky|0o777)
	setAccess(t, filepath.Join(dir, "a"), uid, gid, 0o640)
	setAccess(t, filepath.Join(dir, "secret"), uid, gid, 0)
	setAccess(t, filepath.Join(dir, "d", "same"), uid, gid, 0o664)
	want := listAccess(t, dir)
	own := listAccess(t, t.TempDir())
	if os.Getuid() != 0 {
		setAccess(t, filepath.Join(dir, "secret"), uid, gid, 0o600) // otherwise it cannot be read
		want = listAccess(t, dir)
	}
	if err := Write(dir, tree(t, map[string]string{"a": "2", "d/x": "2", "d/e/y": "2", "d/same": "1", "secret": "2", "d/new/z": "2"})); err != nil {
		t.Fatal(err)
	}
	got := listAccess(t, dir)
	if gid < 0 {
		gid = os.Getgid()
	}
	want["d/new"] = fmt.Sprint(fs.ModeDir|fs.ModeSetgid|0o755, os.Getuid(), gid)
	want["d/new/"+Index] = fmt.Sprint(fs.FileMode(0o644), os.Getuid(), gid)
	want["d/new/z"] = fmt.Sprint(fs.FileMode(0o644), os.Getuid(), gid)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got, of this process %v)\n%s", own, d)
	}

	file := filepath.Join(dir, "a")
	if _, err := WriteFile(file, []byte("3")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, listAccess(t, dir)); d != "" {
		t.Errorf("WriteFile (-want +got)\n%s", d)
	}
}

// TestNewTreeInSharedDirectory writes a new tree in a setgid directory.
func TestNewTreeInSharedDirectory(t *testing.T) {
	parent := t.TempDir()
	gid := os.Getgid()
	if os.Getuid() == 0 {
		gid = 5678
	}
	setAccess(t, parent, -1, gid, fs.ModeSetgid|0o775)
	dir := filepath.Join(parent, "out")
	if err := Write(dir, tree(t, map[string]string{"d/x": "1"})); err != nil {
		t.Fatal(err)
	}
	of := func(mode fs.FileMode) string { return fmt.Sprint(mode, os.Getuid(), gid) }
	folder, file := of(fs.ModeDir|fs.ModeSetgid|0o755), of(0o644)
	if d := cmp.Diff(map[string]string{".": folder, "d": folder, "d/x": file, Index: file, "d/" + Index: file}, listAccess(t, dir)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestDirectoryOfAnother checks that directories of the user root keep their owner if another user writes into them.
func TestDirectoryOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can write as two users")
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	if err := Write(dir, generationTree(1)); err != nil {
		t.Fatal(err)
	}
	want := listAccess(t, dir)
	for name := range want {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			setAccess(t, filepath.Join(dir, name), -1, 5678, fs.ModeSetgid|0o777)
		}
	}
	setAccess(t, parent, -1, -1, 0o777)
	setAccess(t, filepath.Dir(parent), -1, -1, 0o755)
	want = listAccess(t, dir)
	cmd := childCommand(t, dir, "FILETREE_ONCE=1")
	exe := filepath.Join(parent, "exe") // the test binary is in a directory that only its user can read
	if data, err := os.ReadFile(cmd.Path); err != nil || os.WriteFile(exe, data, 0o755) != nil {
		t.Fatal("copying the test", err)
	}
	cmd.Path = exe
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := listAccess(t, dir)
	for name := range want {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() && got[name] != want[name] {
			t.Errorf("%s is %s, want %s", name, got[name], want[name])
		}
	}
	if have := files(t, dir); have["d0/f0-0"] == "" || have["d0/f0-0"][0] != 'a' {
		t.Errorf("not written: %q", have["d0/f0-0"])
	}
}
