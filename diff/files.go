package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report/v1alpha1"
)

// File is one file of a tree.
type File struct {
	Path string
	Data []byte
}

// Caps on one state: its files may come from any revision.
const (
	maxFiles  = 200_000
	maxBytes  = 2 << 30
	maxFaults = 20
)

// Objects reads the Kubernetes objects of files, in order. Files that are not
// YAML or JSON by their name, and documents without apiVersion and kind, are
// left out. The operator of each object is read from its owner labels; pins
// tell the namespace of definitions, which carry none. All broken files are
// reported at once.
func Objects(files []File, pins []lockfile.Pin) ([]Object, error) {
	return objects(files, pins, nil, nil)
}

// objects does what Objects does, beside another state. Of definitions that
// are among its files too, twins, only the head is read; the objects of its
// files that were read already, known, are taken over where path and bytes are
// the same.
func objects(files []File, pins []lockfile.Pin, twins map[string][]byte, known []Object) ([]Object, error) {
	have := map[string][]Object{}
	for _, o := range known {
		have[o.Path] = append(have[o.Path], o)
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("%d files: more than the %d allowed", len(files), maxFiles)
	}
	total := 0
	for _, f := range files {
		if isManifest(f.Path) {
			total += len(f.Data)
		}
	}
	if total > maxBytes {
		return nil, fmt.Errorf("more than the %d bytes allowed in all", maxBytes)
	}
	got, errs := make([][]Object, len(files)), make([]error, len(files))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		if !isManifest(f.Path) {
			continue
		}
		if same := have[f.Path]; len(same) > 0 && bytes.Equal(same[0].Raw, f.Data) {
			got[i] = same
			continue
		}
		work.Go(func() error {
			got[i], errs[i] = readBeside(f, twins, pins)
			return nil
		})
	}
	_ = work.Wait() // every file has its own fault
	var faults diag.List
	for i, err := range errs {
		if faults.Add(diag.Pos{File: files[i].Path}, err); len(faults) >= maxFaults {
			break
		}
	}
	return slices.Concat(got...), faults.Err()
}

// readBeside reads a file, of a definition that is among twins only the head.
func readBeside(f File, twins map[string][]byte, pins []lockfile.Pin) ([]Object, error) {
	if twin, ok := twins[f.Path]; ok && bytes.Equal(twin, f.Data) {
		if o, ok := readHead(f, pins); ok {
			return []Object{o}, nil
		}
	}
	return read(f, pins)
}

// Base returns those of files that hold the base of a tree rendered to dir: the
// objects themselves, without what differs in clusters and what a GitOps tool reads.
// dir "." is the root.
func Base(dir string, files []File) []File {
	var out []File
	for _, f := range files {
		rest, ok := below(dir, f.Path)
		top, _, _ := strings.Cut(rest, "/")
		if ok && slices.Contains([]string{"crds", "namespaces", "operators", "reporter", "installations"}, top) {
			out = append(out, f)
		}
	}
	return out
}

