package filetree

// Foreign returns the files of have that are neither wanted nor listed in its
// indices: the user's own, by path. A have without an index has none.
func Foreign(have, want *Tree) []string {
	own, err := have.own()
	if len(own) == 0 || err != nil {
		return nil
	}
	var out []string
	for name := range have.All() {
		_, listed := own[name]
		if _, wanted := want.files[name]; !listed && !wanted {
			out = append(out, name)
		}
	}
	return out
}
