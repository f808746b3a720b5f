package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/k8s"
)

// Patch is a patch of a kustomization with a target.
type Patch struct {
	Pos    diag.Pos       // of its target
	Target types.Selector // its target
	Hits   int            // number of selected objects in one build
}

// Patches returns the patches with a target in the files that include accepts, with the number of
// objects that they select in a build of o. This requires a kustomize build, because the selection
// depends on all earlier changes, and kustomize ignores targets that select nothing.
func (o *Overlay) Patches(include func(file string) bool) ([]Patch, error) {
	files := o.flatten()
	var out []Patch
	for _, k := range o.sortedKustomizations() {
		if !include(k.File) || !slices.ContainsFunc(k.kustomization.Patches, func(p types.Patch) bool { return p.Target != nil }) {
			continue
		}
		marked := k.kustomization
		marked.Patches = nil
		for i, p := range k.kustomization.Patches {
			if p.Target != nil {
				mark := fmt.Sprintf("{apiVersion: v1, kind: Any, metadata: {name: any, annotations: {%q: \"\"}}}", hitAnnotation(len(out)))
				marked.Patches = append(marked.Patches, types.Patch{Patch: mark, Target: p.Target})
				out = append(out, Patch{Pos: k.position(fmt.Sprintf("patches[%d].target", i)), Target: *p.Target})
			}
			if text := p.Patch + string(k.ownFiles[k.path(p.Path)]); !strings.Contains(text, "$patch") { // deleting an object would also delete its mark
				marked.Patches = append(marked.Patches, p)
			}
		}
		data, err := json.Marshal(marked)
		if err != nil {
			return nil, err
		}
		files[k.File] = data
	}
	if len(out) == 0 {
		return nil, nil
	}
	objects, err := o.build(files)
	for _, object := range objects {
		for i := range out {
			if bytes.Contains(object, []byte(hitAnnotation(i))) {
				out[i].Hits++
			}
		}
	}
	return out, err
}

// HasTargets reports whether each patch with a target, and each strategic merge patch, in the files
// that include accepts selects one of the objects by kind and name. It returns false for patches that
// select by labels, for which this cannot be decided without a build.
func (o *Overlay) HasTargets(include func(file string) bool, objects []k8s.Key) bool {
	for k := range o.Kustomizations() {
		if !include(k.File) {
			continue
		}
		for _, p := range k.kustomization.Patches {
			for _, target := range k.targetsOf(p) {
				regex, err := types.NewSelectorRegex(&target)
				if err != nil || target.LabelSelector+target.AnnotationSelector != "" || !slices.ContainsFunc(objects, func(key k8s.Key) bool {
					return regex.MatchGvk(resid.Gvk{Group: key.Group, Kind: key.Kind}) && regex.MatchName(key.Name) && regex.MatchNamespace(key.Namespace)
				}) {
					return false
				}
			}
		}
	}
	return true
}

// targetsOf returns the target of a patch or, without one, the objects in its text.
func (o *Overlay) targetsOf(p types.Patch) []types.Selector {
	if p.Target != nil {
		target := *p.Target
		target.Version = ""
		return []types.Selector{target}
	}
	var out []types.Selector
	docs, _ := yamlnode.Objects(o.path(p.Path), append([]byte(p.Patch), o.ownFiles[o.path(p.Path)]...), yamlnode.Limits{}) // the build reports invalid YAML
	for _, d := range docs {
		key := k8s.Object(d).Key()
		out = append(out, types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Group: key.Group, Kind: key.Kind}, Name: regexp.QuoteMeta(key.Name), Namespace: regexp.QuoteMeta(key.Namespace)}})
	}
	return out
}

// hitAnnotation returns the annotation that marks the objects selected by a
// patch.
func hitAnnotation(i int) string { return fmt.Sprintf("hit.quayside.dev/p%dp", i) }

// sortedKustomizations returns the kustomizations of a build by directory.
func (o *Overlay) sortedKustomizations() []*Overlay {
	return slices.SortedFunc(maps.Keys(o.Kustomizations()), func(a, b *Overlay) int { return strings.Compare(a.Dir, b.Dir) })
}

// patchPosition returns the position of the patch without a match that an error of kustomize
// names, such as "Deployment.v1.apps/web.shop". If it names none, the result is the position of
// the kustomization being built, or else of o's file.
func (o *Overlay) patchPosition(message string) diag.Pos {
	for _, k := range o.sortedKustomizations() {
		for i, p := range k.kustomization.Patches {
			file, text := k.path(p.Path), k.ownFiles[k.path(p.Path)]
			if p.Path == "" {
				file, text = k.File, []byte(p.Patch)
			}
			docs, _ := yamlnode.Documents(file, text, yamlnode.Limits{}) // kustomize has parsed it
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				_, meta := yamlnode.Field(doc, "metadata")
				if kind == nil || meta == nil {
					continue
				}
				_, name := yamlnode.Field(meta, "name")
				if name == nil || !strings.Contains(message, kind.Value+".") || !strings.Contains(message, "/"+name.Value+".") {
					continue
				}
				if p.Path == "" {
					return k.position(fmt.Sprintf("patches[%d].patch", i))
				}
				return yamlnode.At(file, name)
			}
		}
	}
	if m := accumulationPath.FindAllStringSubmatch(message, -1); m != nil {
		for _, k := range o.sortedKustomizations() {
			if k.Dir == m[len(m)-1][1] {
				return diag.Pos{File: k.File}
			}
		}
	}
	return diag.Pos{File: o.File}
}

// accumulationPath matches the nested directories that kustomize was processing when it failed. The
// last match is the innermost directory.
var accumulationPath = regexp.MustCompile(`accumulation of path '/([^']+)'`)

// DescribeTarget returns the fields of a target for a message.
func DescribeTarget(target types.Selector) string {
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
	return strings.Join(words, ", ")
}
