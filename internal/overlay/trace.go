package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Trace maps the values of built objects to their origins.
type Trace struct {
	top     *Overlay
	order   []*Overlay // kustomizations, each after those that it refers to
	origins []string   // file of each object, by its path; empty if unknown
	docs    map[string][]*yaml.Node
	patches []patchText // in the order of the kustomizations
}

// Trace returns the origins of the objects of a build. It builds o once more with origin
// annotations of kustomize. This build is separate because patches can see these annotations. If
// the two builds differ, no origin is known.
func (o *Overlay) Trace() *Trace {
	t := &Trace{top: o, docs: map[string][]*yaml.Node{}}
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) { t.order = append(t.order, k) })
	for _, k := range t.order {
		t.patches = append(t.patches, k.patchTexts()...)
	}
	marked := o.kustomization
	marked.BuildMetadata = append(slices.Clone(marked.BuildMetadata), types.OriginAnnotations)
	data, err := json.Marshal(marked)
	if err != nil {
		return t
	}
	files := o.All()
	files[o.File] = data
	objects, err := o.runKustomize(files)
	if err != nil {
		return t
	}
	for _, object := range objects.Resources() {
		file := ""
		if origin, err := object.GetOrigin(); err == nil && origin != nil && origin.Path != "" {
			file = o.path(origin.Path)
		}
		t.origins = append(t.origins, file)
	}
	return t
}

// Places returns the origins of the keys and values of an object, by position in n. n is object i of
// Build, parsed as if it were in the file of the overlay. The origin of a value is its position in
// the file of the resource if it is unchanged there, or else the patch that sets it, or else the
// namespace field of a kustomization. Other values have no origin.
func (t *Trace) Places(i int, n *yaml.Node) map[diag.Pos]diag.Pos {
	p := valueOrigins{file: t.top.File, origins: map[diag.Pos]diag.Pos{}}
	origin, file := t.origin(i, n)
	if origin != nil {
		p.walk(n, origin, func(n *yaml.Node) diag.Pos { return yamlnode.At(file, n) })
	}
	for _, patch := range slices.Backward(t.patches) {
		if patch.matches(n, origin) {
			patch.recordOrigins(p, n)
		}
	}
	_, namespace := yamlnode.Field(findField(n, "metadata"), "namespace")
	for _, k := range slices.Backward(t.order) {
		if pos, ok := k.positions()["namespace"]; ok && namespace != nil && k.kustomization.Namespace == namespace.Value {
			p.record(namespace, pos)
		}
	}
	return p.origins
}

// origin returns the source document of an object and its file, or nil if unknown.
func (t *Trace) origin(i int, n *yaml.Node) (doc *yaml.Node, file string) {
	if i >= len(t.origins) || t.origins[i] == "" {
		return nil, ""
	}
	file = t.origins[i]
	docs, read := t.docs[file]
	if !read {
		docs, _ = yamlnode.Documents(file, t.top.All()[file], yamlnode.Limits{}) // kustomize has parsed it
		docs = flattenLists(docs)
		t.docs[file] = docs
	}
	now := objectIDOf(n)
	var named, renamed []*yaml.Node
	for _, doc := range docs {
		switch was := objectIDOf(doc); {
		case was == now:
			named = append(named, doc)
		case now.mayBeRenamed(was):
			renamed = append(renamed, doc)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], file
	case len(named) == 0 && len(renamed) == 1:
		return renamed[0], file
	default:
		return nil, ""
	}
}

// flattenLists replaces documents that are lists by their items.
func flattenLists(docs []*yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for _, doc := range docs {
		if items := findField(doc, "items"); strings.HasSuffix(objectIDOf(doc).kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
			out = append(out, flattenLists(items.Content)...)
		} else {
			out = append(out, doc)
		}
	}
	return out
}

func findField(n *yaml.Node, name string) *yaml.Node {
	_, v := yamlnode.Field(n, name)
	return v
}

// objectID identifies an object within one file.
type objectID struct{ apiVersion, kind, name string }

