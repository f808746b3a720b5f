package diff

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quayside/quayside/lockfile"
)

// Source is one side of a comparison, as files.
type Source struct {
	Name              string             // as users name it: "main"
	Revision          string             // of the repository, for errors; empty for files on disk
	KubernetesVersion string             // target; empty if unknown
	OpenShiftVersion  string             // likewise
	Pins              []lockfile.Pin     // of its lock
	Leaving           []lockfile.Leaving // likewise
	KeepsDefinitions  bool               // see State
	ByOperator        bool               // likewise
	Tree              []File             // rendered files, in any order; see [Base]
	Own               []File             // other files of the repository, in any order
}

// Read parses two sides to states. Files that are equal on both sides are parsed once, and
// equal CRDs only up to their versions, so the work grows with the differences. An error
// lists every broken file of one tree.
//
// Of the user's own files, it parses those that may contain custom resources of the CRDs
// of either side, or Namespaces. Many files of a repository only look like YAML: files of
// the side after that do not parse are skipped and listed in State.Skipped.
func Read(before, after Source) (State, State, error) {
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
	var fresh []File
	same, kept := byPath(after.Own), map[string]bool{}
	for _, f := range before.Own {
		if data, ok := same[f.Path]; ok && bytes.Equal(data, f.Data) {
			kept[f.Path] = true
		} else {
			fresh = append(fresh, f)
		}
	}
	b.Resources, _ = ownObjects(fresh, definitions)
	for _, o := range a.Resources {
		if kept[o.Path] {
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

// state parses the tree of one side. twins are the files of the other side, known its
// parsed objects.
func (s Source) state(twins map[string][]byte, known []Object) (State, error) {
	objects, err := collectObjects(s.Tree, s.Pins, twins, known)
	if err != nil && s.Revision != "" {
		err = fmt.Errorf("%s: %w", s.Revision, err)
	}
	return State{Name: s.Name, KubernetesVersion: s.KubernetesVersion, OpenShiftVersion: s.OpenShiftVersion, Pins: s.Pins, Leaving: s.Leaving, KeepsDefinitions: s.KeepsDefinitions, ByOperator: s.ByOperator, Objects: objects}, err
}
