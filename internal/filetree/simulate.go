package filetree

import (
	"fmt"
	"maps"
)

// SimulateWrite returns the result of Write to a directory with the files of have: want with its
// indices, and the user's files. It does not modify its arguments. Like Write, it rejects
// user files at wanted paths, and edited files with an [*EditedError].
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
		case stale, same: // replaced, removed or copied from want below
		}
	}
	if len(edits) > 0 {
		return nil, &EditedError{Paths: edits}
	}
	maps.Copy(out.files, want.files)
	return out, nil
}
