package filetree

import (
	"bytes"
	"fmt"
)

// Settle returns what Write makes of a directory that holds have: want and its
// index, the starters that stand already, and the files of the user's. The
// arguments are not modified.
func Settle(have, want *Tree) (*Tree, error) {
	own, err := parseIndex(have.files[Index])
	if err != nil {
		return nil, err
	}
	out := New()
	for name, data := range have.All() {
		if name == Index {
			continue
		}
		digest, listed := own[name]
		wanted, keeps := want.files[name]
		switch {
		case keeps && want.starters[name]:
			out.files[name] = data
		case keeps && !listed && !bytes.Equal(data, wanted):
			return nil, fmt.Errorf("%s was not written by quayside: move it away or delete it", name)
		case !keeps && (!listed || digest != "" && digest != sum(data)):
			out.files[name] = data
		}
	}
	for name, data := range want.files {
		if _, kept := out.files[name]; !kept {
			out.files[name] = data
		}
	}
	out.files[Index] = formatIndex(want)
	return out, nil
}
