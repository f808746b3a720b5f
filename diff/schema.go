package diff

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/internal/k8s"
)

// schemaWalk compares two structural schemas field by field. It calls report for each finding, with
// the name of the field, such as "spec.containers[].image", and its path below openAPIV3Schema. It
// calls added for each added field, unless added is nil.
type schemaWalk struct {
	report func(rule, at string, path fieldPath, f Finding, capped ...Severity)
	added  func(at string, path fieldPath)
}

// node is a field that exists in both schemas.
type node struct {
	old, now map[string]any
	at       string // name of the field, such as "spec.size"; empty for the root
	path     fieldPath
	inStatus bool // the field is in status, which only the operator writes
}

// compareSchemas compares two whole schemas. A nil schema means a version without a schema, which
// preserves all fields.
func (w *schemaWalk) compareSchemas(old, now map[string]any) {
	if old == nil {
		old = map[string]any{"type": "object", preserveUnknown: true}
	}
	if now == nil {
		now = map[string]any{"type": "object", preserveUnknown: true}
	}
	w.walk(node{old: old, now: now})
}

const preserveUnknown = "x-kubernetes-preserve-unknown-fields"

// reportKeyword reports a finding about schema keywords of n. In status, the severity is at most low:
// only the operator writes the status, and the operator is upgraded together with the CRD.
func (w *schemaWalk) reportKeyword(rule string, n node, f Finding, more ...string) {
	at, path := n.at, n.path.field(more...)
	if at == "" {
		at = "(root)"
	}
	if n.inStatus {
		w.report(rule, at, path, f, Low)
		return
	}
	w.report(rule, at, path, f)
}

// reportChange reports a finding with a formatted message about a changed keyword of n.
func (w *schemaWalk) reportChange(rule string, n node, keyword, format string, args ...any) {
	w.reportKeyword(rule, n, Finding{
		Before: formatValue(n.old[keyword]), After: formatValue(n.now[keyword]), Message: fmt.Sprintf(format, args...),
	}, keyword)
}

// walk compares the keywords of n and all schemas below n.
func (w *schemaWalk) walk(n node) {
	if equalValues(n.old, n.now) {
		return
	}
	if !w.compareTypes(n) {
		return
	}
	for _, compare := range []func(node){
		w.compareUnknownFields, w.compareRequired, w.compareEnum, w.compareBounds, w.comparePatternAndFormat, w.compareNullable, w.compareDefaults, w.compareValidations, w.compareCombinations, w.compareTopology,
	} {
		compare(n)
	}
	w.compareProperties(n)
	w.compareAdditionalProperties(n)
	w.compareItems(n)
}

// compareTypes compares the types of n. It returns false if the types differ so much that the other keywords
// are not comparable.
func (w *schemaWalk) compareTypes(n node) bool {
	a, b := typeOf(n.old), typeOf(n.now)
	f := Finding{Before: cmp.Or(a, "any"), After: cmp.Or(b, "any")}
	f.Message = fmt.Sprintf("type changed from %s to %s", f.Before, f.After)
	switch {
	case a == b:
		return true
	case b == "" || a == "integer" && b == "number" || b == intOrString && (a == "integer" || a == "string"):
		f.explains = []fieldPath{n.path.field("type"), n.path.field("x-kubernetes-int-or-string")}
		w.reportKeyword("crd.type-widened", n, f, "type")
		return b != ""
	default:
		f.explains = []fieldPath{n.path.field("type"), n.path.field("x-kubernetes-int-or-string")}
		w.reportKeyword("crd.type-changed", n, f, "type")
		return false
	}
}

const intOrString = "integer or string"

func typeOf(s map[string]any) string {
	if k8s.True(s, "x-kubernetes-int-or-string") {
		return intOrString
	}
	return k8s.Text(s, "type")
}

