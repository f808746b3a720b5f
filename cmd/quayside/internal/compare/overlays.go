package compare

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// CheckTargets returns the errors of CheckOverlays if a selector of a kustomization or a setting selects
// none of the rendered objects. Otherwise it builds nothing, because a build takes seconds.
func CheckTargets(p *workspace.Project, res *render.Result) error {
	overlays, _, err := p.Overlays()
	if err != nil || len(overlays) == 0 && !hasSelectors(p.Settings) {
		return err
	}
	keys, images := map[k8s.Key]bool{}, map[string]bool{} // of all clusters, which are mostly equal
	for _, cluster := range p.Clusters() {
		operators, shared, err := res.ClusterObjects(cluster)
		if err != nil {
			return err
		}
		for _, o := range operators {
			shared = append(shared, o.Objects...)
		}
		for _, o := range shared {
			keys[o.Key()] = true
			for _, container := range k8s.Containers(k8s.PodSpec(o)) {
				images[k8s.Text(container, "image")] = true
			}
		}
	}
	allKeys, allImages := slices.Collect(maps.Keys(keys)), slices.Collect(maps.Keys(images))
	_, s, err := renderLock(p, nil, res)
	if err != nil {
		return err
	}
	allSelect := !hasSelectors(p.Settings) || len(p.Settings.Tool().Unmatched(*p.Settings.GitOps, allKeys)) == 0
	for _, name := range s.clusters() {
		x, err := s.clusterInputs(name)
		allSelect = allSelect && err == nil && !slices.ContainsFunc(x.overlays, func(o *overlay.Overlay) bool { return !o.HasTargets(s.isUserFile, allKeys, allImages) })
	}
	if allSelect {
		return nil
	}
	return CheckOverlays(p, res)
}

// CheckOverlays builds the overlays of all clusters with the rendered lock. It returns an error for
// each overlay that does not build, each selector of a kustomization that selects nothing in any cluster,
// each custom resource without its CRD in a cluster, and each setting that selects no object.
func CheckOverlays(p *workspace.Project, res *render.Result) error {
	c, s, err := renderLock(p, nil, res)
	if err != nil {
		return err
	}
	var faults diag.List
	unmatched, matched, seen := map[overlay.Selector]string{}, map[overlay.Selector]bool{}, map[[32]byte]bool{}
	for _, name := range s.clusters() {
		x, err := s.clusterInputs(name)
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
			selectors, err := o.Selectors(s.isUserFile, built)
			if err != nil {
				return err
			}
			for _, key := range selectors {
				hits := key.Hits
				key.Hits = 0
				if matched[key] = matched[key] || hits > 0; hits == 0 {
					unmatched[key] = key.Unmatched(built)
				}
			}
		}
	}
	for key, message := range unmatched {
		if !matched[key] {
			faults.Addf(key.Pos, "%s", message)
		}
	}
	if len(faults) == 0 {
		faults.Add(diag.Pos{}, c.missingCRDs(s))
		faults.Add(diag.Pos{}, c.unmatchedSettings(s))
	}
	return faults.Err()
}

// unmatchedSettings returns a fault for each setting of the GitOps tool that selects no object in any
// cluster. An inherited setting may select an object in another workspace.
func (c *Comparison) unmatchedSettings(s *Side) error {
	p := s.project
	w := p.Settings
	if !hasSelectors(w) {
		return nil
	}
	base, err := s.baseState()
	if err != nil {
		return err
	}
	var keys []k8s.Key
	err = c.forEachGroup(s, s.clusters(), base, func(got groupState) error {
		for i := range got.state.Objects {
			keys = append(keys, got.state.Objects[i].Key())
		}
		return nil
	})
	if err != nil {
		return err
	}
	var faults diag.List
	for _, f := range w.Tool().Unmatched(*w.GitOps, keys) {
		at := w.At("spec." + f.Field)
		if !p.MatchesElsewhere(at.File, func(other *workspace.Project) bool {
			keys := treeKeys(other)
			return len(keys) == 0 || !slices.ContainsFunc(w.Tool().Unmatched(*w.GitOps, keys), func(g profile.Fault) bool { return g.Field == f.Field })
		}) {
			faults.Addf(at, "spec.%s: %s", f.Field, f.Message)
		}
	}
	return faults.Err()
}

// hasSelectors reports whether settings of the GitOps tool select objects.
func hasSelectors(w *settings.Workspace) bool {
	return w.GitOps != nil && len(w.Tool().Unmatched(*w.GitOps, nil)) > 0
}

// treeKeys returns the objects in the tree of a workspace on disk, without its overlays. Errors are
// reported in that workspace.
func treeKeys(p *workspace.Project) []k8s.Key {
	t, err := p.Rendered(filetree.New())
	if err != nil {
		return nil
	}
	var out []k8s.Key
	for name, data := range t.All() {
		objects, _ := yamlnode.Objects(name, data, yamlnode.Limits{})
		for _, o := range objects {
			out = append(out, k8s.Object(o).Key())
		}
	}
	return out
}

