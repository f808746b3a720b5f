package diff

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s"
)

func (w *schemaWalk) required(n node) {
	old, now := k8s.Texts(n.old, "required"), k8s.Texts(n.now, "required")
	for _, name := range now {
		if slices.Contains(old, name) {
			continue
		}
		p := n.property(name)
		f := Finding{Before: "optional", After: "required", Message: "field becomes required"}
		p.steps = n.field("required")
		if def, ok := p.now["default"]; ok {
			f.Message = "field becomes required, with the default " + quoteValue(def)
			w.note("crd.required-defaulted", p, f)
			continue
		}
		w.note("crd.required-added", p, f)
	}
	for _, name := range old {
		if !slices.Contains(now, name) && k8s.Map(n.now, "properties", name) != nil {
			w.note("crd.required-removed", n.property(name), Finding{
				Before: "required", After: "optional", Message: "field is no longer required", covers: [][]step{n.field("required")},
			})
		}
	}
}

func (w *schemaWalk) enum(n node) {
	old, had := n.old["enum"].([]any)
	now, has := n.now["enum"].([]any)
	switch {
	case !had && has:
		w.changed("crd.enum-added", n, "enum", "values are restricted to %s", inert.Cut(formatValue(now), 120))
		return
	case had && !has:
		w.changed("crd.enum-removed", n, "enum", "values are no longer restricted to %s", inert.Cut(formatValue(old), 120))
		return
	}
	if gone := missingValues(old, now); len(gone) > 0 {
		w.changed("crd.enum-value-removed", n, "enum", "no longer allowed: %s", strings.Join(gone, ", "))
	}
	if come := missingValues(now, old); len(come) > 0 {
		w.changed("crd.enum-value-added", n, "enum", "now allowed: %s", strings.Join(come, ", "))
	}
}

// missingValues returns the values of a that are not in b, as text.
func missingValues(a, b []any) []string {
	var out []string
	for _, v := range a {
		if !slices.ContainsFunc(b, func(o any) bool { return reflect.DeepEqual(v, o) }) {
			out = append(out, quoteValue(v))
		}
	}
	return out
}

// bounds compares minimum, maximum and similar keywords.
func (w *schemaWalk) bounds(n node) {
	for _, keyword := range []string{"minimum", "minLength", "minItems", "minProperties", "maximum", "maxLength", "maxItems", "maxProperties"} {
		a, b := boundValue(n.old, keyword), boundValue(n.now, keyword)
		switch {
		case a == b:
		case b > a == strings.HasPrefix(keyword, "min"):
			w.changed("crd.bound-tightened", n, keyword, "%s is %s, was %s", keyword, set(n.now[keyword]), set(n.old[keyword]))
		default:
			w.changed("crd.bound-loosened", n, keyword, "%s is %s, was %s", keyword, set(n.now[keyword]), set(n.old[keyword]))
		}
	}
	for _, keyword := range []string{"exclusiveMinimum", "exclusiveMaximum", "uniqueItems"} {
		a, b := k8s.True(n.old, keyword), k8s.True(n.now, keyword)
		if !a && b {
			w.changed("crd.bound-tightened", n, keyword, "%s set", keyword)
		} else if a && !b {
			w.changed("crd.bound-loosened", n, keyword, "%s no longer set", keyword)
		}
	}
	w.multiple(n)
}

// set formats a limit.
func set(v any) string {
	if v == nil {
		return "not set"
	}
	return formatValue(v)
}

// boundValue returns a limit, or a limit without effect if there is none.
func boundValue(s map[string]any, keyword string) float64 {
	if f, ok := parseNumber(s[keyword]); ok {
		return f
	}
	switch keyword {
	case "minLength", "minItems", "minProperties":
		return 0
	case "minimum":
		return math.Inf(-1)
	}
	return math.Inf(1)
}

func (w *schemaWalk) multiple(n node) {
	a, had := parseNumber(n.old["multipleOf"])
	b, has := parseNumber(n.now["multipleOf"])
	switch {
	case had && has && a == b || !had && !has:
	case !has || had && b != 0 && math.Mod(a, b) == 0:
		w.changed("crd.bound-loosened", n, "multipleOf", "multipleOf is %s, was %s", set(n.now["multipleOf"]), set(n.old["multipleOf"]))
	default:
		w.changed("crd.bound-tightened", n, "multipleOf", "multipleOf is %s, was %s", set(n.now["multipleOf"]), set(n.old["multipleOf"]))
	}
}

func (w *schemaWalk) patternAndFormat(n node) {
	a, b := k8s.Text(n.old, "pattern"), k8s.Text(n.now, "pattern")
	switch {
	case a == b:
	case b == "":
		w.changed("crd.pattern-removed", n, "pattern", "pattern removed")
	default:
		w.changed("crd.pattern-changed", n, "pattern", "must match %s", inert.Cut(b, 120))
	}
	a, b = enforcedFormat(k8s.Text(n.old, "format")), enforcedFormat(k8s.Text(n.now, "format"))
	switch {
	case a == b:
	case b == "" || b == "int64" && a == "int32" || b == "double" && a == "float":
		w.changed("crd.format-removed", n, "format", "format %s is removed", a)
	default:
		w.changed("crd.format-changed", n, "format", "must be a valid %s", b)
	}
}

