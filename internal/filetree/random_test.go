package filetree

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawTree draws a tree of few files, so that two trees have many paths in common.
func drawTree(t *rapid.T) *Tree {
	out := New()
	for _, name := range []string{"x", "a/x", "a/y", "a/z", "a-b/x", "b/c/x", "b/c/y"} {
		if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
			if err := out.Add(name, []byte(strings.Repeat(fmt.Sprintf("%d\n", n), 3))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// merge simulates a Git merge of two branches with a common base. It merges an index line by line. If both
// sides changed the same line of an index, or the same file that is not an index, the result has both
// versions in conflict markers.
func merge(base, ours, theirs map[string]string) map[string]string {
	three := func(base, ours, theirs string) (string, bool) {
		switch {
		case ours == theirs, theirs == base:
			return ours, true
		case ours == base:
			return theirs, true
		}
		return fmt.Sprintf("<<<<<<< ours\n%s=======\n%s>>>>>>> theirs\n", ours, theirs), false
	}
	lines := func(text string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, " ")
			if strings.HasPrefix(line, "#") {
				name = line
			}
			out[name] = line
		}
		return out
	}
	keys := func(maps3 ...map[string]string) []string {
		all := map[string]string{}
		for _, m := range maps3 {
			maps.Copy(all, m)
		}
		return slices.Sorted(maps.Keys(all))
	}
	out := map[string]string{}
	for _, name := range keys(base, ours, theirs) {
		data, clean := three(base[name], ours[name], theirs[name])
		if !clean && isIndex(name) {
			data = ""
			b, o, t := lines(base[name]), lines(ours[name]), lines(theirs[name])
			for _, key := range keys(b, o, t) {
				line, _ := three(b[key], o[key], t[key])
				data += line
			}
		}
		if data != "" {
			out[name] = data
		}
	}
	return out
}

// TestRandom writes, edits, removes and merges trees in random order, and compares the directory
// with a model: the user's files and edits remain, everything else is as wanted.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp("", "filetree-random-") //nolint:usetesting // one for each check, not for the test
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		dir, n := filepath.Join(top, "out"), 0
		foreign := map[string]string{} // the user's files
		edits := map[string]string{}   // the user's changes to files of the program
		last, removed := New(), false
		write := func(t *rapid.T) {
			want, force := drawTree(t), rapid.Bool().Draw(t, "force")
			var hit []string
			for name, data := range edits {
				if got, ok := want.Get(name); !ok || string(got) != data {
					hit = append(hit, name)
				}
			}
			slices.Sort(hit)
			before := snapshot(t, dir)
			err := Write(dir, want, Force(force))
			var refused *EditedError
			switch {
			case len(hit) > 0 && !force:
				if !errors.As(err, &refused) || cmp.Diff(hit, refused.Paths) != "" {
					t.Fatalf("edited %q: got %v", hit, err)
				}
				if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
					t.Fatalf("refused, but written:\n%s", d)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			last, edits, removed = want, map[string]string{}, false
			model := maps.Clone(foreign)
			for name, data := range want.withIndexes().All() {
				model[name] = string(data)
			}
			if d := cmp.Diff(model, snapshot(t, dir)); d != "" {
				t.Fatalf("-model +written:\n%s", d)
			}
			have, err := Read(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			if changes := Diff(have, want); len(changes) > 0 {
				t.Fatalf("written, but differs: %v", changes)
			}
			if d := cmp.Diff(slices.Sorted(maps.Keys(foreign)), UserFiles(have, want)); d != "" {
				t.Fatalf("foreign: %s", d)
			}
		}
		write(t)
		t.Repeat(map[string]func(*rapid.T){
			"write": write,
			"edit": func(t *rapid.T) {
				if last.Len() == 0 {
					t.Skip("no files")
				}
				name := rapid.SampledFrom(slices.Sorted(maps.Keys(last.files))).Draw(t, "name")
				n++
				edits[name] = fmt.Sprintf("edit %d\n", n)
				store(t, dir, map[string]string{name: edits[name]})
			},
			"remove": func(t *rapid.T) {
				if last.Len() == 0 {
					t.Skip("no files")
				}
				name := rapid.SampledFrom(slices.Sorted(maps.Keys(last.files))).Draw(t, "name")
				delete(edits, name)
				removed = true
				_ = os.Remove(filepath.Join(dir, name)) // may be removed already
			},
			"foreign": func(t *rapid.T) {
				name := path.Join(rapid.SampledFrom([]string{"", "a", "b", "b/c", "d"}).Draw(t, "dir"), "mine")
				foreign[name] = rapid.StringN(1, 3, -1).Draw(t, "data")
				store(t, dir, map[string]string{name: foreign[name]})
			},
			"merge": func(t *rapid.T) {
				if len(edits) > 0 || removed {
					t.Skip("the tree was edited")
				}
				base := snapshot(t, dir)
				side := func(name string) map[string]string {
					branch := filepath.Join(top, name)
					store(t, branch, base)
					if err := Write(branch, drawTree(t)); err != nil {
						t.Fatal(err)
					}
					defer os.RemoveAll(branch)
					return snapshot(t, branch)
				}
				ours, theirs := side("ours"), side("theirs")
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				store(t, dir, merge(base, ours, theirs))
				want := drawTree(t)
				if err := Write(dir, want); err != nil {
					t.Fatal(err)
				}
				last = want
				model := maps.Clone(foreign)
				for name, data := range want.withIndexes().All() {
					model[name] = string(data)
				}
				if d := cmp.Diff(model, snapshot(t, dir)); d != "" {
					t.Fatalf("-model +written after a merge:\n%s", d)
				}
			},
		})
	})
}

// TestDisjoint checks that changes in different directories modify no common file, so that Git can merge them.
// A changed file must also change the index of its directory.
func TestDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawTree(t).withIndexes()
		changed := func(dirs ...string) map[string]bool {
			out, next := map[string]bool{}, New()
			other := drawTree(t)
			for _, from := range []*Tree{base, other} {
				for name, data := range from.All() {
					if !isIndex(name) && slices.Contains(dirs, path.Dir(name)) == (from == other) {
						next.files[name] = data
					}
				}
			}
			next = next.withIndexes()
			for name := range maps.Keys(mergeFiles(base.files, next.files)) {
				if string(base.files[name]) != string(next.files[name]) {
					out[name] = true
				}
			}
			return out
		}
		one, two := changed("a", "."), changed("b/c", "a-b")
		for name := range one {
			if two[name] {
				t.Errorf("both change %s", name)
			}
			if !one[path.Join(path.Dir(name), Index)] {
				t.Errorf("%s changes, but not its index", name)
			}
		}
	})
}

func mergeFiles(a, b map[string][]byte) map[string][]byte {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func snapshot(t *rapid.T, dir string) map[string]string {
	got, err := Read(os.DirFS(dir))
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, data := range got.All() {
		out[name] = string(data)
	}
	return out
}

func store(t *rapid.T, dir string, files map[string]string) {
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}
