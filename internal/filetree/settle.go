package filetree

import (
	"fmt"
	"maps"
)

// Settle returns what Write makes of a directory that holds have: want and its
// indices, and the files of the user's. The arguments are not modified.
func Settle(have, want *Tree) (*Tree, error) {
	own, err := have.own()
	if err != nil {
		return nil, err
	}
	want = want.withIndexes()
	out := New()
	var edits []string
	for name, data := range have.All() {
		switch own.stateOf(name, data, want) {
		case users:
			out.files[name] = data
		case claimed:
			return nil, fmt.Errorf("%s was not written by quayside: move it away or delete it", name)
		case edited:
			edits = append(edits, name)
		case stale, same: // what is wanted comes below
		}
	}
	if len(edits) > 0 {
		return nil, &EditedError{Paths: edits}
	}
	maps.Copy(out.files, want.files)
	return out, nil
}
