package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
)

// checkSelectors returns the errors of checkOverlays. It builds overlays, which takes seconds, only if a
// selector of a kustomization or of a setting selects no rendered object.
func checkSelectors(s *State) (Findings, error) {
	w := s.Settings
	if len(s.Overlays) == 0 && !hasSelectors(w) {
		return nil, nil
	}
	keys, images := map[k8s.Key]bool{}, map[string]bool{} // union over all clusters
	for _, cluster := range w.ClusterNames() {
		operators, shared, err := s.Rendered.ClusterObjects(cluster)
		if err != nil {
			return nil, err
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
	f, err := s.Fleet()
	if err != nil {
		return nil, err
	}
	allSelect := !hasSelectors(w) || len(w.Tool().Unmatched(*w.GitOps, allKeys)) == 0
	for _, name := range f.Clusters() {
		x, err := f.Inputs(name)
		allSelect = allSelect && err == nil && !slices.ContainsFunc(x.Overlays, func(o *overlay.Overlay) bool { return !o.HasTargets(f.IsUserFile, allKeys, allImages) })
	}
	if allSelect {
		return nil, nil
	}
	return checkOverlays(s)
}

// checkOverlays builds the overlays of all clusters with the rendered lock. It returns an error for each of
// these faults:
//   - an overlay that does not build
//   - a selector of a kustomization that selects nothing in any cluster
//   - a custom resource whose CRD is missing in its cluster
//   - a setting that selects no object
func checkOverlays(s *State) (Findings, error) {
	f, err := s.Fleet()
	if err != nil {
		return nil, err
	}
	var faults diag.List
	unmatched, matched, seen := map[overlay.Selector]string{}, map[overlay.Selector]bool{}, map[[32]byte]bool{}
	for _, name := range f.Clusters() {
		x, err := f.Inputs(name)
		faults.Add(diag.Pos{}, err)
		for _, o := range x.Overlays {
			if seen[o.Digest] || !f.UsesUserFiles(o) {
				continue
			}
			built, err := f.Build(o)
			if faults.Add(diag.Pos{File: o.File}, err); err != nil {
				continue
			}
			seen[o.Digest] = true
			selectors, err := o.Selectors(f.IsUserFile, built)
			if err != nil {
				return nil, err
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
		faults.Add(diag.Pos{}, missingCRDs(&f))
		faults.Add(diag.Pos{}, s.unmatchedSettings(&f))
	}
	return errorsOf(faults), nil
}

// unmatchedSettings returns a fault for each setting of the GitOps tool that selects no object in any
// cluster. An inherited setting may select an object in another workspace.
func (s *State) unmatchedSettings(f *fleet.Fleet) error {
	w := s.Settings
	if !hasSelectors(w) {
		return nil
	}
	base, err := f.BaseState()
	if err != nil {
		return err
	}
	var keys []k8s.Key
	err = f.ForEachGroup(f.Clusters(), base, func(got fleet.Group) error {
		for i := range got.State.Objects {
			keys = append(keys, got.State.Objects[i].Key())
		}
		return nil
	})
	if err != nil {
		return err
	}
	var faults diag.List
	for _, u := range w.Tool().Unmatched(*w.GitOps, keys) {
		at := w.At("spec." + u.Field)
		if !s.matchesElsewhere(at.File, func(_ *settings.Workspace, other Other) bool {
			keys := treeKeys(other)
			return len(keys) == 0 || !slices.ContainsFunc(w.Tool().Unmatched(*w.GitOps, keys), func(g profile.Fault) bool { return g.Field == u.Field })
		}) {
			faults.Addf(at, "spec.%s: %s", u.Field, u.Message)
		}
	}
	return faults.Err()
}

// hasSelectors reports whether settings of the GitOps tool select objects.
func hasSelectors(w *settings.Workspace) bool {
	return w.GitOps != nil && len(w.Tool().Unmatched(*w.GitOps, nil)) > 0
}

// treeKeys returns the objects in the tree of a workspace on disk, without its overlays. It ignores errors,
// because the workspace's own commands report them.
func treeKeys(other Other) []k8s.Key {
	t, err := other.Tree()
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
func missingCRDs(f *fleet.Fleet) error {
	if !slices.ContainsFunc(f.Clusters(), func(name string) bool {
		x, err := f.Inputs(name)
		return err == nil && !x.HasAllCRDs && slices.ContainsFunc(x.Overlays, f.UsesUserFiles)
	}) {
		return nil
	}
	base, err := f.BaseState()
	if err != nil {
		return err
	}
	all := crdKinds(base)
	clusters, kind := map[diag.Pos][]string{}, map[diag.Pos]k8s.Key{}
	err = f.ForEachGroup(f.Clusters(), base, func(got fleet.Group) error {
		kinds := crdKinds(got.State)
		for i := range got.State.Objects {
			o := &got.State.Objects[i]
			if k := (k8s.Key{Group: o.Key().Group, Kind: o.Key().Kind}); all[k] && !kinds[k] {
				pos, err := ownPosition(f, got.Clusters[0], o)
				if err != nil {
					return err
				}
				clusters[pos], kind[pos] = append(clusters[pos], got.Clusters...), k
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
func ownPosition(f *fleet.Fleet, cluster string, o *diff.Object) (diag.Pos, error) {
	x, err := f.Inputs(cluster)
	if err != nil {
		return diag.Pos{}, err
	}
	found := diag.Pos{File: x.Overlays[0].File}
	for _, k := range x.Overlays {
		for name, data := range k.All() {
			docs, _ := yamlnode.Documents(name, data, yamlnode.Limits{}) // invalid YAML has no objects
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				if kind == nil || kind.Value != o.Key().Kind || !f.IsUserFile(name) {
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