// below returns name as seen from dir.
func below(dir, name string) (string, bool) {
	if dir == "" || dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// own reads the user's own objects for State.Resources, and returns the files
// that do not parse by name.
func own(files []File, definitions []Object) (objects []Object, skipped []string) {
	needles := [][]byte{[]byte("Namespace")}
	for _, o := range definitions {
		if o.Ref().is(crdKind) {
			needles = append(needles, []byte(o.serves().Group+"/"))
		}
	}
	for _, f := range files {
		if !isManifest(f.Path) || !containsAny(f.Data, needles) {
			continue
		}
		got, err := read(f, nil)
		if err != nil {
			skipped = append(skipped, f.Path)
			continue
		}
		objects = append(objects, got...)
	}
	return objects, skipped
}

func containsAny(data []byte, needles [][]byte) bool {
	return slices.ContainsFunc(needles, func(n []byte) bool { return bytes.Contains(data, n) })
}

func isManifest(path string) bool {
	if strings.HasSuffix(path, "/kustomization.yaml") || path == "kustomization.yaml" {
		return false
	}
	return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") || strings.HasSuffix(path, ".json")
}

func read(f File, pins []lockfile.Pin) ([]Object, error) {
	docs, err := contents(f)
	if err != nil {
		return nil, err
	}
	var out []Object
	for i, content := range docs {
		if kobj.Text(content, "apiVersion") == "" || kobj.Text(content, "kind") == "" || kobj.Text(content, "metadata", "name") == "" {
			continue
		}
		if Repeats(content) {
			continue
		}
		out = append(out, Object{Operator: owner(content, pins), Path: f.Path, Document: i, Raw: f.Data, Content: content, ref: refOf(content)})
	}
	return out, nil
}

// Repeats reports whether an object says once more what others are: an Installation
// names for the reporter what is there.
func Repeats(content map[string]any) bool {
	return kobj.Text(content, "kind") == v1alpha1.Kind && kobj.Group(kobj.Text(content, "apiVersion")) == v1alpha1.Group
}

// contents returns the documents of a file that are not empty, in order, each as
// Content has it.
func contents(f File) ([]map[string]any, error) {
	if docs, ok := plainly(f.Data); ok {
		return docs, nil
	}
	docs, err := yamlnode.Documents(f.Path, f.Data, yamlnode.Limits{})
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, doc := range docs {
		data, err := yamlnode.JSON(doc)
		if err != nil {
			return nil, err
		}
		m, err := Content(data)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// maxPlain is the length of a text that cannot hold more values than the full
// parser takes, were every line of it one.
const maxPlain = 4 << 20

// plainly returns the documents of a text as contents has them, where a parser can
// read them that is many times as fast as the full one, and false for any other.
func plainly(data []byte) ([]map[string]any, bool) {
	if len(data) > maxPlain || bytes.Count(data, []byte("\n---")) >= yamlnode.MaxDocuments || !utf8.Valid(data) {
		return nil, false
	}
	docs, ok := blockyaml.Decode(data, meaning)
	if !ok || len(docs) == 0 {
		return nil, false
	}
	out := make([]map[string]any, len(docs))
	for i, doc := range docs {
		if out[i], ok = doc.(map[string]any); !ok {
			return nil, false
		}
	}
	return out, true
}

// meaning returns what a plain scalar is to the API server, as Content has it, and
// false where it has no form in JSON.
func meaning(text string) (any, bool) {
	data, err := yamlnode.JSON(&yaml.Node{Kind: yaml.ScalarNode, Value: text})
	if err != nil {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err = dec.Decode(&v)
	return numbers(v), err == nil
}

// Built returns an object that an overlay makes, given as JSON. What makes it
// other than its base stands in some of sources, the most likely first, of which
// there is at least one.
func Built(data []byte, pins []lockfile.Pin, sources []File) (Object, error) {
	content, err := Content(data)
	return Made(content, pins, sources), err
}

// Made is Built of an object as Content has it.
func Made(content map[string]any, pins []lockfile.Pin, sources []File) Object {
	return Object{Operator: owner(content, pins), Path: sources[0].Path, Content: content, sources: sources}
}

// Content decodes one JSON object the way Object.Content wants it: integers
// that fit are int64, other numbers float64.
func Content(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	return numbers(m).(map[string]any), nil
}

// numbers turns json.Number into int64 or float64, in place.
func numbers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = numbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = numbers(e)
		}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64() // what overflows is infinite, as in the API server's reader
		return f
	}
	return v
}

// owner returns "namespace/package" by the labels of an object.
func owner(content map[string]any, pins []lockfile.Pin) string {
	labels := kobj.Map(content, "metadata", "labels")
	pkg, ns := kobj.Text(labels, kobj.LabelPackage), kobj.Text(labels, kobj.LabelNamespace)
	if pkg == "" {
		return ""
	}
	if ns != "" {
		if pkg == "quayside" && !slices.ContainsFunc(pins, func(p lockfile.Pin) bool { return p.Namespace == ns && p.Package == pkg }) {
			return "" // a Namespace that several operators share
		}
		return ns + "/" + pkg
	}
	first := ""
	for _, p := range pins {
		if p.Package == pkg && (first == "" || p.Key() < first) {
			first = p.Key()
		}
	}
	return cmp.Or(first, pkg)
}
