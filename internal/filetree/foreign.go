package filetree

// UserFiles returns the sorted paths of the user's files in have: files that are neither in
// want nor in the indices of have, and edited files that an earlier version handed over to
// the user. It returns nil if have has no index, or an invalid one.
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
