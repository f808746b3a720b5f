package filetree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIndices pins the format of the indices: one per directory with files, and one for the
// root.
func TestIndices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"b/c/y": "", "b/c/a b": "1", "b/d/s": ""})); err != nil {
		t.Fatal(err)
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for name, want := range map[string]string{
		"":    "# Root of the tree.\n",
		"b":   "absent",
		"b/c": "## a b\na b " + sum([]byte("1")) + "\n#\n## y\ny " + empty + "\n#\n",
		"b/d": "## s\ns " + empty + "\n#\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name, Index))
		if want != "absent" {
			want = indexHeader + want
		}
		if err != nil && want != "absent" || err == nil && string(got) != want {
			t.Errorf("%q: got %v %q, want %q", name, err, got, want)
		}
	}
}

// TestEdited writes a tree over an earlier tree with the file "d/x" (content "1"). In between, the file was
// edited, or its index was merged. The file counts as edited if it differs from both its digest in the index
// and the wanted file.
func TestEdited(t *testing.T) {
	list := func(lines ...string) string { return indexHeader + strings.Join(lines, "\n") + "\n" }
	line := func(data string) string { return "x " + sum([]byte(data)) }
	for name, c := range map[string]struct {
		data, index string // "": unchanged; "-": removed
		want        map[string]string
		edited      bool
	}{
		"edited":                         {"2", "", map[string]string{"d/x": "1"}, true},
		"edited, another version wanted": {"2", "", map[string]string{"d/x": "3"}, true},
		"edited, no longer wanted":       {"2", "", map[string]string{"y": "1"}, true},
		"edited to the wanted content":   {"2", "", map[string]string{"d/x": "2"}, false},
		"emptied by hand":                {"", "", map[string]string{"d/x": "1"}, true},
		"removed":                        {"-", "", map[string]string{"d/x": "1"}, false},
		"another version wanted":         {"1", "", map[string]string{"d/x": "2"}, false},
		"merged: a line of the other":    {"2", list(line("1")), map[string]string{"d/x": "2"}, false},
		"merged: a conflict":             {"4", list("<<<<<<< a", line("2"), "=======", line("3"), ">>>>>>> b"), map[string]string{"d/x": "5"}, false},
		"merged: a conflict next to it":  {"4", list("<<<<<<< a", "w "+sum(nil), "=======", ">>>>>>> b", line("1")), map[string]string{"d/x": "5"}, true},
		"merged: both lines":             {"4", list(line("2"), line("3")), map[string]string{"d/x": "5"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := Write(dir, tree(t, map[string]string{"d/x": "1", "d/other": "1"})); err != nil {
				t.Fatal(err)
			}
			if c.data == "-" {
				if err := os.Remove(filepath.Join(dir, "d/x")); err != nil {
					t.Fatal(err)
				}
			} else {
				putFile(t, dir, "d/x", c.data)
			}
			if c.index != "" {
				putFile(t, dir, "d/"+Index, c.index)
			}
			before, want := contentsOf(t, dir), tree(t, c.want)
			have, err := Read(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			_, settleErr := SimulateWrite(have, want)
			err = Write(dir, want)
			for _, err := range []error{err, settleErr} {
				var refused *EditedError
				if c.edited && (!errors.As(err, &refused) || cmp.Diff([]string{"d/x"}, refused.Paths) != "") || !c.edited && err != nil {
					t.Errorf("edited: %v, got %v", c.edited, err)
				}
			}
			if d := cmp.Diff(before, contentsOf(t, dir)); c.edited && d != "" {
				t.Errorf("refused, but written (-before +after):\n%s", d)
			}
			if err := Write(dir, want, Force(true)); err != nil {
				t.Fatal(err)
			}
			checkUnchanged(t, dir, want)
		})
	}
}

// TestEditedToALink checks that a file counts as edited if a symbolic link has replaced it.
func TestEditedToALink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := tree(t, map[string]string{"x": ""})
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "x")), os.Symlink("y", filepath.Join(dir, "x"))); err != nil {
		t.Fatal(err)
	}
	var refused *EditedError
	if err := Write(dir, want); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	if err := Write(dir, want, Force(true)); err != nil {
		t.Error(err)
	}
	checkUnchanged(t, dir, want)
}

// TestTreeInATree checks that Write ignores a tree in a subdirectory.
func TestTreeInATree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := tree(t, map[string]string{"x": "1", "a/x": "1"})
	for _, err := range []error{
		Write(dir, want),
		Write(filepath.Join(dir, "a/other"), tree(t, map[string]string{"x": "1", "d/x": "1"})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := contentsOf(t, dir)
	checkUnchanged(t, dir, want)
	want = tree(t, map[string]string{"x": "1", "a/x": "2"})
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	before["a/x"], before["a/"+Index] = "2", strings.ReplaceAll(before["a/"+Index], sum([]byte("1")), sum([]byte("2")))
	if d := cmp.Diff(before, contentsOf(t, dir)); d != "" {
		t.Error(d)
	}
	checkUnchanged(t, dir, want)
}

// TestDiffOfIndices checks that Diff lists a changed index only if no other file of its directory changes.
func TestDiffOfIndices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := tree(t, map[string]string{"a/x": "1", "b/x": "1", "c/x": "1"})
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "a/"+Index, indexHeader+"x "+sum([]byte("2"))+"\n")
	putFile(t, dir, "b/x", "2")
	putFile(t, dir, "b/"+Index, indexHeader)
	if err := os.Remove(filepath.Join(dir, "c", Index)); err != nil {
		t.Fatal(err)
	}
	have, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]FileChange{{"a/" + Index, Modified}, {"b/x", Modified}, {"c/" + Index, Missing}}, Diff(have, want)); d != "" {
		t.Error(d)
	}
}

func contentsOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	got, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, data := range got.All() {
		out[name] = string(data)
	}
	return out
}

// checkUnchanged checks that a Write of want would change nothing.
func checkUnchanged(t testing.TB, dir string, want *Tree) {
	t.Helper()
	have, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if changes := Diff(have, want); len(changes) > 0 {
		t.Errorf("differs: %v", changes)
	}
	p, err := newPlan(OpenUserDir(dir), want)
	if err != nil || !p.done {
		t.Errorf("would be written again: %v", err)
	}
	if p != nil {
		p.close()
	}
}
