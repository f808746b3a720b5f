package diff

import (
	"bytes"
	"fmt"

	"github.com/quayside/quayside/lockfile"
)

// Source is one revision of a repository, as files.
type Source struct {
	Name              string         // as the user would name it: "main"
	KubernetesVersion string         // target; empty where unknown
	Pins              []lockfile.Pin // of its lock
	Dir               string         // of the rendered tree among Files: "rendered"; "." where Files are the tree alone
	Files             []File         // any order; paths are those of the repository
}

// Read turns two revisions into states. What is the same on both sides is read
// once, and definitions that are the same not at all, so that the work grows
// with what differs. An error names the revision and every broken file of its
// tree.
func Read(before, after Source) (State, State, error) {
	b, err := before.state(byPath(after.Files), nil)
	if err != nil {
		return State{}, State{}, err
	}
	a, err := after.state(byPath(before.Files), b.Objects)
	if err != nil {
		return State{}, State{}, err
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

// state reads one revision; other holds the files of the other one.
func (s Source) state(other map[string][]byte, known []Object) (State, error) {
	out := State{Name: s.Name, KubernetesVersion: s.KubernetesVersion, Pins: s.Pins}
	var parse []File
	for _, f := range Base(s.Dir, s.Files) {
		if twin, ok := other[f.Path]; ok && bytes.Equal(twin, f.Data) {
			if h, ok := readHead(f.Data); ok {
				out.Objects = append(out.Objects, Object{Operator: ownerOf(h.labels, s.Pins), Path: f.Path, Raw: f.Data, head: h})
				continue
			}
		}
		parse = append(parse, f)
	}
	objects, err := Objects(parse, s.Pins, known)
	if err != nil {
		return State{}, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	out.Objects = append(out.Objects, objects...)
	out.Resources, out.Skipped = Own(s.Dir, s.Files, out.Objects)
	return out, nil
}
