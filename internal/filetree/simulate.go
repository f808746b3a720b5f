package filetree

import (
	"fmt"
	"maps"
)

// SimulateWrite returns the tree after writing want to a directory that contains have: want with
// its index files, and the files of the user. It does not modify its arguments. As in Write, a
// user's file at a wanted path is an error, and edited files are an [*EditedError].
func SimulateWrite(have, want *Tree) (*Tree, error) {
	own, err := have.indexEntries()
	if err != nil {
		return nil, err
	}
	want = want.withIndexes()
	out := New()
	var edits []string
	for name, data := range have.All() {
		switch own.stateOf(name, data, want) {
		case userOwned:
			out.files[name] = data
		case claimed:
			return nil, fmt.Errorf("%s was not written by quayside: move it away or delete it", name)
		case edited:
			edits = append(edits, name)
		case stale, same: // removed, or replaced by the file in want, below
		}
	}
	if len(edits) > 0 {
		return nil, &EditedError{Paths: edits}
	}
	maps.Copy(out.files, want.files)
	return out, nil
}
