package overlay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Trace maps values in the objects of a build to their positions in the files of the build.
type Trace struct {
	top     *Overlay
	load    func()            // sets the fields below before their first use
	order   []*Overlay        // kustomizations, each after those that it refers to
	files   map[string][]byte // of the build
	listed  []string          // files with resources, sorted
	origins func() []string   // item i is the path of the file that object i is from; empty if unknown
	docs    map[string][]*yamlnode.Node
	patches []patchText // patches, in the order of the kustomizations
}

// Trace returns the trace of a build.
func (o *Overlay) Trace() *Trace {
	t := &Trace{top: o, docs: map[string][]*yamlnode.Node{}, origins: sync.OnceValue(o.origins)}
	t.load = sync.OnceFunc(t.loadFiles)
	return t
}

func (t *Trace) loadFiles() {
	o := t.top
	t.files = o.All()
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) { t.order = append(t.order, k) })
	for _, k := range t.order {
		t.listed = append(t.listed, k.listedFiles...)
		t.patches = append(t.patches, k.patchTexts()...)
	}
	slices.Sort(t.listed)
	t.listed = slices.Compact(t.listed)
}

// origins returns the file of each object of a build, or "" if the file is unknown. It builds o again, with
// the origin annotations of kustomize. The original build must not have these annotations, because patches
// could read them.
func (o *Overlay) origins() []string {
	marked := o.kustomization
	marked.BuildMetadata = append(slices.Clone(marked.BuildMetadata), types.OriginAnnotations)
	data, err := json.Marshal(marked)
	if err != nil {
		return nil
	}
	files := o.All()
	files[o.File] = data
	objects, err := o.runKustomize(files)
	if err != nil {
		return nil
	}
	var out []string
	for _, object := range objects.Resources() {
		file := ""
		if origin, err := object.GetOrigin(); err == nil && origin != nil && origin.Path != "" {
			file = o.path(origin.Path)
		}
		out = append(out, file)
	}
	return out
}

// Places returns the origins of the keys and values of object i of the build, by their positions in n. n is
// the object, parsed from text. The origin of a value that a patch sets is the patch. The origin of an
// unchanged value is the file of the resource. The origin of a namespace may be the field namespace of a
// kustomization. Other values have no origin.
func (t *Trace) Places(i int, text []byte, n *yamlnode.Node) map[diag.Pos]diag.Pos {
	results := t.top.results
	for k := range t.top.Kustomizations() {
		if len(k.generated) > 0 { // the positions in manifests of a PolicyGenerator are not input of the build
			results = nil
		}
	}
	input := append(binary.AppendUvarint(t.top.input(), uint64(i)), text...)
	out, _ := memo.Remember(results, "overlay.Places", input, func() (map[diag.Pos]diag.Pos, error) { return t.places(i, n), nil })
	return out
}