func objectIDOf(n *yaml.Node) (h objectID) {
	h.apiVersion, _ = yamlnode.Text(findField(n, "apiVersion"))
	h.kind, _ = yamlnode.Text(findField(n, "kind"))
	h.name, _ = yamlnode.Text(findField(findField(n, "metadata"), "name"))
	return h
}

// mayBeRenamed reports whether h can result from was by adding a prefix and a suffix to the name.
func (h objectID) mayBeRenamed(was objectID) bool {
	return h.apiVersion == was.apiVersion && h.kind == was.kind && strings.Contains(h.name, was.name)
}

// valueOrigins holds the origins of the parts of one object.
type valueOrigins struct {
	file    string
	origins map[diag.Pos]diag.Pos
}

// record sets the origin of n, unless it is already set.
func (p valueOrigins) record(n *yaml.Node, pos diag.Pos) {
	if _, known := p.origins[yamlnode.At(p.file, n)]; !known {
		p.origins[yamlnode.At(p.file, n)] = pos
	}
}

// walk records the positions of the parts of an object that also appear in source. at returns
// the position of a node of source.
func (p valueOrigins) walk(n, source *yaml.Node, at func(*yaml.Node) diag.Pos) {
	switch {
	case n.Kind != source.Kind:
	case n.Kind == yaml.MappingNode:
		p.record(n, at(source))
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key, value := yamlnode.Field(source, n.Content[i].Value); key != nil {
				p.record(n.Content[i], at(key))
				p.walk(n.Content[i+1], value, at)
			}
		}
	case n.Kind == yaml.SequenceNode:
		p.record(n, at(source))
		for i, item := range n.Content {
			if of := findCounterpart(item, source.Content, i); of != nil {
				p.walk(item, of, at)
			}
		}
	case equalScalars(n, source):
		p.record(n, at(source))
	}
}

// findCounterpart returns the element of items that corresponds to item, which has index i: the
// element with the same name, or else the element at i.
func findCounterpart(item *yaml.Node, items []*yaml.Node, i int) *yaml.Node {
	if name := findField(item, "name"); name != nil {
		at := slices.IndexFunc(items, func(n *yaml.Node) bool { of := findField(n, "name"); return of != nil && equalScalars(name, of) })
		if at < 0 {
			return nil
		}
		i = at
	}
	if i < len(items) {
		return items[i]
	}
	return nil
}

