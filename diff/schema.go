package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/kobj"
)

// schemaWalk compares two structural schemas field by field. say gets each
// finding with the field as users know it ("spec.containers[].image") and the
// steps to it below openAPIV3Schema; added gets each new field.
type schemaWalk struct {
	say   func(rule, at string, steps []step, f Finding, capped ...Severity)
	added func(at string)
}

// node is one place in both schemas.
type node struct {
	old, now map[string]any
	at       string // "spec.size"; empty at the root
	steps    []step
	status   bool // below .status, which the operator writes itself
}

// root compares whole schemas. A version without one keeps everything.
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

// note emits a finding at n. What is wrong in status is the operator's to
// mend: it comes with the definition.
func (w *schemaWalk) note(rule string, n node, f Finding, more ...string) {
	at, steps := n.at, append(slices.Clone(n.steps), path(more...)...)
	if at == "" {
		at = "(root)"
	}
	if n.status {
		w.say(rule, at, steps, f, Low)
		return
	}
	w.say(rule, at, steps, f)
}

// changed emits a finding about one keyword of n.
func (w *schemaWalk) changed(rule string, n node, keyword, format string, args ...any) {
	w.note(rule, n, Finding{
		Before: show(n.old[keyword]), After: show(n.now[keyword]), Message: fmt.Sprintf(format, args...),
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

// types reports whether the rest of the two schemas can be compared.
func (w *schemaWalk) types(n node) bool {
	a, b := typeOf(n.old), typeOf(n.now)
	f := Finding{Before: cmp.Or(a, "any"), After: cmp.Or(b, "any")}
	f.Message = fmt.Sprintf("type changed from %s to %s", f.Before, f.After)
	switch {
	case a == b:
		return true
	case b == "" || a == "integer" && b == "number" || b == intOrString && (a == "integer" || a == "string"):
		w.note("crd.type-widened", n, f, "type")
		return b != ""
	default:
		w.note("crd.type-changed", n, f, "type")
		return false
	}
}

const intOrString = "integer or string"

func typeOf(s map[string]any) string {
	if kobj.True(s, "x-kubernetes-int-or-string") {
		return intOrString
	}
	return kobj.Text(s, "type")
}

func (w *schemaWalk) unknownFields(n node) {
	a, b := kobj.True(n.old, preserveUnknown), kobj.True(n.now, preserveUnknown)
	f := Finding{Before: fmt.Sprint(a), After: fmt.Sprint(b)}
	switch {
	case a && !b:
		f.Message = "fields that the schema does not name are no longer kept"
		w.note("crd.unknown-fields-pruned", n, f)
	case !a && b:
		f.Message = "fields that the schema does not name are kept"
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
		old: kobj.Map(n.old, "properties", name), now: kobj.Map(n.now, "properties", name), at: at,
		steps: append(slices.Clone(n.steps), path("properties", name)...), status: n.status || n.at == "" && name == "status",
	}
}

func (w *schemaWalk) properties(n node) {
	old, now := kobj.Map(n.old, "properties"), kobj.Map(n.now, "properties")
	for _, name := range union(old, now) {
		_, had := old[name]
		_, has := now[name]
		p := n.property(name)
		switch {
		case n.at == "" && (name == "apiVersion" || name == "kind" || name == "metadata" && !(had && has)):
			// The API server knows these by itself.
		case had && has:
			w.walk(p)
		case has:
			if w.added != nil {
				w.added(p.at)
			}
		default:
			w.removed(n, p)
		}
	}
}

// removed reports a field that goes; it is kept where unknown fields are.
func (w *schemaWalk) removed(parent, p node) {
	f := Finding{Before: cmp.Or(typeOf(p.old), "any"), Message: "field removed"}
	p.steps = append(slices.Clone(parent.steps), path("properties")...)
	switch {
	case kobj.True(parent.now, preserveUnknown):
		f.Message = "field no longer described; its value is kept"
		w.say("crd.field-removed", p.at, p.steps, f, Low)
	case kobj.At(parent.now, "additionalProperties") != nil:
		f.Message = "field no longer described; it becomes one of the free keys"
		w.say("crd.field-removed", p.at, p.steps, f, Low)
	default:
		w.note("crd.field-removed", p, f)
	}
}

// freeKeys compares additionalProperties; true stands for any value.
func (w *schemaWalk) freeKeys(n node) {
	a, had := anySchema(n.old["additionalProperties"])
	b, has := anySchema(n.now["additionalProperties"])
	below := node{old: a, now: b, at: n.at + "{}", steps: append(slices.Clone(n.steps), path("additionalProperties")...), status: n.status}
	switch {
	case had && has:
		w.walk(below)
	case has && w.added != nil:
		w.added(below.at)
	case had && !has && kobj.True(n.now, preserveUnknown):
		w.say("crd.map-removed", n.at, n.steps, Finding{Before: "any key", Message: "free keys are no longer described; they are kept"}, Low)
	case had && !has:
		w.note("crd.map-removed", n, Finding{Before: "any key", Message: "only the named fields are allowed from now on"})
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
	old, now := kobj.Map(n.old, "items"), kobj.Map(n.now, "items")
	if old == nil || now == nil {
		return
	}
	w.walk(node{old: old, now: now, at: n.at + "[]", steps: append(slices.Clone(n.steps), path("items")...), status: n.status})
}
