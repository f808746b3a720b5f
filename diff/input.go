package diff

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quayside/quayside/lockfile"
)

// Input is one side of a comparison as files.
type Input struct {
	Name              string             // name for users, such as "main"
	Revision          string             // revision of the repository, for errors; empty for files on disk
	KubernetesVersion string             // of the target clusters; empty if unknown
	OpenShiftVersion  string             // of the target clusters; empty if unknown
	Pins              []lockfile.Pin     // pins of the lock
	Leaving           []lockfile.Leaving // leaving operators of the lock
	KeepsDefinitions  bool               // see State
	ByOperator        bool               // see State
	Tree              []File             // rendered files, in any order; see [BaseFiles]
	Own               []File             // other files of the repository, in any order
}

// Read parses both sides of a comparison. To save time, it parses a file that is equal on both
// sides only once, and an equal CRD only up to its versions. The error lists all invalid files of
// one tree.
//
// In Input.Own, Read parses only the files that may contain Namespaces or custom resources of the
// CRDs of either side. Repositories often contain invalid YAML, such as templates, so invalid files
// do not cause an error. Those of the side after are listed in State.Skipped.
func Read(before, after Input) (State, State, error) {
	a, err := after.state(byPath(before.Tree), nil)
	if err != nil {
		return State{}, State{}, err
	}
	b, err := before.state(byPath(after.Tree), a.Objects)
	if err != nil {
		return State{}, State{}, err
	}
	definitions := slices.Concat(b.Objects, a.Objects)
	a.Resources, a.Skipped = ownObjects(after.Own, definitions)
	var changed []File
	afterData, unchanged := byPath(after.Own), map[string]bool{}
	for _, f := range before.Own {
		if data, ok := afterData[f.Path]; ok && bytes.Equal(data, f.Data) {
			unchanged[f.Path] = true
		} else {
			changed = append(changed, f)
		}
	}
	b.Resources, _ = ownObjects(changed, definitions)
	for _, o := range a.Resources {
		if unchanged[o.Path] {
			b.Resources = append(b.Resources, o)
		}
	}
	return b, a, nil
}

// byPath returns the content of files by path.
func byPath(files []File) map[string][]byte {
	out := make(map[string][]byte, len(files))
	for _, f := range files {
		out[f.Path] = f.Data
	}
	return out
}

// state parses the tree of one side. twins are the files of the other side by path, and known are
// its objects.
func (s Input) state(twins map[string][]byte, known []Object) (State, error) {
	objects, err := collectObjects(s.Tree, s.Pins, twins, known)
	if err != nil && s.Revision != "" {
		err = fmt.Errorf("%s: %w", s.Revision, err)
	}
	return State{Name: s.Name, KubernetesVersion: s.KubernetesVersion, OpenShiftVersion: s.OpenShiftVersion, Pins: s.Pins, Leaving: s.Leaving, KeepsDefinitions: s.KeepsDefinitions, ByOperator: s.ByOperator, Objects: objects}, err
}
