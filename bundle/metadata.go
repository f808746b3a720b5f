package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Keys of metadata/annotations.yaml.
const (
	annotationPackage        = "operators.operatorframework.io.bundle.package.v1"
	annotationChannels       = "operators.operatorframework.io.bundle.channels.v1"
	annotationDefaultChannel = "operators.operatorframework.io.bundle.channel.default.v1"
	annotationManifests      = "operators.operatorframework.io.bundle.manifests.v1"
	annotationMetadata       = "operators.operatorframework.io.bundle.metadata.v1"
	annotationMediaType      = "operators.operatorframework.io.bundle.mediatype.v1"
)

type metadata struct {
	pkg, defaultChannel string
	channels            []string
	manifests           string // path of the manifests directory in the bundle, slash-separated
	annotations         map[string]string
	properties          []Property
	dependencies        []Property
}

// readMetadata reads all files in the metadata directory, regardless of their names.
func readMetadata(fsys fs.FS) (metadata, error) {
	m := metadata{manifests: "manifests"}
	var errs diag.List
	entries, err := fs.ReadDir(fsys, "metadata")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return m, diag.Errorf(diag.Pos{File: "metadata/annotations.yaml"}, "missing: not a bundle directory")
		}
		return m, err
	}
	for _, e := range entries {
		if name := path.Join("metadata", e.Name()); !e.IsDir() && isManifest(e.Name()) {
			m.readFile(fsys, name, &errs)
		}
	}
	if m.annotations == nil {
		if len(errs) == 0 {
			errs.Addf(diag.Pos{File: "metadata/annotations.yaml"}, "missing: not a bundle directory")
		}
		return m, errs.Err()
	}
	m.readAnnotations(&errs)
	return m, errs.Err()
}

// readFile adds the annotations, properties and dependencies in one file to m.
func (m *metadata) readFile(fsys fs.FS, name string, errs *diag.List) {
	pos := diag.Pos{File: name}
	data, err := readFile(fsys, name)
	if err != nil {
		errs.Add(pos, err)
		return
	}
	docs, err := decodeDocuments(name, data)
	errs.Add(pos, err)
	for i, fields := range docs {
		r := reader{file: name, errs: errs}
		if _, ok := fields["annotations"]; ok && (m.annotations == nil || isAnnotations(name)) {
			m.annotations = r.strings(fields, "", "annotations")
		}
		var positions map[string]diag.Pos
		if fields["properties"] != nil || fields["dependencies"] != nil {
			positions = positionsOf(name, data, i)
		}
		m.properties = append(m.properties, r.properties(fields, "properties", positions)...)
		m.dependencies = append(m.dependencies, r.properties(fields, "dependencies", positions)...)
	}
}

// positionsOf returns the positions of the fields of a document. Only properties need positions, so
// decodeDocuments does not return them. The result is nil for a document of more than 10,000 nodes.
func positionsOf(file string, data []byte, document int) map[string]diag.Pos {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Nodes: 10_000, Repeated: true})
	if err != nil || document >= len(docs) {
		return nil
	}
	return yamlnode.Positions(file, docs[document])
}

func isAnnotations(name string) bool {
	return strings.TrimSuffix(path.Base(name), path.Ext(name)) == "annotations"
}

func (m *metadata) readAnnotations(errs *diag.List) {
	pos := diag.Pos{File: "metadata/annotations.yaml"}
	m.pkg = m.annotations[annotationPackage]
	if m.pkg == "" {
		errs.Addf(pos, "annotations[%q] is missing: it must contain the package name", annotationPackage)
	}
	m.defaultChannel = m.annotations[annotationDefaultChannel]
	for _, c := range strings.Split(m.annotations[annotationChannels], ",") {
		if c = strings.TrimSpace(c); c != "" && !slices.Contains(m.channels, c) {
			m.channels = append(m.channels, c)
		}
	}
	if t := m.annotations[annotationMediaType]; t != "" && t != "registry+v1" {
		errs.Addf(pos, "annotations[%q]: unsupported media type %q: must be registry+v1", annotationMediaType, t)
	}
	if dir := m.annotations[annotationManifests]; dir != "" {
		m.manifests = path.Clean(dir)
	}
	if !fs.ValidPath(m.manifests) {
		errs.Addf(pos, "annotations[%q]: %q is not a path inside the bundle", annotationManifests, m.annotations[annotationManifests])
		m.manifests = "manifests"
	}
}

// properties decodes m[key], a list of {type, value}. positions contains the positions of the document's
// fields.
func (r *reader) properties(m map[string]any, key string, positions map[string]diag.Pos) []Property {
	var out []Property
	for i, item := range r.list(m, "", key) {
		p := Property{Field: diag.Item(key, i)}
		p.Pos = cmp.Or(positions[p.Field], r.pos())
		fields, ok := item.(map[string]any)
		if !ok {
			r.addTypeFault(p.Field, "an object", item)
			continue
		}
		value, err := json.Marshal(fields["value"])
		if err != nil {
			r.errs.Addf(p.Pos, "%s.value: %w", p.Field, err)
			continue
		}
		p.Type, p.Value = r.str(fields, p.Field, "type"), value
		if p.Type == "" {
			r.errs.Addf(p.Pos, "%s.type is missing", p.Field)
		}
		out = append(out, p)
	}
	return out
}
