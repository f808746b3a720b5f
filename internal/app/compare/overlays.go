package compare

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/overlay"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Overlays builds the overlays of all clusters on the rendered lock, and returns their
// faults, each a *workspace.DiffersError with its position: an overlay that does not build,
// a user's patch that matches nothing in any cluster, which kustomize does not report, and
// a custom resource in a cluster without its CRD.
func Overlays(p *workspace.Project, res *render.Result) error {
	c, s, err := renderLock(p, nil, res)
	if err != nil {
		return err
	}
	var faults diag.List
	idle, live, seen := map[diag.Pos]string{}, map[diag.Pos]bool{}, map[[32]byte]bool{}
	for _, name := range s.clusters() {
		x, err := s.share(name)
		faults.Add(diag.Pos{}, err)
		for _, o := range x.overlays {
			if seen[o.Digest] || !s.usesUserFiles(o) {
				continue
			}
			built, err := c.build(o)
			if faults.Add(diag.Pos{File: o.File}, err); err != nil {
				continue
			}
			seen[o.Digest] = true
			patches, err := o.Patches(s.isUserFile)
			if err != nil {
				return err
			}
			for _, p := range patches {
				if live[p.Pos] = live[p.Pos] || p.Hits > 0; p.Hits == 0 {
					idle[p.Pos] = describeTarget(p.Target, built)
				}
			}
		}
	}
	for pos, what := range idle {
		if !live[pos] {
			faults.Addf(pos, "this patch has no target any more: %s", what)
		}
	}
	if len(faults) == 0 {
		faults.Add(diag.Pos{}, c.missingCRDs(s))
	}
	for i, f := range faults {
		faults[i] = &diag.Error{Pos: f.Pos, Err: &workspace.DiffersError{Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()}}
	}
	return faults.Err()
}

// missingCRDs returns a fault for each of the user's custom resources in a cluster that does
// not get its CRD, although other clusters do.
func (c *Comparison) missingCRDs(s *Side) error {
	if !slices.ContainsFunc(s.clusters(), func(name string) bool {
		x, err := s.share(name)
		return err == nil && !x.all && slices.ContainsFunc(x.overlays, s.usesUserFiles)
	}) {
		return nil
	}
	base, err := s.base()
	if err != nil {
		return err
	}
	all := definedKeys(base)
	clusters, kind := map[diag.Pos][]string{}, map[diag.Pos]k8s.Key{}
	err = c.forEachGroup(s, s.clusters(), base, func(got groupState) error {
		here := definedKeys(got.state)
		for i := range got.state.Objects {
			o := &got.state.Objects[i]
			if k := (k8s.Key{Group: o.Key().Group, Kind: o.Key().Kind}); all[k] && !here[k] {
				pos, err := s.ownPosition(got.clusters[0], o)
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
		faults.Addf(pos, "no CRD for %s.%s in cluster %s: none of its operators provides it", kind[pos].Kind, kind[pos].Group, strings.Join(slices.Compact(names), ", "))
	}
	return faults.Err()
}

// definedKeys returns the group and kind of each CRD in a state.
func definedKeys(state diff.State) map[k8s.Key]bool {
	out := map[k8s.Key]bool{}
	for _, o := range state.Objects {
		if o.Key().Kind == "CustomResourceDefinition" {
			d := k8s.ParseCRD(o.Content)
			out[k8s.Key{Group: d.Group, Kind: d.Kind}] = true
		}
	}
	return out
}

// ownPosition returns the position of a cluster's object in the user's files. It searches by kind
// and, unless the overlay changes names, by name.
func (s *Side) ownPosition(cluster string, o *diff.Object) (diag.Pos, error) {
	x, err := s.share(cluster)
	if err != nil {
		return diag.Pos{}, err
	}
	found := diag.Pos{File: x.overlays[0].File}
	for _, k := range x.overlays {
		for name, data := range k.All() {
			docs, _ := yamlnode.Documents(name, data, yamlnode.Limits{}) // no objects in invalid YAML
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				if kind == nil || kind.Value != o.Key().Kind || !s.isUserFile(name) {
					continue
				}
				_, meta := yamlnode.Field(doc, "metadata")
				_, called := yamlnode.Field(meta, "name")
				if called != nil && called.Value == o.Key().Name {
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

// Builder returns a function that builds a directory of the rendered lock with the user's
// own files, like stock kustomize. It returns the objects as JSON.
func Builder(p *workspace.Project, res *render.Result) (func(dir string) ([][]byte, error), error) {
	_, s, err := renderLock(p, nil, res)
	return func(dir string) ([][]byte, error) {
		o, err := s.overlays.Open(path.Join(s.out, dir))
		if err != nil {
			return nil, err
		}
		return o.Build()
	}, err
}

// renderLock returns a rendered lock as a side in the work tree.
func renderLock(p *workspace.Project, lock *lockfile.File, res *render.Result) (*Comparison, *Side, error) {
	c, err := newComparison(p, Lock)
	if err != nil {
		return nil, nil, err
	}
	around, err := c.unrendered()
	if err != nil {
		return nil, nil, err
	}
	lies, err := around.rendered(res, c.pool)
	return c, &Side{Name: workspace.LockFile, project: p, lock: lock, tree: lies}, err
}

// isUserFile reports whether a file is the user's, and not part of the tree.
func (s *Side) isUserFile(name string) bool {
	return !strings.HasPrefix(name, strings.TrimPrefix(s.out+"/", "./"))
}

// usesUserFiles reports whether an overlay uses any of the user's files. Without them, an overlay
// always builds.
func (s *Side) usesUserFiles(o *overlay.Overlay) bool {
	for k := range o.Kustomizations() {
		if s.isUserFile(k.File) && (k.Changes() || slices.ContainsFunc(k.Files(), func(name string) bool { return name != k.File })) {
			return true
		}
	}
	return false
}

// describeTarget describes the target of a patch, and suggests a similar name of that kind.
func describeTarget(target types.Selector, built [][]byte) string {
	var names []string
	for _, data := range built {
		var object map[string]any
		if json.Unmarshal(data, &object) == nil && k8s.Text(object, "kind") == target.Kind {
			names = append(names, k8s.Text(object, "metadata", "name"))
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
