package fleet

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Patch is the effect of an overlay: changed and added objects. The value of a removed object is nil.
type Patch map[k8s.Key]k8s.Object

// Apply returns objects with the changes and without removed objects. It does not add new objects.
func (p Patch) Apply(objects []k8s.Object) []k8s.Object {
	var out []k8s.Object
	for _, o := range objects {
		if changed, ok := p[o.Key()]; ok {
			o = changed
		}
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

// BuildDir builds a directory of the tree, including the user's overlays, as kustomize does. It
// returns the objects as JSON.
func (f *Fleet) BuildDir(dir string) ([][]byte, error) {
	o, err := f.overlays.Open(path.Join(f.Out, dir))
	if err != nil {
		return nil, err
	}
	return o.BuildTree(func(name string) bool { return !f.IsUserFile(name) })
}

// Patches returns a function for a cluster's Patch: the changes that the user's overlays make to the rendered
// objects. The function builds only the objects that an overlay selects. It ignores an overlay that does not
// build, because a rule reports its error. The results are cached and shared.
func (f *Fleet) Patches() func(cluster string) Patch {
	if f.patches == nil {
		f.patches = map[[32]byte]Patch{}
	}
	known := f.patches
	return func(cluster string) Patch {
		out := Patch{}
		x, err := f.Inputs(cluster)
		for _, o := range x.Overlays {
			if err != nil || !f.UsesUserFiles(o) {
				continue
			}
			part, ok := known[o.Digest]
			if !ok {
				part = f.patchOf(o)
				known[o.Digest] = part
			}
			maps.Copy(out, part)
		}
		return out
	}
}

// patchOf returns the changes that the user's kustomizations in an overlay make, and the user's own objects in
// the overlay. In some trees, kustomizations of single operators below the overlay include kustomizations of
// the user.
func (f *Fleet) patchOf(o *overlay.Overlay) Patch {
	out := Patch{}
	add := func(before []k8s.Key, built [][]byte, err error) {
		if err == nil {
			maps.Copy(out, newPatch(o.File, before, built))
		}
	}
	for _, own := range o.OwnResources(f.IsUserFile) {
		built, err := own.Build()
		add(nil, built, err)
	}
	levels := o.PatchedLevels(f.IsUserFile)
	nested := slices.ContainsFunc(levels, func(level *overlay.Overlay) bool {
		below := level.Kustomizations()
		return slices.ContainsFunc(levels, func(other *overlay.Overlay) bool { return other != level && below[other] })
	})
	switch {
	case f.IsUserFile(o.File):
		add(o.BuildSelected(f.IsUserFile))
	case nested:
		rendered, err := o.BuildTree(func(name string) bool { return !f.IsUserFile(name) })
		built, err2 := o.Build()
		before := slices.Collect(maps.Keys(newPatch(o.File, nil, rendered)))
		add(before, built, errors.Join(err, err2))
	default:
		for _, level := range levels {
			add(level.BuildSelected(f.IsUserFile))
		}
	}
	return out
}

// newPatch returns the changes that a kustomize build made. before has the keys of the objects before the
// build. Only errors use file.
func newPatch(file string, before []k8s.Key, built [][]byte) Patch {
	out := Patch{}
	for _, key := range before {
		out[key] = nil
	}
	for _, data := range built {
		objects, _ := yamlnode.Objects(file, data, yamlnode.Limits{}) // no error: kustomize has encoded them
		for _, object := range objects {
			out[k8s.Object(object).Key()] = object
		}
	}
	return out
}

// IsUserFile reports whether a file is outside of the tree.
func (t *Tree) IsUserFile(name string) bool {
	return !strings.HasPrefix(name, strings.TrimPrefix(t.Out+"/", "./"))
}

// UsesUserFiles reports whether an overlay uses files outside of the tree. Without such files, the build of an
// overlay cannot fail.
func (t *Tree) UsesUserFiles(o *overlay.Overlay) bool {
	for k := range o.Kustomizations() {
		if t.IsUserFile(k.File) && (k.Changes() || slices.ContainsFunc(k.Files(), func(name string) bool { return name != k.File })) {
			return true
		}
	}
	return false
}
