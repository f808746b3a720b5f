package filetree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	put := func(data string, want bool) {
		t.Helper()
		got, err := WriteFile(name, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("writing %q: changed %v, want %v", data, got, want)
		}
		if on, err := os.ReadFile(name); err != nil || string(on) != data {
			t.Errorf("on disk: %q, %v; want %q", on, err, data)
		}
	}
	put("one", true)
	put("one", false)
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	put("two", true)
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}

	// A symbolic link remains; its target is replaced.
	link := filepath.Join(filepath.Dir(name), "link")
	if err := os.Symlink("lock", link); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFile(link, []byte("three")); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "lock" {
		t.Errorf("link: %q, %v", to, err)
	}
	put("three", false)

	if _, err := WriteFile(filepath.Dir(name), nil); err == nil {
		t.Error("a directory was written to")
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 2 {
		t.Errorf("leftover files: %v, %v", entries, err)
	}
}

// TestLinksIntoGit checks that nothing is written through a link into the Git directory.
func TestLinksIntoGit(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"rendered": ".git", "report.md": ".git/config", "other": ".GIT"} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	dir := OpenDir(top, "repository")
	for _, name := range []string{"rendered/config", "report.md", "other/config"} {
		if _, err := dir.WriteFile(name, []byte("x")); err == nil || !strings.Contains(err.Error(), "points into .") {
			t.Errorf("%s: %v", name, err)
		}
		if err := dir.CheckLinks(name); err == nil {
			t.Errorf("%s: CheckLinks accepts it", name)
		}
	}
	if files, err := os.ReadDir(filepath.Join(top, ".git")); err != nil || len(files) > 0 {
		t.Errorf("in .git: %v, %v", files, err)
	}
}
