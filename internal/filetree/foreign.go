package filetree

// UserFiles returns the paths of the files in have that belong to the user, sorted: those that are
// neither in want nor in an index of have. If have has no valid index, it returns nil.
func UserFiles(have, want *Tree) []string {
	own, err := have.indexEntries()
	if len(own) == 0 || err != nil {
		return nil
	}
	var out []string
	for name, data := range have.All() {
		if own.stateOf(name, data, want) == userOwned {
			out = append(out, name)
		}
	}
	return out
}
