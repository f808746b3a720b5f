package filetree

// Foreign returns the files of have that are neither wanted nor listed in its
// index: the user's own, by path. A have without an index has none.
func Foreign(have, want *Tree) []string {
	data, indexed := have.files[Index]
	own, err := parseIndex(data)
	if !indexed || err != nil {
		return nil
	}
	var out []string
	for name := range have.All() {
		_, listed := own[name]
		_, wanted := want.files[name]
		if !listed && !wanted && name != Index {
			out = append(out, name)
		}
	}
	return out
}
