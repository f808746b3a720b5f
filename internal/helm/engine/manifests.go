package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// manifest is one document that a chart renders to.
type manifest struct {
	source string // path of the template
	data   []byte // JSON
	head   head
	hook   wire.Resource
}

// head has the fields of an object that Helm uses. Helm converts scalars to text.
type head struct {
	APIVersion scalar `json:"apiVersion"`
	Kind       scalar `json:"kind"`
	Metadata   *struct {
		Name        scalar            `json:"name"`
		Namespace   scalar            `json:"namespace"`
		Annotations map[string]scalar `json:"annotations"`
	} `json:"metadata"`
}

// String returns kind, namespace and name.
func (h head) String() string {
	s := string(h.Kind)
	if h.Metadata == nil {
		return s
	}
	return s + " " + strings.TrimPrefix(string(h.Metadata.Namespace)+"/"+string(h.Metadata.Name), "/")
}

// scalar is a JSON scalar as text.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		var text string
		err := json.Unmarshal(data, &text)
		*s = scalar(text)
		return err
	case '{', '[':
		return errors.New("expected text, not a map or a list")
	case 'n':
		return nil
	}
	*s = scalar(data)
	return nil
}

// crdManifests returns the objects in the crds directories of a chart and its subcharts.
func crdManifests(c *chart.Chart, w *watch) ([]manifest, error) {
	var out []manifest
	for _, crd := range c.CRDObjects() {
		docs, err := parseDocuments(crd.Filename, string(crd.File.Data), ofCRDs, w)
		if err != nil {
			return nil, err
		}
		out = append(out, docs...)
	}
	return out, nil
}

// parseManifests returns the objects in the texts of templates in the order of helm template: sorted by kind,
// and hooks after the other objects. It also describes the objects with unknown hooks, which Helm drops.
func parseManifests(texts map[string]string, w *watch) (sorted []manifest, skipped []string, err error) {
	var hooks []manifest
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		docs, err := parseDocuments(name, texts[name], ofTemplate, w)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range docs {
			switch isHook, unknown := m.readHooks(); {
			case unknown != "":
				skipped = append(skipped, fmt.Sprintf("%s in %s (unknown hook %q)", m.head, m.source, unknown))
			case isHook:
				hooks = append(hooks, m)
			default:
				sorted = append(sorted, m)
			}
		}
	}
	order := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		order[kind] = i - len(releaseutil.InstallOrder)
	}
	byKind := func(a, b manifest) int {
		x, y := order[string(a.head.Kind)], order[string(b.head.Kind)] // 0 if the kind is unknown
		if x == 0 && y == 0 {
			return cmp.Compare(a.head.Kind, b.head.Kind)
		}
		return cmp.Compare(x, y)
	}
	slices.SortStableFunc(sorted, byKind)
	slices.SortStableFunc(hooks, byKind)
	return append(sorted, hooks...), skipped, nil
}

// Beginnings of errors about the documents of a text.
const (
	ofTemplate = "the template renders"
	ofCRDs     = "the file, in which Helm executes no template, has"
)

// parseDocuments returns the documents of a text that are not empty. Errors begin with has.
func parseDocuments(source, text, has string, w *watch) ([]manifest, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	w.enter(source)
	defer w.leave()
	var out []manifest
	for _, doc := range splitDocuments(text) {
		data, err := yaml.YAMLToJSON([]byte(doc + "\n")) // as helm template prints it
		if err != nil {
			return nil, &wire.Error{Path: source, Msg: has + " invalid YAML: " + oneLine(err.Error())}
		}
		if string(data) == "null" {
			continue
		}
		m := manifest{source: source, data: data}
		if err := json.Unmarshal(data, &m.head); err != nil {
			return nil, &wire.Error{Path: source, Msg: has + " no Kubernetes object: " + oneLine(err.Error())}
		}
		out = append(out, m)
	}
	return out, nil
}

// splitDocuments splits a text like releaseutil.SplitManifests, but keeps the order. It uses no regular
// expression, which would take a twelfth of all CPU time. A line that begins with "---" begins a document,
// even if more text follows on the line.
func splitDocuments(text string) []string {
	var docs []string
	for rest, more := "\n"+strings.TrimLeftFunc(text, unicode.IsSpace), true; more; {
		var doc string
		if doc, rest, more = strings.Cut(rest, "\n---"); more {
			doc += "\n" // belongs to the document, not to the separator
		}
		if doc = strings.TrimLeftFunc(doc, unicode.IsSpace); doc != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}

// readHooks reads the annotations of a hook. unknown is the first hook type that Helm does not support, or
// "".
func (m *manifest) readHooks() (isHook bool, unknown string) {
	if m.head.Metadata == nil {
		return false, ""
	}
	annotations := m.head.Metadata.Annotations
	names, ok := annotations[release.HookAnnotation]
	if !ok {
		return false, ""
	}
	for _, name := range splitLower(names) {
		if name == "test-success" {
			name = "test"
		}
		if !slices.Contains(hookNames(), name) {
			return true, name
		}
		m.hook.Hooks = append(m.hook.Hooks, name)
	}
	m.hook.HookWeight, _ = strconv.Atoi(string(annotations[release.HookWeightAnnotation]))
	if policies, ok := annotations[release.HookDeleteAnnotation]; ok {
		m.hook.HookDelete = splitLower(policies)
	}
	return true, ""
}

func hookNames() []string {
	return []string{
		release.HookPreInstall.String(), release.HookPostInstall.String(), release.HookPreDelete.String(),
		release.HookPostDelete.String(), release.HookPreUpgrade.String(), release.HookPostUpgrade.String(),
		release.HookPreRollback.String(), release.HookPostRollback.String(), release.HookTest.String(),
	}
}

func splitLower(s scalar) []string {
	parts := strings.Split(string(s), ",")
	for i, p := range parts {
		parts[i] = strings.ToLower(strings.TrimSpace(p))
	}
	return parts
}

// appendTo adds the object, or the items of a List, to answer, and returns objects with their JSON appended.
func (m manifest) appendTo(answer *wire.Answer, objects [][]byte) [][]byte {
	if m.head.Kind == "List" {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(m.data, &list) == nil {
			if m.head.Metadata != nil {
				m.hook.Kept = strings.EqualFold(strings.TrimSpace(string(m.head.Metadata.Annotations["helm.sh/resource-policy"])), "keep")
			}
			for _, item := range list.Items {
				if string(item) != "null" {
					objects = m.appendItem(answer, objects, item)
				}
			}
			return objects
		}
	}
	return m.appendItem(answer, objects, m.data)
}

func (m manifest) appendItem(answer *wire.Answer, objects [][]byte, data []byte) [][]byte {
	o := m.hook
	o.Source, o.Size = m.source, len(data)
	answer.Objects = append(answer.Objects, o)
	return append(objects, data)
}
