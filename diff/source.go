package diff

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/quayside/quayside/lockfile"
)

// Source is one side of a comparison, as files.
type Source struct {
	Name              string             // as the user would name it: "main"
	Revision          string             // of the repository, which faults name; empty for files on disk
	KubernetesVersion string             // target; empty where unknown
	OpenShiftVersion  string             // likewise
	Pins              []lockfile.Pin     // of its lock
	Leaving           []lockfile.Leaving // likewise
	KeepsDefinitions  bool               // as State has it
	ByOperator        bool               // likewise
	Tree              []File             // what is rendered, any order; see [Base]
	Own               []File             // what else lies in the repository, any order
}

// Read turns two sides into states. What is the same on both is read once, and
// definitions that are the same only up to their versions, so that the work
// grows with what differs. An error lists every broken file of one tree.
//
// Of the user's own files, those count that could be custom resources of the
// definitions of either side, or Namespaces. A repository holds much that only
// looks like YAML: files of the side after that do not parse are left out and
// named in State.Skipped.
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
	a.Resources, a.Skipped = own(after.Own, definitions)
	var fresh []File
	same, kept := byPath(after.Own), map[string]bool{}
	for _, f := range before.Own {
		if data, ok := same[f.Path]; ok && bytes.Equal(data, f.Data) {
			kept[f.Path] = true
		} else {
			fresh = append(fresh, f)
		}
	}
	b.Resources, _ = own(fresh, definitions)
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

// state reads the tree of one side; twins and known are the files and the
// objects of the other one.
func (s Source) state(twins map[string][]byte, known []Object) (State, error) {
	objects, err := objects(s.Tree, s.Pins, twins, known)
	if err != nil && s.Revision != "" {
		err = fmt.Errorf("%s: %w", s.Revision, err)
	}
	return State{Name: s.Name, KubernetesVersion: s.KubernetesVersion, OpenShiftVersion: s.OpenShiftVersion, Pins: s.Pins, Leaving: s.Leaving, KeepsDefinitions: s.KeepsDefinitions, ByOperator: s.ByOperator, Objects: objects}, err
}
