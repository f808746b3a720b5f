package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// File is one file of a rendered tree or of the repository.
type File struct {
	Path string
	Data []byte
}

// Limits for the files of one state, which may be untrusted.
const (
	maxFiles  = 200_000
	maxBytes  = 2 << 30
	maxFaults = 20
)

// Objects parses the Kubernetes objects in files, in order. It skips files that are neither YAML nor JSON, and
// documents without apiVersion, kind or name. Object.Operator is set from the owner labels. The labels of a CRD
// do not contain the namespace of the operator, so Objects looks it up in pins. The error lists all invalid
// files.
func Objects(files []File, pins []lockfile.Pin) ([]Object, error) {
	return collectObjects(files, pins, nil, nil)
}

// collectObjects is like Objects, but avoids repeated parsing. twins are the files of the other side of the
// comparison, by path: if a CRD is equal on both sides, only its head is parsed. known are the parsed objects
// of the other side: they are reused for a file with the same path and content.
func collectObjects(files []File, pins []lockfile.Pin, twins map[string][]byte, known []Object) ([]Object, error) {
	have := map[string][]Object{}
	for _, o := range known {
		have[o.Path] = append(have[o.Path], o)
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("%d files exceed the limit of %d", len(files), maxFiles)
	}
	total := 0
	for _, f := range files {
		if isManifest(f.Path) {
			total += len(f.Data)
		}
	}
	if total > maxBytes {
		return nil, fmt.Errorf("total size exceeds the limit of %d bytes", maxBytes)
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
			got[i], errs[i] = parseWithTwin(f, twins, pins)
			return nil
		})
	}
	_ = work.Wait() // errors are collected in errs
	var faults diag.List
	for i, err := range errs {
		if faults.Add(diag.Pos{File: files[i].Path}, err); len(faults) >= maxFaults {
			break
		}
	}
	return slices.Concat(got...), faults.Err()
}

// parseWithTwin parses a file. If the file is a CRD and equal to its twin, it parses only the head.
func parseWithTwin(f File, twins map[string][]byte, pins []lockfile.Pin) ([]Object, error) {
	if twin, ok := twins[f.Path]; ok && bytes.Equal(twin, f.Data) {
		if o, ok := parseHead(f, pins); ok {
			return []Object{o}, nil
		}
	}
	return parseObjects(f, pins)
}

// BaseFiles returns the files below dir that contain the rendered objects, without the overlays of
// clusters and without files for GitOps tools. dir is relative to the repository; "." is its root.
func BaseFiles(dir string, files []File) []File {
	var out []File
	for _, f := range files {
		rest, ok := cutDir(dir, f.Path)
		top, _, _ := strings.Cut(rest, "/")
		if ok && slices.Contains([]string{"crds", "namespaces", "operators", "reporter", "installations"}, top) {
			out = append(out, f)
		}
	}
	return out
}

// cutDir returns name relative to dir. It returns false if name is not below dir.
func cutDir(dir, name string) (string, bool) {
	if dir == "" || dir == "." {
		return name, true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// ownObjects parses the user's own objects, for State.Resources. For speed, it skips files that
// contain neither the word Namespace nor an API group of the CRDs in definitions. skipped lists
// invalid files.
func ownObjects(files []File, definitions []Object) (objects []Object, skipped []string) {
	needles := [][]byte{[]byte("Namespace")}
	for _, o := range definitions {
		if o.Key().Is(crdKind) {
			needles = append(needles, []byte(o.definedKind().Group+"/"))
		}
	}
	for _, f := range files {
		if !isManifest(f.Path) || !containsAny(f.Data, needles) {
			continue
		}
		got, err := parseObjects(f, nil)
		if err != nil && !isList(f) {
			skipped = append(skipped, f.Path)
		}
		if err != nil {
			continue
		}
		objects = append(objects, got...)
	}
	return objects, skipped
}

// isList reports whether a file starts with a list, such as a JSON patch, and so contains no object.
func isList(f File) bool {
	for line := range bytes.Lines(f.Data) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return bytes.HasPrefix(text, []byte("- "))
		}
	}
	return false
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

// parseObjects parses the objects in one file.
func parseObjects(f File, pins []lockfile.Pin) ([]Object, error) {
	docs, err := parseContents(f)
	if err != nil {
		return nil, err
	}
	var out []Object
	for i, content := range docs {
		if k8s.Text(content, "apiVersion") == "" || k8s.Text(content, "kind") == "" || k8s.Text(content, "metadata", "name") == "" {
			continue
		}
		if IsInstallation(content) {
			continue
		}
		out = append(out, Object{Operator: objectOwner(content, pins), Path: f.Path, Document: i, Raw: f.Data, Content: content, key: k8s.Object(content).Key()})
	}
	return out, nil
}

// IsInstallation reports whether content is an Installation, which quayside renders for the reporter. An
// Installation only repeats data of other objects.
func IsInstallation(content map[string]any) bool {
	return k8s.Text(content, "kind") == v1alpha1.Kind && k8s.Group(k8s.Text(content, "apiVersion")) == v1alpha1.Group
}

// parseContents returns the non-empty documents of a file, in order. Numbers have the types described at Content.
func parseContents(f File) ([]map[string]any, error) {
	docs, err := yamlnode.Objects(f.Path, f.Data, yamlnode.Limits{})
	for _, doc := range docs {
		normalizeNumbers(doc)
	}
	return docs, err
}

// ParseBuilt parses an object in JSON that kustomize has built from an overlay. sources are the files that may
// have changed the object, the most likely one first. There must be at least one.
func ParseBuilt(data []byte, pins []lockfile.Pin, sources []File) (Object, error) {
	content, err := Content(data)
	return NewBuilt(content, pins, sources), err
}

// NewBuilt is ParseBuilt for a decoded object. Its numbers must have the types described at Content.
func NewBuilt(content map[string]any, pins []lockfile.Pin, sources []File) Object {
	return Object{Operator: objectOwner(content, pins), Path: sources[0].Path, Content: content, sources: sources}
}

// Content decodes a JSON object for Object.Content. A number becomes int64 if it is an integer in
// its range, otherwise float64.
func Content(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	return normalizeNumbers(m).(map[string]any), nil
}

// normalizeNumbers converts the numbers in v as described at Content. It modifies maps and lists in
// place.
func normalizeNumbers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			switch e.(type) {
			case json.Number, float64:
				x[k] = normalizeNumbers(e)
			default:
				normalizeNumbers(e) // modified in place
			}
		}
	case []any:
		for i, e := range x {
			x[i] = normalizeNumbers(e)
		}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64() // infinite on overflow, as in the API server's decoder
		return normalizeNumbers(f)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<63 {
			return int64(x)
		}
	}
	return v
}

// objectOwner returns the operator in the owner labels of an object as "namespace/package", or "package" if
// the namespace is unknown. It returns "" if the object has no owner.
func objectOwner(content map[string]any, pins []lockfile.Pin) string {
	labels := k8s.Map(content, "metadata", "labels")
	pkg, ns := k8s.Text(labels, k8s.LabelPackage), k8s.Text(labels, k8s.LabelNamespace)
	if pkg == "" {
		return ""
	}
	if ns != "" {
		if pkg == "quayside" && !slices.ContainsFunc(pins, func(p lockfile.Pin) bool { return p.Namespace == ns && p.Package == pkg }) {
			return "" // a Namespace shared by several operators
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
