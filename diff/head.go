package diff

import (
	"bytes"

	"github.com/quayside/quayside/lockfile"
)

// readHead reads a file that holds one definition up to its versions, as
// quayside writes it. ok is false for anything else: such a file has to be read
// whole. Definitions are nine tenths of a tree, and most are the same on both
// sides of a diff.
func readHead(f File, pins []lockfile.Pin) (o Object, ok bool) {
	beginning, _, found := bytes.Cut(f.Data, []byte("\n  versions:\n"))
	if !found || !bytes.Contains(beginning, []byte("kind: CustomResourceDefinition\n")) ||
		bytes.Contains(f.Data, []byte("\n---")) || bytes.Contains(f.Data, []byte("\n...")) {
		return Object{}, false
	}
	got, err := read(File{Path: f.Path, Data: beginning}, pins)
	if err != nil || len(got) != 1 {
		return Object{}, false
	}
	o = got[0]
	o.Raw, o.cut = f.Data, true
	serves := o.serves()
	return o, o.Ref().is(crdKind) && serves.Group != "" && serves.Kind != ""
}
