package filetree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckReplaceable(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string // "": replaceable
	}{
		"not there":             {func(string) error { return nil }, ""},
		"empty":                 {func(dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		"ours":                  {func(dir string) error { return os.CopyFS(dir, os.DirFS(marked(t, "SUMS"))) }, ""},
		"user files":            {func(dir string) error { return os.CopyFS(dir, os.DirFS(marked(t, "thesis"))) }, "the directory is not empty and not a release"},
		"a directory as a mark": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "SUMS"), 0o755) }, "the directory is not empty and not a release"},
		"a file":                {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			err := CheckReplaceable(os.DirFS(dir), "SUMS", "a release")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// marked returns a directory that contains only a file with this name.
func marked(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
