package diff

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// Input is one side of a comparison: the files of a workspace at one revision.
type Input struct {
	Name              string               // name for users, such as "main"
	Revision          string               // Git revision, for errors; empty for files on disk
	KubernetesVersion string               // version of the target clusters; empty if unknown
	OpenShiftVersion  string               // version of the target clusters; empty if unknown
	Pins              []lockfile.Pin       // pins of the lock
	Leaving           []lockfile.Leaving   // operators in the lock that are replaced or being uninstalled
	KeepsDefinitions  bool                 // see State.KeepsDefinitions
	ByOperator        bool                 // see State.ByOperator
	Declared          []string             // see State.Declared
	Recreate          []profile.Recreation // see State.Recreate
	Tree              []File               // rendered files (see BaseFiles), in any order
	Own               []File               // other files of the repository, in any order
}

// Read parses both sides of a comparison. To save time, it parses files that are equal on both sides once,
// and equal CRDs only up to their versions. The error lists all invalid files of the rendered trees.
//
// From Input.Own, it parses only files that may contain Namespaces or custom resources of the CRDs on either
// side. Invalid files in Own are not an error, because repositories often contain templates and other invalid
// YAML. The second State lists the invalid files in after.Own in its field Skipped.
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

// state parses one side. twins are the files of the other side by path. known are the parsed objects of the
// other side.
func (s Input) state(twins map[string][]byte, known []Object) (State, error) {
	objects, err := collectObjects(s.Tree, s.Pins, twins, known)
	if err != nil && s.Revision != "" {
		err = fmt.Errorf("%s: %w", s.Revision, err)
	}
	return State{Name: s.Name, KubernetesVersion: s.KubernetesVersion, OpenShiftVersion: s.OpenShiftVersion, Pins: s.Pins, Leaving: s.Leaving, KeepsDefinitions: s.KeepsDefinitions, ByOperator: s.ByOperator, Declared: s.Declared, Recreate: s.Recreate, Objects: objects}, err
}
