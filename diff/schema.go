package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// schemaWalk compares two structural schemas field by field. say receives each finding
// with the path of the field ("spec.containers[].image") and the steps to it below
// openAPIV3Schema; added receives each new field, and may be nil.
type schemaWalk struct {
	say   func(rule, at string, steps []step, f Finding, capped ...Severity)
	added func(at string, steps []step)
}

// node is the same path in both schemas.
type node struct {
	old, now map[string]any
	at       string // "spec.size"; empty at the root
	steps    []step
	status   bool // below .status, which the operator writes itself
}

// root compares whole schemas. A version without a schema keeps all fields.
func (w *schemaWalk) root(old, now map[string]any) {
	if old == nil {
		old = map[string]any{"type": "object", preserveUnknown: true}
	}
	if now == nil {
		now = map[string]any{"type": "object", preserveUnknown: true}
	}
	w.walk(node{old: old, now: now})
}

const preserveUnknown = "x-kubernetes-preserve-unknown-fields"

// note reports a finding at n. In the status it is at most Low: the operator writes the
// status and is upgraded with the CRD.
func (w *schemaWalk) note(rule string, n node, f Finding, more ...string) {
	at, steps := n.at, n.field(more...)
	if at == "" {
		at = "(root)"
	}
	if n.status {
		w.say(rule, at, steps, f, Low)
		return
	}
	w.say(rule, at, steps, f)
}

// field returns the steps to a keyword of n.
func (n node) field(keywords ...string) []step {
	return append(slices.Clone(n.steps), stepPath(keywords...)...)
}

// changed reports a finding about one keyword of n.
func (w *schemaWalk) changed(rule string, n node, keyword, format string, args ...any) {
	w.note(rule, n, Finding{
		Before: formatValue(n.old[keyword]), After: formatValue(n.now[keyword]), Message: fmt.Sprintf(format, args...),
	}, keyword)
}

func (w *schemaWalk) walk(n node) {
	if reflect.DeepEqual(n.old, n.now) {
		return
	}
	if !w.types(n) {
		return
	}
	for _, look := range []func(node){
		w.unknownFields, w.required, w.enum, w.bounds, w.patternAndFormat, w.nullable, w.defaults, w.celRules, w.combinations, w.topology,
	} {
		look(n)
	}
	w.properties(n)
	w.freeKeys(n)
	w.elements(n)
}

// types compares the types, and reports whether the rest of the schemas is comparable.
func (w *schemaWalk) types(n node) bool {
	a, b := typeOf(n.old), typeOf(n.now)
	f := Finding{Before: cmp.Or(a, "any"), After: cmp.Or(b, "any")}
	f.Message = fmt.Sprintf("type changed from %s to %s", f.Before, f.After)
	switch {
	case a == b:
		return true
	case b == "" || a == "integer" && b == "number" || b == intOrString && (a == "integer" || a == "string"):
		f.covers = [][]step{n.field("type"), n.field("x-kubernetes-int-or-string")}
		w.note("crd.type-widened", n, f, "type")
		return b != ""
	default:
		f.covers = [][]step{n.field("type"), n.field("x-kubernetes-int-or-string")}
		w.note("crd.type-changed", n, f, "type")
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

func (w *schemaWalk) unknownFields(n node) {
	a, b := k8s.True(n.old, preserveUnknown), k8s.True(n.now, preserveUnknown)
	f := Finding{Before: fmt.Sprint(a), After: fmt.Sprint(b), covers: [][]step{n.field(preserveUnknown)}}
	switch {
	case a && !b:
		f.Message = "fields that the schema does not have are pruned"
		w.note("crd.unknown-fields-pruned", n, f)
	case !a && b:
		f.Message = "fields that the schema does not have are preserved"
		w.note("crd.unknown-fields-kept", n, f, preserveUnknown)
	}
}

// property returns the node of one field below n.
func (n node) property(name string) node {
	at := name
	if n.at != "" {
		at = n.at + "." + name
	}
	return node{
		old: k8s.Map(n.old, "properties", name), now: k8s.Map(n.now, "properties", name), at: at,
		steps: append(slices.Clone(n.steps), stepPath("properties", name)...), status: n.status || n.at == "" && name == "status",
	}
}

func (w *schemaWalk) properties(n node) {
	old, now := k8s.Map(n.old, "properties"), k8s.Map(n.now, "properties")
	for _, name := range union(old, now) {
		_, had := old[name]
		_, has := now[name]
		p := n.property(name)
		switch {
		case n.at == "" && (name == "apiVersion" || name == "kind" || name == "metadata" && !(had && has)):
			// The API server defines these itself.
		case had && has:
			w.walk(p)
		case has:
			if w.added != nil {
				w.added(p.at, p.steps)
			}
		default:
			w.removed(n, p)
		}
	}
}

// removed reports a removed field. Its value is kept if the parent keeps unknown fields or
// allows free keys.
func (w *schemaWalk) removed(parent, p node) {
	f := Finding{Before: cmp.Or(typeOf(p.old), "any"), Message: "field removed", covers: [][]step{p.steps}}
	p.steps = append(slices.Clone(parent.steps), stepPath("properties")...)
	switch {
	case k8s.True(parent.now, preserveUnknown):
		f.Message = "field removed from the schema; its value is preserved"
		w.say("crd.field-removed", p.at, p.steps, f, Low)
	case k8s.At(parent.now, "additionalProperties") != nil:
		f.Message = "field removed from the schema; it becomes an additional property"
		w.say("crd.field-removed", p.at, p.steps, f, Low)
	default:
		w.note("crd.field-removed", p, f)
	}
}

// freeKeys compares additionalProperties; true means any value.
func (w *schemaWalk) freeKeys(n node) {
	a, had := anySchema(n.old["additionalProperties"])
	b, has := anySchema(n.now["additionalProperties"])
	below := node{old: a, now: b, at: n.at + "{}", steps: append(slices.Clone(n.steps), stepPath("additionalProperties")...), status: n.status}
	switch {
	case had && has:
		w.walk(below)
	case has && w.added != nil:
		w.added(below.at, below.steps)
	case had && !has && k8s.True(n.now, preserveUnknown):
		w.say("crd.map-removed", n.at, n.steps, Finding{Before: "any key", Message: "additional properties removed from the schema; their values are preserved", covers: [][]step{below.steps}}, Low)
	case had && !has:
		w.note("crd.map-removed", n, Finding{Before: "any key", Message: "additional properties are no longer allowed", covers: [][]step{below.steps}})
	}
}

func anySchema(v any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, true
	}
	if b, ok := v.(bool); ok && b {
		return map[string]any{}, true
	}
	return nil, false
}

func (w *schemaWalk) elements(n node) {
	old, now := k8s.Map(n.old, "items"), k8s.Map(n.now, "items")
	if old == nil || now == nil {
		return
	}
	w.walk(node{old: old, now: now, at: n.at + "[]", steps: append(slices.Clone(n.steps), stepPath("items")...), status: n.status})
}