// equalScalars reports whether two scalars have the same value.
func equalScalars(a, b *yaml.Node) bool {
	x, errA := yamlnode.JSON(a)
	y, errB := yamlnode.JSON(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// patchText is the text of one patch of a kustomization.
type patchText struct {
	target *types.Selector // nil: the patch itself names its target
	docs   []*yaml.Node    // documents of a strategic merge patch
	ops    []*yaml.Node    // operations of a JSON patch
	at     func(*yaml.Node) diag.Pos
}

// patchTexts returns the patches of o, in the order of its fields.
func (o *Overlay) patchTexts() []patchText {
	var out []patchText
	add := func(target *types.Selector, field, file, text string) {
		var p patchText
		if file != "" {
			p = parsePatch(o.path(file), o.ownFiles[o.path(file)], func(pos diag.Pos) diag.Pos { return pos })
		} else {
			p = parsePatch(o.File, []byte(text), o.inlinePosition(field, text))
		}
		p.target = target
		out = append(out, p)
	}
	for i, text := range o.kustomization.PatchesStrategicMerge { //nolint:staticcheck // kustomize still supports it
		field := fmt.Sprintf("patchesStrategicMerge[%d]", i)
		if (reference{name: string(text), kind: patch}).isInline() {
			add(nil, field, "", string(text))
		} else {
			add(nil, field, string(text), "")
		}
	}
	for i, p := range o.kustomization.Patches {
		add(p.Target, fmt.Sprintf("patches[%d].patch", i), p.Path, p.Patch)
	}
	for i, p := range o.kustomization.PatchesJson6902 { //nolint:staticcheck // kustomize still supports it
		add(p.Target, fmt.Sprintf("patchesJson6902[%d].patch", i), p.Path, p.Patch)
	}
	return out
}

// parsePatch parses the text of a patch that kustomize accepted. A JSON patch is a list, which
// [yamlnode.Documents] does not accept.
func parsePatch(file string, text []byte, move func(diag.Pos) diag.Pos) patchText {
	p := patchText{at: func(n *yaml.Node) diag.Pos { return move(yamlnode.At(file, n)) }}
	docs, err := yamlnode.Documents(file, text, yamlnode.Limits{})
	if err == nil {
		p.docs = docs
		return p
	}
	const head = "ops:\n"
	docs, err = yamlnode.Documents(file, slices.Concat([]byte(head), text), yamlnode.Limits{})
	if err != nil || len(docs) != 1 || findField(docs[0], "ops") == nil {
		return p
	}
	p.ops = findField(docs[0], "ops").Content
	p.at = func(n *yaml.Node) diag.Pos {
		pos := yamlnode.At(file, n)
		pos.Line--
		return move(pos)
	}
	return p
}

// inlinePosition returns a function that maps positions in the text of a field to positions in o's
// file: exactly if the text is a literal block, or else to the start of the field.
func (o *Overlay) inlinePosition(field, text string) func(diag.Pos) diag.Pos {
	whole := o.position(field)
	lines := strings.Split(string(o.ownFiles[o.File]), "\n")
	textLines := strings.Split(text, "\n")
	return func(pos diag.Pos) diag.Pos {
		at := whole.Line + pos.Line // line after the one with the block indicator
		if pos.Line < 1 || pos.Line > len(textLines) || at > len(lines) {
			return whole
		}
		line := strings.TrimRight(textLines[pos.Line-1], "\r")
		indent := strings.TrimSuffix(strings.TrimRight(lines[at-1], "\r"), line)
		if strings.Trim(indent, " ") != "" {
			return whole
		}
		return diag.Pos{File: o.File, Line: at, Col: pos.Col + len(indent)}
	}
}

// matches reports whether a patch may apply to an object, by its current name,
// or by its name in its file if that is known.
func (p patchText) matches(n, origin *yaml.Node) bool {
	heads := []*yaml.Node{n}
	if origin != nil {
		heads = append(heads, origin)
	}
	return slices.ContainsFunc(heads, func(of *yaml.Node) bool {
		h := objectIDOf(of)
		if p.target == nil {
			return slices.ContainsFunc(p.docs, func(doc *yaml.Node) bool { return objectIDOf(doc) == h })
		}
		selects, err := types.NewSelectorRegex(p.target)
		if err != nil {
			return false
		}
		namespace, _ := yamlnode.Text(findField(findField(of, "metadata"), "namespace"))
		group, version := resid.ParseGroupVersion(h.apiVersion)
		return selects.MatchGvk(resid.Gvk{Group: group, Version: version, Kind: h.kind}) && selects.MatchName(h.name) && selects.MatchNamespace(namespace)
	})
}

// recordOrigins records the positions of the parts of an object that a patch sets.
func (p patchText) recordOrigins(of valueOrigins, n *yaml.Node) {
	for _, doc := range p.docs {
		for _, part := range []string{"metadata", "spec"} {
			if value := findField(doc, part); value != nil && findField(n, part) != nil {
				of.walk(findField(n, part), value, p.at)
			}
		}
	}
	for _, op := range slices.Backward(p.ops) {
		path, _ := yamlnode.Text(findField(op, "path"))
		key, at := resolvePointer(n, path)
		value := findField(op, "value")
		if at == nil || value == nil {
			continue
		}
		if key != nil {
			of.record(key, p.at(value))
		}
		of.walk(at, value, p.at)
	}
}

// resolvePointer returns the value at a JSON pointer, with its key in a mapping,
// or nil.
func resolvePointer(n *yaml.Node, pointer string) (key, at *yaml.Node) {
	at = n
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = unescapeStep(step)
		switch {
		case at == nil:
			return nil, nil
		case at.Kind == yaml.SequenceNode:
			i, err := strconv.Atoi(step)
			if step == "-" {
				i, err = len(at.Content)-1, nil
			}
			if err != nil || i < 0 || i >= len(at.Content) {
				return nil, nil
			}
			key, at = nil, at.Content[i]
		default:
			key, at = yamlnode.Field(at, step)
		}
	}
	return key, at
}
