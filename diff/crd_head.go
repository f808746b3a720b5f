package diff

import (
	"bytes"

	"github.com/quayside/quayside/lockfile"
)

// parseHead parses a file with a single CRD, as quayside writes it, up to spec.versions. It returns
// false for any other file. This saves time: about nine tenths of a tree are CRDs, and most of them
// are the same before and after.
func parseHead(f File, pins []lockfile.Pin) (o Object, ok bool) {
	beginning, _, found := bytes.Cut(f.Data, []byte("\n  versions:\n"))
	if !found || !bytes.Contains(beginning, []byte("kind: CustomResourceDefinition\n")) ||
		bytes.Contains(f.Data, []byte("\n---")) || bytes.Contains(f.Data, []byte("\n...")) {
		return Object{}, false
	}
	got, err := parseObjects(File{Path: f.Path, Data: beginning}, pins)
	if err != nil || len(got) != 1 {
		return Object{}, false
	}
	o = got[0]
	o.Raw, o.headOnly = f.Data, true
	serves := o.definedKind()
	return o, o.Key().Is(crdKind) && serves.Group != "" && serves.Kind != ""
}
