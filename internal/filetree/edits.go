package filetree

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Edits is the difference between two trees.
type Edits struct {
	files map[string][]byte // path → new content; nil if removed
	gaps  map[gap][]string  // position in an index → paths added or removed there, sorted
}

// gap is a position between two lines of an index, given as the number of files before the position.
type gap struct {
	dir    string
	before int
}

// EditsOf returns the difference between base and next, two trees without index files.
func EditsOf(base, next *Tree) *Edits {
	e := &Edits{files: map[string][]byte{}, gaps: map[gap][]string{}}
	for name, data := range next.files {
		if old, there := base.files[name]; !there || !bytes.Equal(old, data) {
			e.files[name] = append([]byte{}, data...)
		}
	}
	for name := range base.files {
		if _, there := next.files[name]; !there {
			e.files[name] = nil
		}
	}
	e.addGaps(base)
	return e
}

// addGaps records the positions at which files are added to an index or removed from it. For a removed file, it
// records the positions before and after the file.
func (e *Edits) addGaps(base *Tree) {
	in := map[string][]string{} // directory → files of base in it
	for name := range base.Names() {
		in[path.Dir(name)] = append(in[path.Dir(name)], name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		dir := path.Dir(name)
		i, there := slices.BinarySearchFunc(in[dir], name, strings.Compare)
		if there && e.files[name] != nil {
			continue
		}
		e.gaps[gap{dir, i}] = append(e.gaps[gap{dir, i}], name)
		if there {
			e.gaps[gap{dir, i + 1}] = append(e.gaps[gap{dir, i + 1}], name)
		}
	}
}

// MergesCleanly reports whether Git can merge the trees that result from e and o, including their index
// files, without a conflict. e and o must start from the same tree. There is a conflict in three cases:
//   - Both edit a file differently.
//   - Both add or remove different files at the same position of an index.
//   - Both remove the same file, because Git may treat it as renamed on one side.
func (e *Edits) MergesCleanly(o *Edits) bool {
	for name, data := range e.files {
		if other, both := o.files[name]; both && (data == nil || !sameFile(data, other)) {
			return false
		}
	}
	for at, names := range e.gaps {
		if others, both := o.gaps[at]; both && !slices.Equal(names, others) {
			return false
		}
	}
	return true
}

// sameFile reports whether two edits of a file are equal. nil means that the file is removed.
func sameFile(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Apply applies the edits to the tree have. The resulting tree has neither index files nor files of the
// user. base is the tree that the edits start from. If an edited file differs between have and base, Apply
// returns an error.
func (e *Edits) Apply(base, have *Tree) (*Tree, error) {
	own, err := have.indexEntries()
	if err != nil {
		return nil, err
	}
	out := New()
	for name := range own {
		if data, there := have.files[name]; there && !isIndex(name) {
			out.files[name] = data
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		old, expected := base.files[name]
		got, there := out.files[name]
		if there != expected || !bytes.Equal(got, old) {
			return nil, fmt.Errorf("%s differs from its expected content before the change", name)
		}
		if data := e.files[name]; data != nil {
			out.files[name] = data
		} else {
			delete(out.files, name)
		}
	}
	return out, nil
}
