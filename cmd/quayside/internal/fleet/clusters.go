package fleet

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
)

// Inputs are the files that determine the objects of one cluster.
type Inputs struct {
	Overlays   []*overlay.Overlay // kustomizations of the cluster; nil if the tree does not have the cluster
	asIs       []string           // paths in the tree that are applied without a kustomize build
	HasAllCRDs bool               // whether the cluster gets every CRD
	Version    string             // Kubernetes version of the cluster
}

// Key returns a key for comparing inputs. Equal inputs in different directories have equal keys.
func (x Inputs) Key() string {
	key := fmt.Sprintf("%q %q", x.Version, x.asIs)
	for _, o := range x.Overlays {
		key += string(o.Digest[:])
	}
	return key
}

// Equals reports whether the inputs have equal keys.
func (x Inputs) Equals(y Inputs) bool { return x.Key() == y.Key() }

// Inputs returns the inputs of a cluster.
func (f *Fleet) Inputs(name string) (Inputs, error) {
	w := f.Settings
	x := Inputs{Version: w.KubernetesVersion}
	if i := slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == name }); i >= 0 {
		x.Version = w.EffectiveCluster(w.Clusters[i]).KubernetesVersion
	}
	c, found := f.Layout.Cluster(name)
	if !found {
		return x, nil
	}
	key := c.Prefix + " " + x.Version
	if known, is := f.inputs[key]; is {
		return known, nil
	}
	crds, built := f.Layout.ClusterCRDDirs(c)
	x.asIs, x.HasAllCRDs = slices.Concat(crds, f.Layout.Installations(c)), f.Layout.CoversAllCRDs(crds)
	dirs := f.Layout.Pieces(c)
	if built != "" {
		dirs = append(dirs, built)
	}
	for _, dir := range dirs {
		o, err := f.overlays.Open(path.Join(f.Out, dir))
		if err != nil {
			return x, diag.PrefixPositions(f.prefix, err)
		}
		x.Overlays = append(x.Overlays, o)
	}
	f.inputs[key] = x
	return x, nil
}

// IsCRDFile reports whether a file is in the directory of CRDs, which overlays do not change.
func (f *Fleet) IsCRDFile(name string) bool {
	return strings.HasPrefix(name, f.DisplayPath(path.Join(f.Out, layout.CRDs))+"/")
}

// State returns the state of a cluster with these inputs: the objects that are applied directly, and the
// objects of its overlays.
func (g *Base) State(x Inputs) (diff.State, error) {
	l := g.layer(x.asIs)
	out := g.Start
	out.KubernetesVersion, out.Objects = x.Version, slices.Clip(l.direct)
	operators := []map[string]bool{l.directOperators}
	for _, o := range x.Overlays {
		objects, by, err := g.objects(l, o)
		if err != nil {
			return out, err
		}
		out.Objects, operators = append(out.Objects, objects...), append(operators, by)
	}
	return out.Keep(func(operator string) bool {
		return !l.listableOperators[operator] || slices.ContainsFunc(operators, func(by map[string]bool) bool { return by[operator] })
	}), nil
}

// objects returns the objects of an overlay, and their operators in the format of operatorKeys. It applies
// simple patches itself, and runs a kustomize build only if necessary.
func (g *Base) objects(l *layer, o *overlay.Overlay) ([]diff.Object, map[string]bool, error) {
	x, err := g.listing(l, o)
	if err != nil {
		return nil, nil, err
	}
	if objects := slices.Clone(x.objects); x.simple && g.fleet.applyEdits(o, objects, x.indexes) {
		return objects, x.operators, nil
	}
	objects, err := g.fleet.buildObjects(o, x.objects, x.indexes)
	return objects, operatorKeys(objects), err
}

// applyEdits applies the patches of an overlay to the objects in listed, in place. at has the index of each
// object. If only a kustomize build can determine the result, it returns false. Some objects may then already
// be patched.
func (f *Fleet) applyEdits(o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) bool {
	edits, plain := o.Edits()
	if !plain || len(edits) == 0 {
		return plain
	}
	sources := f.sources(o)
	for _, e := range edits {
		i, found := at[e.Key]
		if !found {
			continue
		}
		whole := listed[i].Whole()
		content, ok := e.Apply(whole)
		if !ok {
			return false
		}
		if !reflect.DeepEqual(content, whole) {
			listed[i] = diff.NewBuilt(content, f.Pins(), sources)
		}
	}
	return true
}

// buildObjects returns the objects that kustomize builds from an overlay. For an object that the overlay does
// not change, it returns the object from listed. at has the index of each listed object.
func (f *Fleet) buildObjects(o *overlay.Overlay, listed []diff.Object, at map[k8s.Key]int) ([]diff.Object, error) {
	built, err := f.Build(o)
	if err != nil {
		return nil, diag.PrefixPositions(f.prefix, err)
	}
	var out []diff.Object
	sources := f.sources(o)
	for _, data := range built {
		object, err := diff.ParseBuilt(data, f.Pins(), sources)
		if err != nil {
			return nil, err
		}
		if diff.IsInstallation(object.Content) {
			continue
		}
		if i, there := at[object.Key()]; there && reflect.DeepEqual(listed[i].Whole(), object.Content) {
			object = listed[i]
		}
		out = append(out, object)
	}
	return out, nil
}

// maxCachedBuilds limits the number of cached builds. A build of hundreds of operators takes 10 MB.
const maxCachedBuilds = 8

// Build runs a kustomize build of an overlay. It caches the result by the digest of the overlay.
func (f *Fleet) Build(o *overlay.Overlay) ([][]byte, error) {
	if built, ok := f.pool.built[o.Digest]; ok {
		return built, nil
	}
	built, err := o.Build()
	if err == nil {
		if len(f.pool.built) >= maxCachedBuilds {
			clear(f.pool.built)
		}
		f.pool.built[o.Digest] = built
	}
	return built, err
}

// sources returns the files of an overlay that are not part of the base. The user's own files come first, then
// generated files.
func (f *Fleet) sources(o *overlay.Overlay) []diff.File {
	var names []string
	files := map[string][]byte{}
	for k := range o.Kustomizations() {
		if !f.IsUserFile(k.File) && !strings.HasPrefix(k.File, path.Join(f.Out, "clusters")+"/") {
			continue // this kustomization and all its files belong to the base
		}
		for _, name := range k.Files() {
			names, files[name] = append(names, name), k.Data(name)
		}
	}
	slices.Sort(names)
	var out, generated []diff.File
	for _, name := range slices.Compact(names) {
		file := diff.File{Path: f.DisplayPath(name), Data: files[name]}
		switch {
		case name == o.File:
			out = append([]diff.File{file}, out...)
		case f.IsUserFile(name):
			out = append(out, file)
		case strings.HasPrefix(name, path.Join(f.Out, "clusters")+"/"):
			generated = append(generated, file)
		}
	}
	if out = append(out, generated...); len(out) == 0 {
		out = []diff.File{{Path: f.DisplayPath(o.File), Data: o.Data(o.File)}}
	}
	return out
}