// missingCRDs returns a fault for each custom resource of the user whose CRD is in the tree but
// not in the cluster.
func (c *Comparison) missingCRDs(s *Side) error {
	if !slices.ContainsFunc(s.clusters(), func(name string) bool {
		x, err := s.clusterInputs(name)
		return err == nil && !x.hasAllCRDs && slices.ContainsFunc(x.overlays, s.usesUserFiles)
	}) {
		return nil
	}
	base, err := s.baseState()
	if err != nil {
		return err
	}
	all := crdKinds(base)
	clusters, kind := map[diag.Pos][]string{}, map[diag.Pos]k8s.Key{}
	err = c.forEachGroup(s, s.clusters(), base, func(got groupState) error {
		kinds := crdKinds(got.state)
		for i := range got.state.Objects {
			o := &got.state.Objects[i]
			if k := (k8s.Key{Group: o.Key().Group, Kind: o.Key().Kind}); all[k] && !kinds[k] {
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

// crdKinds returns the group and kind of each CRD in a state.
func crdKinds(state diff.State) map[k8s.Key]bool {
	out := map[k8s.Key]bool{}
	for _, o := range state.Objects {
		if o.Key().Kind == "CustomResourceDefinition" {
			d := k8s.ParseCRD(o.Content)
			out[k8s.Key{Group: d.Group, Kind: d.Kind}] = true
		}
	}
	return out
}

// ownPosition returns the position of a cluster's object in the user's files. It searches by
// kind and name, then by kind, because overlays may change names.
func (s *Side) ownPosition(cluster string, o *diff.Object) (diag.Pos, error) {
	x, err := s.clusterInputs(cluster)
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
				_, objectName := yamlnode.Field(meta, "name")
				if objectName != nil && objectName.Value == o.Key().Name {
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

// Builder returns a function that builds a directory of the rendered lock with the user's files,
// like kustomize. The function returns the objects as JSON.
func Builder(p *workspace.Project, res *render.Result) (func(dir string) ([][]byte, error), error) {
	_, s, err := renderLock(p, nil, res)
	return func(dir string) ([][]byte, error) {
		o, err := s.overlays.Open(path.Join(s.out, dir))
		if err != nil {
			return nil, err
		}
		return o.BuildTree(func(name string) bool { return !s.isUserFile(name) })
	}, err
}

// Patched returns a function that applies the user's overlay of a cluster to rendered objects. It builds
// only the objects that the overlay selects. An overlay that does not build changes nothing, because
// CheckOverlays returns its error.
func Patched(p *workspace.Project, res *render.Result) (func(cluster string) workspace.Patch, error) {
	_, s, err := renderLock(p, nil, res)
	known := map[[32]byte]workspace.Patch{}
	return func(cluster string) workspace.Patch {
		out := workspace.Patch{}
		x, err := s.clusterInputs(cluster)
		for _, o := range x.overlays {
			if err != nil || !s.usesUserFiles(o) {
				continue
			}
			part, ok := known[o.Digest]
			if !ok {
				part = workspace.Patch{}
				if before, built, err := o.BuildSelected(s.isUserFile); err == nil {
					part = newPatch(o.File, before, built)
				}
				known[o.Digest] = part
			}
			maps.Copy(out, part)
		}
		return out
	}, err
}

// newPatch returns the changes from the objects before to the objects that a kustomization built.
func newPatch(file string, before []k8s.Key, built [][]byte) workspace.Patch {
	out := workspace.Patch{}
	for _, key := range before {
		out[key] = nil
	}
	for _, data := range built {
		objects, _ := yamlnode.Objects(file, data, yamlnode.Limits{}) // kustomize has written valid JSON
		for _, object := range objects {
			out[k8s.Object(object).Key()] = object
		}
	}
	return out
}

// renderLock returns a side with a rendered lock in place of the tree on disk.
func renderLock(p *workspace.Project, lock *lockfile.File, res *render.Result) (*Comparison, *Side, error) {
	c, err := newComparison(p, Lock)
	if err != nil {
		return nil, nil, err
	}
	empty, err := c.emptyTree()
	if err != nil {
		return nil, nil, err
	}
	t, err := empty.withRendered(res, c.pool)
	return c, &Side{Name: workspace.LockFile, project: p, lock: lock, tree: t}, err
}

// isUserFile reports whether a file is outside of the tree.
func (s *Side) isUserFile(name string) bool {
	return !strings.HasPrefix(name, strings.TrimPrefix(s.out+"/", "./"))
}

// usesUserFiles reports whether an overlay uses files of the user. Without such files, an overlay
// always builds.
func (s *Side) usesUserFiles(o *overlay.Overlay) bool {
	for k := range o.Kustomizations() {
		if s.isUserFile(k.File) && (k.Changes() || slices.ContainsFunc(k.Files(), func(name string) bool { return name != k.File })) {
			return true
		}
	}
	return false
}
