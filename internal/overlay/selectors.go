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

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Selector is a part of a kustomization that selects objects: the target of a patch or replacement,
// or an entry of images. kustomize does not report a selector that selects nothing.
type Selector struct {
	Pos  diag.Pos
	Hits int // number of objects that it selects in a build

	field  string         // "patch", "replacement" or "image"
	target types.Selector // target of a patch or replacement
	image  string         // regular expression for image names
}

// Selectors returns the selectors in the files for which include returns true, each with the number of
// objects that it selects in a build of o. built are the objects of the build. Counting the objects that a
// target selects requires another kustomize build, because earlier changes in the build affect the
// selection.
func (o *Overlay) Selectors(include func(file string) bool, built [][]byte) ([]Selector, error) {
	files := o.flatten()
	var out []Selector
	for _, k := range o.sortedKustomizations() {
		before := len(out)
		if !include(k.File) {
			continue
		}
		data, err := json.Marshal(k.marked(&out))
		if err != nil {
			return nil, err
		}
		if len(out) > before {
			files[k.File] = data
		}
	}
	if len(out) > 0 {
		objects, err := o.build(files)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			for i := range out {
				if bytes.Contains(object, []byte(hitAnnotation(i))) {
					out[i].Hits++
				}
			}
		}
	}
	return append(out, o.imageSelectors(include, built)...), nil
}

// marked returns the kustomization of o with additional patches that mark each object that a target
// selects. It adds the targets to out.
func (o *Overlay) marked(out *[]Selector) types.Kustomization {
	marked := o.kustomization
	marked.Patches, marked.Replacements = nil, nil
	for i, p := range o.kustomization.Patches {
		if p.Target != nil {
			mark := fmt.Sprintf("{apiVersion: v1, kind: Any, metadata: {name: any, annotations: {%q: \"\"}}}", hitAnnotation(len(*out)))
			marked.Patches = append(marked.Patches, types.Patch{Patch: mark, Target: p.Target})
			*out = append(*out, Selector{Pos: o.position(fmt.Sprintf("patches[%d].target", i)), field: "patch", target: *p.Target})
		}
		if text := p.Patch + string(o.ownFiles[o.path(p.Path)]); !strings.Contains(text, "$patch") { // not for patches that delete objects: the mark would be deleted, too
			marked.Patches = append(marked.Patches, p)
		}
	}
	value := "selected"
	for _, r := range o.replacements() {
		for j, target := range r.Targets {
			if target.Select == nil {
				continue // invalid: the build reports it
			}
			mark := &types.TargetSelector{
				Select: target.Select, Reject: target.Reject,
				FieldPaths: []string{"metadata.annotations." + strings.ReplaceAll(hitAnnotation(len(*out)), ".", `\.`)}, Options: &types.FieldOptions{Create: true},
			}
			marked.Replacements = append(marked.Replacements, types.ReplacementField{Replacement: types.Replacement{SourceValue: &value, Targets: []*types.TargetSelector{mark}}})
			*out = append(*out, Selector{Pos: o.position(fmt.Sprintf(r.targets, j)), field: "replacement", target: *target.Select})
		}
		marked.Replacements = append(marked.Replacements, types.ReplacementField{Replacement: r.Replacement})
	}
	return marked
}

// replacement is a replacement in a kustomization or in a file that it refers to.
type replacement struct {
	types.Replacement
	targets string // position of a target, as a format with the index of the target; for a file with replacements, position of its path
}

func (o *Overlay) replacements() []replacement {
	var out []replacement
	for i, r := range o.kustomization.Replacements {
		if r.Path == "" {
			out = append(out, replacement{r.Replacement, fmt.Sprintf("replacements[%d].targets[%%d].select", i)})
			continue
		}
		text := o.ownFiles[o.path(r.Path)]
		list, ok := decodeList(text)
		if objects, _ := yamlnode.Objects(r.Path, text, yamlnode.Limits{}); !ok && len(objects) == 1 { // ignore the error: the build reports invalid YAML
			list = []any{objects[0]}
		}
		var read []types.Replacement
		if data, err := json.Marshal(list); err == nil && json.Unmarshal(data, &read) == nil {
			for _, r := range read {
				out = append(out, replacement{r, fmt.Sprintf("replacements[%d].path%%.0d", i)})
			}
		}
	}
	return out
}

