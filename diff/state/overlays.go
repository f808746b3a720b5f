package state

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render"
)

// Overlays builds the overlays of all clusters over what a lock renders to, and
// returns what is wrong with them, each fault a *project.DiffersError at its place:
// an overlay that does not build, a patch of the user's that has nothing left to
// change in any cluster, of which kustomize says nothing, and a custom resource
// whose definition a cluster does not get.
func Overlays(p *project.Project, res *render.Result) error {
	c, s, err := beside(p, res)
	if err != nil {
		return err
	}
	var faults diag.List
	idle, live, seen := map[diag.Pos]string{}, map[diag.Pos]bool{}, map[[32]byte]bool{}
	for _, name := range s.clusters {
		x, err := s.share(name)
		faults.Add(diag.Pos{}, err)
		for _, o := range x.overlays {
			if seen[o.Digest] || !s.changed(o) {
				continue
			}
			built, err := c.build(o)
			if faults.Add(diag.Pos{File: o.File}, err); err != nil {
				continue
			}
			seen[o.Digest] = true
			patches, err := o.Patches(s.theirs)
			if err != nil {
				return err
			}
			for _, p := range patches {
				if live[p.Pos] = live[p.Pos] || p.Hits > 0; p.Hits == 0 {
					idle[p.Pos] = sought(p.Target, built)
				}
			}
		}
	}
	for pos, what := range idle {
		if !live[pos] {
			faults.Addf(pos, "nothing is left for this patch to change: %s", what)
		}
	}
	if len(faults) == 0 {
		faults.Add(diag.Pos{}, c.undefined(s))
	}
	for i, f := range faults {
		faults[i] = &diag.Error{Pos: f.Pos, Err: &project.DiffersError{Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()}}
	}
	return faults.Err()
}

// undefined returns a fault for each custom resource of the user's that a cluster
// gets without its definition, which other clusters do get.
func (c *Comparison) undefined(s *Side) error {
	if !slices.ContainsFunc(s.clusters, func(name string) bool {
		x, err := s.share(name)
		return err == nil && !x.all && slices.ContainsFunc(x.overlays, s.changed)
	}) {
		return nil
	}
	base, err := s.base()
	if err != nil {
		return err
	}
	all := defined(base)
	clusters, kind := map[diag.Pos][]string{}, map[diag.Pos]kobj.Key{}
	err = c.alone(s, base, func(got gets) error {
		here := defined(got.state)
		for i := range got.state.Objects {
			o := &got.state.Objects[i]
			if k := (kobj.Key{Group: o.Ref().Group, Kind: o.Ref().Kind}); all[k] && !here[k] {
				pos, err := s.stands(got.clusters[0], o)
				if err != nil {
					return err
				}
				clusters[pos], kind[pos] = append(clusters[pos], got.clusters...), k
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var faults diag.List
	for pos, names := range clusters {
		slices.Sort(names)
		faults.Addf(pos, "no definition of %s.%s is in what %s gets: no operator there brings it", kind[pos].Kind, kind[pos].Group, strings.Join(slices.Compact(names), ", "))
	}
	return faults.Err()
}

// defined returns the kinds that the definitions of a state are of.
func defined(state diff.State) map[kobj.Key]bool {
	out := map[kobj.Key]bool{}
	for _, o := range state.Objects {
		if o.Ref().Kind == "CustomResourceDefinition" {
			d := kinds.Define(o.Content)
			out[kobj.Key{Group: d.Group, Kind: d.Kind}] = true
		}
	}
	return out
}

// stands returns where an object that a cluster gets stands among the user's
// files, by its kind, and by its name where the overlay does not change that.
func (s *Side) stands(cluster string, o *diff.Object) (diag.Pos, error) {
	x, err := s.share(cluster)
	if err != nil {
		return diag.Pos{}, err
	}
	found := diag.Pos{File: x.overlays[0].File}
	for _, k := range x.overlays {
		for name, data := range k.All() {
			docs, _ := yamlnode.Documents(name, data, yamlnode.Limits{}) // what is no YAML has no objects
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				if kind == nil || kind.Value != o.Ref().Kind || !s.theirs(name) {
					continue
				}
				_, meta := yamlnode.Field(doc, "metadata")
				_, called := yamlnode.Field(meta, "name")
				if called != nil && called.Value == o.Ref().Name {
					return yamlnode.At(name, kind), nil
				}
				if at := yamlnode.At(name, kind); found.Line == 0 || at.String() < found.String() {
					found = at
				}
			}
		}
	}
	return found, nil
}

// Builder returns what builds a directory of the tree that a lock renders to,
// beside the user's own files, as stock kustomize does: its objects, as JSON.
func Builder(p *project.Project, res *render.Result) (func(dir string) ([][]byte, error), error) {
	_, s, err := beside(p, res)
	return func(dir string) ([][]byte, error) {
		o, err := s.files.Open(path.Join(s.out, dir))
		if err != nil {
			return nil, err
		}
		return o.Build()
	}, err
}

// beside returns what a lock renders to, as a side that lies in the work tree.
func beside(p *project.Project, res *render.Result) (*Comparison, *Side, error) {
	c, err := newComparison(p, Lock)
	if err != nil {
		return nil, nil, err
	}
	s := &Side{project: p}
	s.beside(c, c.InRepo(p.Settings.Output), c.files)
	return c, s, s.rendered(res, c.pool)
}

// theirs reports whether a file is the user's, and not part of the tree.
func (s *Side) theirs(name string) bool {
	return !strings.HasPrefix(name, strings.TrimPrefix(s.out+"/", "./"))
}

// changed reports whether anything of the user's goes into an overlay: what is
// rendered builds.
func (s *Side) changed(o *overlay.Overlay) bool {
	for k := range o.Kustomizations() {
		if s.theirs(k.File) && (k.Changes() || slices.ContainsFunc(k.Files(), func(name string) bool { return name != k.File })) {
			return true
		}
	}
	return false
}

// sought says what a patch is for, and what of that kind has a like name.
func sought(target types.Selector, built [][]byte) string {
	var names []string
	for _, data := range built {
		var object map[string]any
		if json.Unmarshal(data, &object) == nil && kobj.Text(object, "kind") == target.Kind {
			names = append(names, kobj.Text(object, "metadata", "name"))
		}
	}
	var words []string
	for _, field := range []struct{ name, value string }{
		{"kind", target.Kind},
		{"name", target.Name},
		{"namespace", target.Namespace},
		{"group", target.Group},
		{"version", target.Version},
		{"labelSelector", target.LabelSelector},
		{"annotationSelector", target.AnnotationSelector},
	} {
		if field.value != "" {
			words = append(words, fmt.Sprintf("%s %q", field.name, field.value))
		}
	}
	return strings.Join(words, ", ") + diag.DidYouMean(target.Name, slices.Compact(slices.Sorted(slices.Values(names))))
}
