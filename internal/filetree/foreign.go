package filetree

// Foreign returns the user's own files of have, by path: those that are neither wanted nor
// listed in its indices, and those that an earlier version left to the user, edited since.
// A have without an index has none.
func Foreign(have, want *Tree) []string {
	own, err := have.own()
	if len(own) == 0 || err != nil {
		return nil
	}
	var out []string
	for name, data := range have.All() {
		if own.stateOf(name, data, want) == users {
			out = append(out, name)
		}
	}
	return out
}