func (t *Trace) places(i int, n *yamlnode.Node) map[diag.Pos]diag.Pos {
	t.load()
	p := valueOrigins{file: t.top.File, origins: map[diag.Pos]diag.Pos{}}
	origin, file := t.origin(i, n)
	if origin != nil {
		if policy, generated := t.generatedPolicy(file, origin.Line); generated {
			p.walkPolicy(n, origin, policy)
		} else {
			p.walk(n, origin, func(n *yamlnode.Node) diag.Pos { return yamlnode.At(file, n) })
		}
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

// origin returns the source document of object i, and the file of this document. doc is nil if it is unknown.
func (t *Trace) origin(i int, n *yamlnode.Node) (doc *yamlnode.Node, file string) {
	now := objectIDOf(n)
	if doc, file := t.findListed(now); doc != nil {
		return doc, file
	}
	origins := t.origins()
	if i >= len(origins) || origins[i] == "" {
		return nil, ""
	}
	file = origins[i]
	var named, renamed []*yamlnode.Node
	for _, doc := range t.documents(file) {
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

// findListed returns the document with the identity id in the listed files, and the file of the document. It
// returns nil if there is no such document, or if there are several.
func (t *Trace) findListed(id objectID) (doc *yamlnode.Node, file string) {
	for _, name := range t.listed {
		if !bytes.Contains(t.files[name], []byte(id.name)) {
			continue
		}
		for _, d := range t.documents(name) {
			switch {
			case objectIDOf(d) != id:
			case doc != nil:
				return nil, ""
			default:
				doc, file = d, name
			}
		}
	}
	return doc, file
}

// documents returns the objects in a file of the build.
func (t *Trace) documents(file string) []*yamlnode.Node {
	docs, read := t.docs[file]
	if !read {
		docs, _ = yamlnode.Documents(file, t.files[file], yamlnode.Limits{}) // ignore the error: kustomize has parsed the file
		docs = flattenLists(docs)
		t.docs[file] = docs
	}
	return docs
}

// flattenLists replaces documents that are Lists by their items.
func flattenLists(docs []*yamlnode.Node) []*yamlnode.Node {
	var out []*yamlnode.Node
	for _, doc := range docs {
		if items := findField(doc, "items"); strings.HasSuffix(objectIDOf(doc).kind, "List") && items != nil && items.Kind == yamlnode.SequenceNode {
			out = append(out, flattenLists(items.Content)...)
		} else {
			out = append(out, doc)
		}
	}
	return out
}

func findField(n *yamlnode.Node, name string) *yamlnode.Node {
	_, v := yamlnode.Field(n, name)
	return v
}

// objectID identifies an object in a file.
type objectID struct{ apiVersion, kind, name string }

func objectIDOf(n *yamlnode.Node) (h objectID) {
	h.apiVersion, _ = yamlnode.Text(findField(n, "apiVersion"))
	h.kind, _ = yamlnode.Text(findField(n, "kind"))
	h.name, _ = yamlnode.Text(findField(findField(n, "metadata"), "name"))
	return h
}

// mayBeRenamed reports whether a prefix or suffix can turn the name of was into the name of h. It returns
// false if the apiVersion or the kind differs.
func (h objectID) mayBeRenamed(was objectID) bool {
	return h.apiVersion == was.apiVersion && h.kind == was.kind && strings.Contains(h.name, was.name)
}

// valueOrigins holds the origins of the values of one object.
type valueOrigins struct {
	file    string
	origins map[diag.Pos]diag.Pos
}

// record sets the origin of n, unless n already has one.
func (p valueOrigins) record(n *yamlnode.Node, pos diag.Pos) {
	if _, known := p.origins[yamlnode.At(p.file, n)]; !known {
		p.origins[yamlnode.At(p.file, n)] = pos
	}
}

// walk sets the origins of the keys and values in n that equal the keys and values in source. at returns the
// position of a node in source.
func (p valueOrigins) walk(n, source *yamlnode.Node, at func(*yamlnode.Node) diag.Pos) {
	switch {
	case n.Kind != source.Kind:
	case n.Kind == yamlnode.MappingNode:
		p.record(n, at(source))
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key, value := yamlnode.Field(source, n.Content[i].Value); key != nil {
				p.record(n.Content[i], at(key))
				p.walk(n.Content[i+1], value, at)
			}
		}
	case n.Kind == yamlnode.SequenceNode:
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

// findCounterpart returns the element of items with the same name as item. If item has no name, it returns
// the element with index i. It returns nil if there is none.
func findCounterpart(item *yamlnode.Node, items []*yamlnode.Node, i int) *yamlnode.Node {
	if name := findField(item, "name"); name != nil {
		at := slices.IndexFunc(items, func(n *yamlnode.Node) bool { of := findField(n, "name"); return of != nil && equalScalars(name, of) })
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
func equalScalars(a, b *yamlnode.Node) bool {
	x, errA := yamlnode.JSON(a)
	y, errB := yamlnode.JSON(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// patchText is a parsed patch of a kustomization.
type patchText struct {
	target *types.Selector  // nil if the patch itself names its target
	docs   []*yamlnode.Node // documents of a strategic merge patch
	ops    []*yamlnode.Node // operations of a JSON patch
	at     func(*yamlnode.Node) diag.Pos
}

// patchTexts returns the patches of o, in the order of the fields of a kustomization.
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

// parsePatch parses a patch that kustomize has accepted. move converts positions in the text to
// positions in file. A JSON patch is a list, which [yamlnode.Documents] does not accept.
func parsePatch(file string, text []byte, move func(diag.Pos) diag.Pos) patchText {
	p := patchText{at: func(n *yamlnode.Node) diag.Pos { return move(yamlnode.At(file, n)) }}
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
	p.at = func(n *yamlnode.Node) diag.Pos {
		pos := yamlnode.At(file, n)
		pos.Line--
		return move(pos)
	}
	return p
}

// inlinePosition returns a function that converts positions in the text of a field to positions in
// the file of o. If the text is a literal block, the results are exact. Otherwise, the function always
// returns the beginning of the field.
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

// matches reports whether a patch may apply to object n. origin is the object in its original file,
// or nil if unknown. origin is needed because the patch may use the original name of the object.
func (p patchText) matches(n, origin *yamlnode.Node) bool {
	heads := []*yamlnode.Node{n}
	if origin != nil {
		heads = append(heads, origin)
	}
	return slices.ContainsFunc(heads, func(of *yamlnode.Node) bool {
		h := objectIDOf(of)
		if p.target == nil {
			return slices.ContainsFunc(p.docs, func(doc *yamlnode.Node) bool { return objectIDOf(doc) == h })
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

// recordOrigins records the position in the patch as the origin of each value of object n that the patch sets.
func (p patchText) recordOrigins(of valueOrigins, n *yamlnode.Node) {
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

// resolvePointer returns the value at a JSON pointer and, in a mapping, its key. Both are nil if
// there is no such value.
func resolvePointer(n *yamlnode.Node, pointer string) (key, at *yamlnode.Node) {
	at = n
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = unescapeStep(step)
		switch {
		case at == nil:
			return nil, nil
		case at.Kind == yamlnode.SequenceNode:
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