// imageSelectors returns the entries of images in the files for which include returns true. An
// entry counts as used if a container in the build has its old or new name, or if another entry may
// have renamed the image. If a kustomization configures which fields contain images, the result is
// empty.
func (o *Overlay) imageSelectors(include func(file string) bool, built [][]byte) []Selector {
	var out []Selector
	renamed := o.newImageNames()
	if len(renamed) == 0 {
		return nil
	}
	images := slices.Concat(containerImages(built), renamed)
	for _, k := range o.sortedKustomizations() {
		if len(k.kustomization.Configurations) > 0 {
			return nil
		}
		for i, entry := range k.kustomization.Images {
			if include(k.File) {
				s := Selector{Pos: k.position(fmt.Sprintf("images[%d].name", i)), field: "image", image: entry.Name}
				if matchesAnyImage(entry.Name, images) || entry.NewName != "" && matchesAnyImage(regexp.QuoteMeta(entry.NewName), images[:len(images)-len(renamed)]) {
					s.Hits = 1
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// newImageNames returns the new names in all entries of images.
func (o *Overlay) newImageNames() []string {
	var out []string
	for k := range o.Kustomizations() {
		for _, entry := range k.kustomization.Images {
			out = append(out, entry.NewName)
		}
	}
	return out
}

// matchesAnyImage reports whether one of the images matches the name in an entry of images. As in
// kustomize, the name is a regular expression.
func matchesAnyImage(name string, images []string) bool {
	pattern, err := regexp.Compile("^" + name + `(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?$`)
	return err == nil && slices.ContainsFunc(images, pattern.MatchString)
}

// HasTargets reports whether every selector and every strategic merge patch selects at least one of the objects, by
// kind and name, or one of the images. It checks the files for which include returns true. For a target with labels
// or annotations it returns false, because only a build can determine which objects have them.
func (o *Overlay) HasTargets(include func(file string) bool, objects []k8s.Key, images []string) bool {
	images = append(o.newImageNames(), images...)
	for k := range o.Kustomizations() {
		if !include(k.File) {
			continue
		}
		if slices.ContainsFunc(k.kustomization.Images, func(entry types.Image) bool { return !matchesAnyImage(entry.Name, images) }) {
			return false
		}
		var targets []types.Selector
		for _, p := range k.kustomization.Patches {
			targets = append(targets, k.targetsOf(p)...)
		}
		for _, r := range k.replacements() {
			for _, target := range r.Targets {
				if target.Select == nil || len(target.Reject) > 0 {
					return false
				}
				targets = append(targets, *target.Select)
			}
		}
		if slices.ContainsFunc(targets, func(target types.Selector) bool {
			found, known := selectsAny(target, objects)
			return !found || !known
		}) {
			return false
		}
	}
	return true
}

// HasBuiltTargets is like HasTargets, for the objects of a build.
func (o *Overlay) HasBuiltTargets(include func(file string) bool, built [][]byte) bool {
	var keys []k8s.Key
	for _, data := range built {
		var object k8s.Object
		if json.Unmarshal(data, &object) != nil {
			return false
		}
		keys = append(keys, object.Key())
	}
	return o.HasTargets(include, keys, containerImages(built))
}

func selectorOf(gvk resid.Gvk, namespace, name string) types.Selector {
	return types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Group: gvk.Group, Kind: gvk.Kind}, Name: regexp.QuoteMeta(name), Namespace: regexp.QuoteMeta(namespace)}}
}

// selectsAny reports whether a target selects one of the objects by kind and name. known is false
// if this depends on the labels or annotations of the objects.
func selectsAny(target types.Selector, objects []k8s.Key) (found, known bool) {
	target.Version = ""
	regex, err := types.NewSelectorRegex(&target)
	if err != nil || target.LabelSelector+target.AnnotationSelector != "" {
		return false, false
	}
	return slices.ContainsFunc(objects, func(key k8s.Key) bool {
		return regex.MatchGvk(resid.Gvk{Group: key.Group, Kind: key.Kind}) && regex.MatchName(key.Name) && regex.MatchNamespace(key.Namespace)
	}), true
}

// targetsOf returns the target of a patch. If the patch has no target, it returns selectors for the objects
// in the text of the patch.
func (o *Overlay) targetsOf(p types.Patch) []types.Selector {
	if p.Target != nil {
		return []types.Selector{*p.Target}
	}
	var out []types.Selector
	docs, _ := yamlnode.Objects(o.path(p.Path), append([]byte(p.Patch), o.ownFiles[o.path(p.Path)]...), yamlnode.Limits{}) // ignore the error: the build reports invalid YAML
	for _, d := range docs {
		key := k8s.Object(d).Key()
		out = append(out, selectorOf(resid.Gvk{Group: key.Group, Kind: key.Kind}, key.Namespace, key.Name))
	}
	return out
}

// hitAnnotation returns the name of the annotation that marks the objects selected by target i.
func hitAnnotation(i int) string { return fmt.Sprintf("hit.quayside.dev/p%dp", i) }

// sortedKustomizations returns the kustomizations of the build, sorted by directory.
func (o *Overlay) sortedKustomizations() []*Overlay {
	return slices.SortedFunc(maps.Keys(o.Kustomizations()), func(a, b *Overlay) int { return strings.Compare(a.Dir, b.Dir) })
}

// UnmatchedSelector is a selector that selects nothing.
type UnmatchedSelector struct {
	Pos diag.Pos
	Msg string
}

// UnmatchedSelectors returns the selectors of the kustomization itself that select nothing. built are the objects
// of the build.
func (o *Overlay) UnmatchedSelectors(built [][]byte) []UnmatchedSelector {
	out, _ := memo.Remember(o.results, "overlay.UnmatchedSelectors", o.input(), func() ([]UnmatchedSelector, error) {
		own := func(file string) bool { return file == o.File }
		if o.HasBuiltTargets(own, built) {
			return nil, nil
		}
		var out []UnmatchedSelector
		selectors, err := o.Selectors(own, built)
		for _, s := range selectors {
			if s.Hits == 0 {
				out = append(out, UnmatchedSelector{s.Pos, s.Unmatched(built)})
			}
		}
		return out, err // with an error, the number of selected objects is unknown
	})
	return out
}

// Unmatched returns the message for a selector that selects nothing. It suggests similar names from
// the objects of the build.
func (s Selector) Unmatched(built [][]byte) string {
	if s.image != "" {
		var images []string
		for _, image := range containerImages(built) {
			image, _, _ = strings.Cut(image, "@")
			if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
				image = image[:i]
			}
			images = append(images, image)
		}
		slices.Sort(images)
		images = slices.Compact(images)
		hint := diag.DidYouMean(s.image, images)
		if hint == "" && len(images) > 0 {
			hint = " (available: " + diag.Some(images, 5) + ")"
		}
		return fmt.Sprintf("no container has the image %q of this entry%s", s.image, hint)
	}
	var names []string
	for _, data := range built {
		var object map[string]any
		if json.Unmarshal(data, &object) == nil && k8s.Text(object, "kind") == s.target.Kind {
			names = append(names, k8s.Text(object, "metadata", "name"))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("the target of this %s does not exist: %s%s", s.field, describeTarget(s.target), diag.DidYouMean(s.target.Name, slices.Compact(names)))
}

// containerImages returns the images in the objects of a build that an entry of images can change.
func containerImages(built [][]byte) []string {
	var out []string
	for _, data := range built {
		var object map[string]any
		if bytes.Contains(data, []byte("ontainers")) && json.Unmarshal(data, &object) == nil {
			out = append(out, imagesOf(object)...)
		}
	}
	slices.Sort(out)
	return out
}

// imagesOf returns the images in an object that an entry of images can change. These are the images of
// containers and of image volumes, at any depth. CRDs are skipped.
func imagesOf(object map[string]any) []string {
	var out []string
	add := func(image string) {
		if image != "" {
			out = append(out, image)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, c := range k8s.Containers(v) {
				add(k8s.Text(c, "image"))
			}
			for _, volume := range k8s.Items(v, "volumes") {
				add(k8s.Text(volume, "image", "reference"))
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	if !k8s.IsCRD(object) {
		walk(object)
	}
	return out
}

// describeTarget formats the fields of a target for a message.
func describeTarget(target types.Selector) string {
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