// enforcedFormat returns the format if the API server checks it, or "". It ignores unknown
// formats (apiextensions-apiserver, supportedFormats, and the ranges of numbers).
func enforcedFormat(format string) string {
	known := []string{
		"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
		"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "date-time", "datetime",
		"k8s-short-name", "k8s-long-name", "int32", "int64", "float", "double",
	}
	if slices.Contains(known, format) {
		return format
	}
	return ""
}

func (w *schemaWalk) nullable(n node) {
	a, b := k8s.True(n.old, "nullable"), k8s.True(n.now, "nullable")
	if a && !b {
		w.changed("crd.nullable-removed", n, "nullable", "null is no longer allowed")
	} else if !a && b {
		w.changed("crd.nullable-added", n, "nullable", "null is allowed")
	}
}

func (w *schemaWalk) defaults(n node) {
	a, had := n.old["default"]
	b, has := n.now["default"]
	switch {
	case !had && has:
		w.changed("crd.default-added", n, "default", "now defaults to %s", quoteValue(b))
	case had && !has:
		w.changed("crd.default-removed", n, "default", "no longer defaults to %s", quoteValue(a))
	case had && !reflect.DeepEqual(a, b):
		w.changed("crd.default-changed", n, "default", "defaults to %s, not %s", quoteValue(b), quoteValue(a))
	}
}

const celKeyword = "x-kubernetes-validations"

// celRules compares validation rules by their text. A new rule with the message of a
// removed rule is a change of that rule.
func (w *schemaWalk) celRules(n node) {
	old, now := k8s.Items(n.old, celKeyword), k8s.Items(n.now, celKeyword)
	have := func(list []map[string]any, r map[string]any) bool {
		return slices.ContainsFunc(list, func(o map[string]any) bool { return k8s.Text(o, "rule") == k8s.Text(r, "rule") })
	}
	var gone []map[string]any
	for _, r := range old {
		if !have(now, r) {
			gone = append(gone, r)
		}
	}
	for _, r := range now {
		if have(old, r) {
			continue
		}
		one := func(r map[string]any) []step {
			return append(n.field(celKeyword), step{key: k8s.Text(r, "rule"), by: "rule"})
		}
		f := Finding{After: k8s.Text(r, "rule"), Message: "must hold: " + inert.Cut(cmp.Or(k8s.Text(r, "message"), k8s.Text(r, "rule")), 160), covers: [][]step{one(r)}}
		i := slices.IndexFunc(gone, func(o map[string]any) bool {
			return k8s.Text(o, "message") != "" && k8s.Text(o, "message") == k8s.Text(r, "message")
		})
		if i < 0 {
			w.note("crd.rule-added", n, f, celKeyword)
			continue
		}
		f.Before, f.covers = k8s.Text(gone[i], "rule"), append(f.covers, one(gone[i]))
		gone = slices.Delete(gone, i, i+1)
		w.note("crd.rule-changed", n, f, celKeyword)
	}
	for _, r := range gone {
		w.note("crd.rule-removed", n, Finding{
			Before: k8s.Text(r, "rule"), Message: "removed: " + inert.Cut(cmp.Or(k8s.Text(r, "message"), k8s.Text(r, "rule")), 160),
			covers: [][]step{append(n.field(celKeyword), step{key: k8s.Text(r, "rule"), by: "rule"})},
		})
	}
}

func (w *schemaWalk) combinations(n node) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not"} {
		a, b := n.old[keyword], n.now[keyword]
		switch {
		case reflect.DeepEqual(a, b) || k8s.True(n.now, "x-kubernetes-int-or-string"):
		case b == nil:
			w.changed("crd.combination-removed", n, keyword, "%s is removed", keyword)
		default:
			w.changed("crd.combination-changed", n, keyword, "%s changed", keyword)
		}
	}
}

// topology compares the treatment of lists and maps by server-side apply, and embedded
// resources.
func (w *schemaWalk) topology(n node) {
	list := func(s map[string]any) string {
		kind := cmp.Or(k8s.Text(s, "x-kubernetes-list-type"), "atomic")
		if kind == "map" {
			return fmt.Sprintf("map by %s", strings.Join(k8s.Texts(s, "x-kubernetes-list-map-keys"), ", "))
		}
		return kind
	}
	if a, b := list(n.old), list(n.now); a != b {
		w.note("crd.list-type-changed", n, Finding{Before: a, After: b, Message: fmt.Sprintf("list is %s, was %s", b, a), covers: [][]step{n.field("x-kubernetes-list-type"), n.field("x-kubernetes-list-map-keys")}}, "x-kubernetes-list-type")
	}
	kind := func(s map[string]any) string { return cmp.Or(k8s.Text(s, "x-kubernetes-map-type"), "granular") }
	if a, b := kind(n.old), kind(n.now); a != b {
		w.note("crd.map-type-changed", n, Finding{Before: a, After: b, Message: fmt.Sprintf("map is %s, was %s", b, a)}, "x-kubernetes-map-type")
	}
	const embedded = "x-kubernetes-embedded-resource"
	if a, b := k8s.True(n.old, embedded), k8s.True(n.now, embedded); a != b {
		w.changed("crd.embedded-changed", n, embedded, "embedded resource: %t, was %t", b, a)
	}
}
