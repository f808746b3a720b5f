package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// step is one step of a path into a document. The value of by determines its meaning:
//
//   - "": a field of a mapping; key is its name
//   - ".": a scalar element of a list; key is its value
//   - "#": an element of a list; key is its index
//   - "*": the order of a list
//   - otherwise: an element of a list; by is the name of a field in the element, and key is the value of this field
type step struct{ key, by string }

// fieldPath is the path of a field in a document. Its methods return new paths.
type fieldPath []step

// fieldAt returns the path of a field: the names of nested fields.
func fieldAt(names ...string) fieldPath { return fieldPath(nil).field(names...) }

// crdVersionAt returns the path of one version in a CRD.
func crdVersionAt(name string) fieldPath { return fieldAt("spec", "versions").named(name) }

// crdSchemaAt returns the path of the schema of one version in a CRD.
func crdSchemaAt(version string) fieldPath {
	return crdVersionAt(version).field("schema", "openAPIV3Schema")
}

// webhookAt returns the path of one webhook in a webhook configuration.
func webhookAt(name string) fieldPath { return fieldAt("webhooks").named(name) }

// grantAt returns the path of a grant in a role, after the conversion by roleGrants.
func grantAt(verb, object string) fieldPath { return fieldAt("rules", verb+" "+object) }

// subjectAt returns the path of a subject in a binding, after the conversion by comparedContent.
func subjectAt(s k8s.Subject) fieldPath { return fieldAt("subjects", s.String()) }

// fieldPathOf converts keys, the path of a field in content, to a fieldPath. In keys, a list element has its
// index as the key. In the result, a list element with a field "name" is identified by its name instead.
func fieldPathOf(content any, keys []string) fieldPath {
	var out fieldPath
	for _, key := range keys {
		list, isList := content.([]any)
		if !isList {
			content, out = asMap(content)[key], out.field(key)
			continue
		}
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(list) {
			return out
		}
		if content = list[i]; k8s.Text(asMap(content), "name") != "" {
			out = out.named(k8s.Text(asMap(content), "name"))
		} else {
			out = out.index(i)
		}
	}
	return out
}

// with returns p extended by steps.
func (p fieldPath) with(steps ...step) fieldPath { return append(p[:len(p):len(p)], steps...) }

// join returns the path below relative to p.
func (p fieldPath) join(below fieldPath) fieldPath { return p.with(below...) }

// field returns p extended by the names of nested fields.
func (p fieldPath) field(names ...string) fieldPath {
	out := append(make(fieldPath, 0, len(p)+len(names)), p...)
	for _, name := range names {
		out = append(out, step{key: name})
	}
	return out
}

// named returns p extended by the list element with this name.
func (p fieldPath) named(name string) fieldPath { return p.with(step{key: name, by: "name"}) }

// flag returns p extended by the command-line flag with this name in a list of arguments.
func (p fieldPath) flag(name string) fieldPath { return p.with(step{key: name, by: "flag"}) }

// index returns p extended by the list element with index i.
func (p fieldPath) index(i int) fieldPath { return p.with(step{key: strconv.Itoa(i), by: "#"}) }

// isIn reports whether p equals the path above, or is a path below it.
func (p fieldPath) isIn(above fieldPath) bool {
	return len(above) <= len(p) && slices.Equal(p[:len(above)], above)
}

// key returns the key of step i, or "" if the path is shorter.
func (p fieldPath) key(i int) string {
	if i >= len(p) {
		return ""
	}
	return p[i].key
}

// last returns the key of the last step, or "" for an empty path.
func (p fieldPath) last() string { return p.key(max(0, len(p)-1)) }

// contains reports whether any step of the path has one of the keys.
func (p fieldPath) contains(keys ...string) bool {
	return slices.ContainsFunc(p, func(s step) bool { return slices.Contains(keys, s.key) })
}

// element returns the key of an element, and the topmost field in this element, for a path in the top-level
// list or map called list. Both results are "" for other paths.
func (p fieldPath) element(list string) (key, field string) {
	if p.key(0) != list {
		return "", ""
	}
	return p.key(1), p.key(2)
}

// metadataEntry splits a path in metadata, such as metadata.labels.app, into "labels" and "app".
// Both are "" for other paths.
func (p fieldPath) metadataEntry() (field, name string) { return p.element("metadata") }

// isLabel reports whether the path is a label or annotation with this name, of the object itself or
// in a template.
func (p fieldPath) isLabel(name string) bool {
	n := len(p)
	return n >= 3 && p[n-3].key == "metadata" && (p[n-2].key == "labels" || p[n-2].key == "annotations") && p[n-1].key == name
}

// crdVersionField returns the topmost field in a version of a CRD, such as "schema". It returns ""
// for other paths.
func (p fieldPath) crdVersionField() string {
	if !p.isIn(fieldAt("spec", "versions")) {
		return ""
	}
	return p.key(3)
}

// isSchemaKeyword reports whether the path ends with a keyword of a CRD's schema, such as
// "description", and not with a property of that name.
func (p fieldPath) isSchemaKeyword() bool {
	return p.crdVersionField() == "schema" && len(p) > 4 && p[len(p)-2].key != "properties"
}

// container returns the name of the container that the path is in, or "".
func (p fieldPath) container() string {
	for i := range len(p) - 1 {
		if slices.Contains(k8s.ContainerLists(), p[i].key) && p[i+1].by == "name" {
			return p[i+1].key
		}
	}
	return ""
}

// isContainer reports whether the path leads to a container.
func (p fieldPath) isContainer() bool {
	n := len(p)
	return n > 1 && p[n-1].by == "name" && slices.Contains(k8s.ContainerLists(), p[n-2].key)
}

// String formats the path for display, such as "spec.containers[manager].image" or
// "spec.versions[v1] spec.size minimum".
func (p fieldPath) String() string {
	var b strings.Builder
	for i, s := range p {
		if s.key == "openAPIV3Schema" {
			return strings.TrimSuffix(b.String(), ".schema") + " " + formatSchemaPath(p[i+1:])
		}
		switch {
		case s.by == "*":
			b.WriteString(" order")
		case s.by != "":
			b.WriteString("[" + s.key + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// pattern formats the path like String, without the keys of list elements.
func (p fieldPath) pattern() string {
	plain := slices.Clone(p)
	for i := range plain {
		if plain[i].by != "" && plain[i].by != "*" {
			plain[i].key = ""
		}
	}
	return plain.String()
}

// formatSchemaPath formats the path of a keyword in a CRD's schema for display.
func formatSchemaPath(path fieldPath) string {
	field, keyword := "", ""
	for i := 0; i < len(path); i++ {
		switch key := path[i].key; {
		case keyword != "":
			keyword += path[i : i+1].String()
		case key == "properties" && i+1 < len(path):
			i++
			field += "." + path[i].key
		case key == "items":
			field += "[]"
		case key == "additionalProperties":
			field += "{}"
		default:
			keyword = key
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(field, ".") + " " + keyword)
}
