package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// PatchedLevels returns the rendered kustomizations of the build that directly include a component of the
// user, children first. The result may contain o. isUser reports whether a kustomization file is the user's
// and not rendered.
func (o *Overlay) PatchedLevels(isUser func(file string) bool) []*Overlay {
	var levels []*Overlay
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) {
		if !isUser(k.File) && slices.ContainsFunc(k.children, func(sub *Overlay) bool { return sub.IsComponent() && isUser(sub.File) }) {
			levels = append(levels, k)
		}
	})
	return levels
}

// OwnResources returns the kustomizations of the build that contain the user's own objects. These are the
// user's kustomizations that a rendered one includes as resources. If a rendered one has no other
// resources, it is returned instead. isUser reports whether a kustomization file is the user's.
func (o *Overlay) OwnResources(isUser func(file string) bool) []*Overlay {
	var out []*Overlay
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) {
		if isUser(k.File) {
			return
		}
		own := slices.DeleteFunc(slices.Clone(k.children), func(sub *Overlay) bool { return sub.IsComponent() || !isUser(sub.File) })
		mixed := len(k.listedFiles) > 0 || slices.ContainsFunc(k.children, func(sub *Overlay) bool { return !isUser(sub.File) })
		if len(own) > 0 && !mixed {
			own = []*Overlay{k}
		}
		out = append(out, own...)
	})
	return out
}

// BuildSelected builds only those resource files of o that have objects which a user's kustomization
// selects. That is much faster than building all objects. isUser reports whether a kustomization file is
// the user's. before lists the objects in the built files. If a user's kustomization renames objects or
// runs transformers, BuildSelected builds nothing.
func (o *Overlay) BuildSelected(isUser func(file string) bool) (before []k8s.Key, built [][]byte, err error) {
	var targets []types.Selector
	var images []string // names in entries of images
	for _, k := range o.sortedKustomizations() {
		if !isUser(k.File) {
			continue
		}
		if !k.keepsNames() {
			return nil, nil, nil
		}
		for _, p := range k.kustomization.Patches {
			targets = append(targets, k.targetsOf(p)...)
		}
		for _, image := range k.kustomization.Images {
			images = append(images, image.Name)
		}
		for _, r := range k.replacements() {
			if r.Source != nil {
				targets = append(targets, selectorOf(r.Source.Gvk, r.Source.Namespace, r.Source.Name))
			}
			for _, target := range r.Targets {
				if target.Select != nil {
					targets = append(targets, *target.Select)
				}
			}
		}
	}
	part, inner, files := o.kustomization, types.Kustomization{}, map[string][]byte{}
	if len(targets)+len(images) > 0 {
		for _, k := range o.sortedKustomizations() {
			for _, name := range k.listedFiles {
				if isUser(name) {
					continue
				}
				objects, _ := yamlnode.Objects(name, k.ownFiles[name], yamlnode.Limits{}) // ignore the error: the build reports invalid YAML
				var keys []k8s.Key
				for _, object := range objects {
					keys = append(keys, k8s.Object(object).Key())
				}
				if slices.ContainsFunc(targets, func(target types.Selector) bool {
					found, known := selectsAny(target, keys)
					return found || !known
				}) || slices.ContainsFunc(objects, func(o map[string]any) bool {
					used := imagesOf(o)
					return slices.ContainsFunc(images, func(name string) bool { return matchesAnyImage(name, used) })
				}) {
					file := fmt.Sprintf("%d.yaml", len(inner.Resources))
					inner.Resources = append(inner.Resources, file)
					files[path.Join(o.Dir, selectedDir, file)] = k.ownFiles[name]
					before = append(before, keys...)
				}
			}
		}
	}
	part.Resources = nil
	if len(before) > 0 {
		inner.Patches = o.renderedPatches(isUser)
		if files[path.Join(o.Dir, selectedDir, "kustomization.yaml")], err = json.Marshal(inner); err != nil {
			return nil, nil, err
		}
		part.Resources = []string{selectedDir}
	}
	for _, sub := range o.children {
		if sub.IsComponent() {
			maps.Copy(files, sub.All())
		}
	}
	for name, data := range o.ownFiles {
		if name != o.File && !slices.Contains(o.listedFiles, name) {
			files[name] = data
		}
	}
	if files[o.File], err = json.Marshal(part); err != nil {
		return nil, nil, err
	}
	built, err = o.build(files)
	return before, built, err
}

// selectedDir is the directory with the selected objects in a build by BuildSelected.
const selectedDir = "selected"

// renderedPatches returns the patches that have a target and are in rendered kustomizations (isUser returns
// false), in the order of the build. The result includes the patches for the config of a cluster.
func (o *Overlay) renderedPatches(isUser func(file string) bool) []types.Patch {
	var out []types.Patch
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) {
		if k == o || isUser(k.File) {
			return
		}
		for _, p := range k.kustomization.Patches {
			if p.Target != nil {
				if p.Path != "" {
					p.Patch, p.Path = string(k.ownFiles[k.path(p.Path)]), ""
				}
				out = append(out, p)
			}
		}
	})
	return out
}

// keepsNames reports whether o only patches, replaces, labels and adds objects.
func (o *Overlay) keepsNames() bool {
	k := o.kustomization
	k.TypeMeta, k.MetaData, k.Resources, k.Components, k.Patches, k.Replacements, k.Replicas = types.TypeMeta{}, nil, nil, nil, nil, nil, nil
	k.Labels, k.CommonLabels, k.CommonAnnotations, k.Images = nil, nil, nil, nil //nolint:staticcheck // deprecated fields are still in use
	k.ConfigMapGenerator, k.SecretGenerator, k.GeneratorOptions, k.SortOptions, k.BuildMetadata = nil, nil, nil, nil, nil
	return reflect.DeepEqual(k, types.Kustomization{})
}
