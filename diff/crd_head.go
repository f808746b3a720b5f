package diff

import (
	"bytes"

	"github.com/quayside/quayside/lockfile"
)

// parseHead parses a file in quayside's format with a single CRD, up to spec.versions. It returns
// false for other files. This saves time, because about nine tenths of a tree are CRDs, and most of
// them are equal on both sides.
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