// compareUnknownFields compares whether unknown fields are preserved or pruned.
func (w *schemaWalk) compareUnknownFields(n node) {
	a, b := k8s.True(n.old, preserveUnknown), k8s.True(n.now, preserveUnknown)
	f := Finding{Before: fmt.Sprint(a), After: fmt.Sprint(b), explains: []fieldPath{n.path.field(preserveUnknown)}}
	switch {
	case a && !b:
		f.Message = "fields that are not in the schema are pruned"
		w.reportKeyword("crd.unknown-fields-pruned", n, f)
	case !a && b:
		f.Message = "fields that are not in the schema are preserved"
		w.reportKeyword("crd.unknown-fields-kept", n, f, preserveUnknown)
	}
}

// property returns the node of a property of n.
func (n node) property(name string) node {
	at := name
	if n.at != "" {
		at = n.at + "." + name
	}
	return node{
		old: k8s.Map(n.old, "properties", name), now: k8s.Map(n.now, "properties", name), at: at,
		path: n.path.field("properties", name), inStatus: n.inStatus || n.at == "" && name == "status",
	}
}

// compareProperties compares the properties of n by name.
func (w *schemaWalk) compareProperties(n node) {
	old, now := k8s.Map(n.old, "properties"), k8s.Map(n.now, "properties")
	for _, name := range unionKeys(old, now) {
		_, had := old[name]
		_, has := now[name]
		p := n.property(name)
		switch {
		case n.at == "" && (name == "apiVersion" || name == "kind" || name == "metadata" && !(had && has)):
			// The API server defines apiVersion, kind and metadata.
		case had && has:
			w.walk(p)
		case has:
			if w.added != nil {
				w.added(p.at, p.path)
			}
		default:
			w.reportRemovedField(n, p)
		}
	}
}

// reportRemovedField reports field p, which was removed from parent. The values of p are kept if parent
// preserves unknown fields or allows additional properties.
func (w *schemaWalk) reportRemovedField(parent, p node) {
	f := Finding{Before: cmp.Or(typeOf(p.old), "any"), Message: "field removed", explains: []fieldPath{p.path}}
	p.path = parent.path.field("properties")
	switch {
	case k8s.True(parent.now, preserveUnknown):
		f.Message = "field removed from the schema; its value is preserved"
		w.report("crd.field-removed", p.at, p.path, f, Low)
	case k8s.At(parent.now, "additionalProperties") != nil:
		f.Message = "field removed from the schema; it becomes an additional property"
		w.report("crd.field-removed", p.at, p.path, f, Low)
	default:
		w.reportKeyword("crd.field-removed", p, f)
	}
}

// compareAdditionalProperties compares additionalProperties, a schema or true.
func (w *schemaWalk) compareAdditionalProperties(n node) {
	a, had := parseSchema(n.old["additionalProperties"])
	b, has := parseSchema(n.now["additionalProperties"])
	below := node{old: a, now: b, at: n.at + "{}", path: n.path.field("additionalProperties"), inStatus: n.inStatus}
	switch {
	case had && has:
		w.walk(below)
	case has && w.added != nil:
		w.added(below.at, below.path)
	case had && !has && k8s.True(n.now, preserveUnknown):
		w.report("crd.map-removed", n.at, n.path, Finding{Before: "any key", Message: "additional properties removed from the schema; their values are preserved", explains: []fieldPath{below.path}}, Low)
	case had && !has:
		w.reportKeyword("crd.map-removed", n, Finding{Before: "any key", Message: "additional properties are no longer allowed", explains: []fieldPath{below.path}})
	}
}

// parseSchema returns v as a schema. true becomes a schema that accepts any value. It returns false
// if v is not a schema.
func parseSchema(v any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, true
	}
	if b, ok := v.(bool); ok && b {
		return map[string]any{}, true
	}
	return nil, false
}

// compareItems compares the schemas of list items.
func (w *schemaWalk) compareItems(n node) {
	old, now := k8s.Map(n.old, "items"), k8s.Map(n.now, "items")
	if old == nil || now == nil {
		return
	}
	w.walk(node{old: old, now: now, at: n.at + "[]", path: n.path.field("items"), inStatus: n.inStatus})
}
