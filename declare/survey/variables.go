package survey

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// SubstituteVariables replaces the variables in an object, as Flux does after the build. A variable without a
// value becomes empty. unknown are the variables whose values are unknown, sorted.
func (c Changes) SubstituteVariables(object []byte) (out []byte, unknown []string) {
	var fields map[string]any
	if !c.Substitutes || json.Unmarshal(object, &fields) != nil {
		return object, nil
	}
	for _, where := range []string{"labels", "annotations"} {
		if k8s.TextMap(fields, "metadata", where)["kustomize.toolkit.fluxcd.io/substitute"] == "disabled" {
			return object, nil
		}
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return object, nil
	}
	variable := regexp.MustCompile(`\$?\$\{[^{}]*\}`)
	form := regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=](.*))?\}$`)
	text = variable.ReplaceAllFunc(text, func(match []byte) []byte {
		if bytes.HasPrefix(match, []byte("$$")) {
			return match[1:]
		}
		m := form.FindSubmatch(match)
		if m == nil || c.isHidden(string(m[1])) {
			unknown = append(unknown, string(match))
			return match
		}
		if v := c.Substitute[string(m[1])]; v != "" {
			return []byte(v)
		}
		return m[2]
	})
	slices.Sort(unknown)
	if out, err = yaml.YAMLToJSON(text); err != nil {
		return object, append(unknown, "the result is not valid YAML")
	}
	return out, slices.Compact(unknown)
}

// isHidden reports whether the value of a variable is unknown.
func (c Changes) isHidden(name string) bool {
	_, known := c.Substitute[name]
	return !known && (len(c.SubstituteFrom) > 0 || c.hidden[name])
}

// addVariables adds the variables in spec.postBuild of a Flux Kustomization. file contains the
// Kustomization.
func (s *scanner) addVariables(c *Changes, postBuild map[string]any, namespace, file string) {
	c.Substitute, c.hidden = map[string]string{}, map[string]bool{}
	for _, item := range k8s.List(postBuild, "substituteFrom") {
		from, _ := item.(map[string]any)
		kind, name := k8s.Text(from, "kind"), k8s.Text(from, "name")
		values, found := s.findValues(kind, namespace, name, file)
		if !found {
			c.SubstituteFrom = append(c.SubstituteFrom, strings.TrimSpace(kind+" "+name))
			clear(c.Substitute) // it may override them
			continue
		}
		for variable, v := range values {
			if kind == "Secret" {
				c.hidden[variable] = true
				delete(c.Substitute, variable)
			} else {
				c.Substitute[variable] = v
			}
		}
	}
	maps.Copy(c.Substitute, k8s.TextMap(postBuild, "substitute"))
	for name, v := range c.Substitute {
		c.Substitute[name] = strings.ReplaceAll(v, "\n", "")
	}
	c.Substitutes = len(c.Substitute)+len(c.SubstituteFrom)+len(c.hidden) > 0 // Flux replaces nothing without a value
}

// valueObject is a ConfigMap or a Secret in the repository. The values of a Secret are empty.
type valueObject struct {
	file, kind, namespace, name string
	values                      map[string]string // nil if they are unknown
}

// valueIndex has the objects with values of variables.
type valueIndex struct {
	indexed    bool // whether the repository was read
	objects    []valueObject
	generating []string // directories of kustomizations that generate ConfigMaps
}

// findValues returns the values of the ConfigMap with this name for the Kustomization in a file. For a Secret,
// it returns the keys, each with an empty value. If several objects have this name and different values, only
// those in the directory of the file count. It returns false if no object counts, if their values differ, or if
// the values are unknown.
func (s *scanner) findValues(kind, namespace, name, file string) (map[string]string, bool) {
	if s.values == nil {
		return nil, false
	}
	s.indexValues()
	var found []valueObject
	for _, o := range s.values.objects {
		if o.kind == kind && o.name == name && (o.namespace == namespace || o.namespace == "" || namespace == "") {
			found = append(found, o)
		}
	}
	for _, dir := range s.values.generating {
		if kind == "ConfigMap" && bytes.Contains(s.repo.read(s.repo.kustomization(dir).File), []byte(name)) {
			found = append(found, s.builtValues(dir, name)...)
		}
	}
	differ := func(list []valueObject) bool {
		return slices.ContainsFunc(list, func(o valueObject) bool { return !reflect.DeepEqual(o.values, list[0].values) })
	}
	if dir := path.Dir(file); differ(found) && !s.isIncluded(dir, file) {
		found = slices.DeleteFunc(found, func(o valueObject) bool { return path.Dir(o.file) != dir })
	}
	if len(found) == 0 || differ(found) || found[0].values == nil || slices.ContainsFunc(found, s.isChanged) {
		return nil, false
	}
	return found[0].values, true
}

// indexValues reads the ConfigMaps and the Secrets of the repository.
func (s *scanner) indexValues() {
	if s.values.indexed {
		return
	}
	s.values.indexed = true
	for _, file := range s.repo.filesBelow(".") {
		dir := path.Dir(file)
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(file)) {
			if s.repo.kustomization(dir) != nil && bytes.Contains(s.repo.read(file), []byte("configMapGenerator")) {
				s.values.generating = append(s.values.generating, dir)
			}
			continue
		}
		if !yamlnode.HasExtension(file) {
			continue
		}
		data := s.repo.read(file)
		if !bytes.Contains(data, []byte("ConfigMap")) && !bytes.Contains(data, []byte("Secret")) {
			continue
		}
		docs, err := documents(file, data)
		if err != nil {
			continue
		}
		for _, n := range docs {
			if kind := textAt(n, "kind"); textAt(n, "apiVersion") == "v1" && (kind == "ConfigMap" || kind == "Secret") {
				s.values.objects = append(s.values.objects, newValueObject(file, decode(n)))
			}
		}
	}
}

// newValueObject returns a ConfigMap or a Secret with its values. If a ConfigMap is encrypted or
// has placeholders, its values are unknown.
func newValueObject(file string, fields map[string]any) valueObject {
	o := valueObject{file: file, kind: k8s.Text(fields, "kind"), namespace: k8s.Text(fields, "metadata", "namespace"), name: k8s.Text(fields, "metadata", "name"), values: map[string]string{}}
	if o.kind == "Secret" {
		for _, where := range []string{"data", "stringData"} {
			for name := range k8s.Map(fields, where) {
				o.values[name] = ""
			}
		}
		return o
	}
	o.values = k8s.TextMap(fields, "data")
	isUnknown := func(v string) bool { return strings.Contains(v, "${") || isPlaceholder(v) }
	if fields["sops"] != nil || slices.ContainsFunc(slices.Collect(maps.Values(o.values)), isUnknown) {
		o.values = nil
	}
	return o
}

// isPlaceholder reports whether a plugin of Argo CD replaces a text.
func isPlaceholder(text string) bool { return strings.Contains(text, "<path:") }

// builtValues returns the ConfigMaps called name that a kustomization builds. If the kustomization cannot be
// built, the result is a ConfigMap with unknown values.
func (s *scanner) builtValues(dir, name string) []valueObject {
	file := s.repo.kustomization(dir).File
	built := s.build(dir)
	if built == nil {
		return []valueObject{{file: file}}
	}
	var out []valueObject
	for _, item := range built {
		if o, is := item.(map[string]any); is && k8s.Text(o, "kind") == "ConfigMap" && k8s.Text(o, "metadata", "name") == name {
			out = append(out, newValueObject(file, o))
		}
	}
	return out
}

// isIncluded reports whether a kustomization in another directory includes dir or the file in dir.
func (s *scanner) isIncluded(dir, file string) bool {
	for other, k := range s.repo.kustomizations {
		if k != nil && other != dir && (slices.Contains(k.Resources, dir) || slices.Contains(k.Resources, file)) {
			return true
		}
	}
	return false
}

// isChanged reports whether a kustomization changes an object in a file, or may do so.
func (s *scanner) isChanged(o valueObject) bool {
	for dir, k := range s.repo.kustomizations {
		if k == nil {
			continue
		}
		files, dirs := map[string]bool{}, map[string]bool{}
		s.repo.addIncluded(dir, files, dirs)
		changes := false
		for d := range dirs {
			changes = changes || s.repo.kustomization(d).Changes
		}
		if !files[o.file] || !changes {
			continue
		}
		if o.kind == "Secret" || slices.ContainsFunc(s.builtValues(dir, o.name), func(b valueObject) bool { return !reflect.DeepEqual(b.values, o.values) }) {
			return true
		}
	}
	return false
}
