package bundle

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
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
	properties          []catalog.Property
	dependencies        []catalog.Property
}

// readMetadata reads all files in the metadata directory, whatever their names.
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
	for _, fields := range docs {
		r := reader{file: name, errs: errs}
		if _, ok := fields["annotations"]; ok && (m.annotations == nil || isAnnotations(name)) {
			m.annotations = r.strings(fields, "", "annotations")
		}
		m.properties = append(m.properties, r.properties(fields, "properties")...)
		m.dependencies = append(m.dependencies, r.properties(fields, "dependencies")...)
	}
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

// properties decodes the list of {type, value} in field key.
func (r *reader) properties(m map[string]any, key string) []catalog.Property {
	var out []catalog.Property
	for i, item := range r.list(m, "", key) {
		at := diag.Item(key, i)
		fields, ok := item.(map[string]any)
		if !ok {
			r.addTypeFault(at, "an object", item)
			continue
		}
		value, err := json.Marshal(fields["value"])
		if err != nil {
			r.errs.Addf(r.pos(), "%s.value: %w", at, err)
			continue
		}
		p := catalog.Property{Type: r.str(fields, at, "type"), Value: value}
		if p.Type == "" {
			r.errs.Addf(r.pos(), "%s.type is missing", at)
		}
		out = append(out, p)
	}
	return out
}
