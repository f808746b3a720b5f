package filetree_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
)

// TestSettle compares Settle with Write in the same directory.
func TestSettle(t *testing.T) {
	first, second := filetree.New(), filetree.New()
	for name, data := range map[string]string{"a": "1", "d/b": "1", "gone": "1"} {
		check(t, first.Add(name, []byte(data)))
	}
	for name, data := range map[string]string{"a": "2", "d/b": "1", "new": "1"} {
		check(t, second.Add(name, []byte(data)))
	}
	dir := t.TempDir()
	check(t, filetree.Write(dir, first))
	check(t, os.WriteFile(dir+"/edited", []byte("mine"), 0o644))
	check(t, os.WriteFile(dir+"/user", []byte("mine"), 0o644))
	have, err := filetree.Read(os.DirFS(dir))
	check(t, err)

	settled, err := filetree.SimulateWrite(have, second)
	check(t, err)
	check(t, filetree.Write(dir, second))
	written, err := filetree.Read(os.DirFS(dir))
	check(t, err)
	if d := cmp.Diff(contents(written), contents(settled)); d != "" {
		t.Errorf("-written +settled\n%s", d)
	}

	check(t, os.WriteFile(dir+"/claimed", []byte("mine"), 0o644))
	have, err = filetree.Read(os.DirFS(dir))
	check(t, err)
	check(t, second.Add("claimed", []byte("1")))
	if _, err := filetree.SimulateWrite(have, second); err == nil || !strings.Contains(err.Error(), "claimed was not written by quayside") {
		t.Errorf("a file of the user's: %v", err)
	}
}

func contents(tree *filetree.Tree) map[string]string {
	out := map[string]string{}
	for name, data := range tree.All() {
		out[name] = string(data)
	}
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
