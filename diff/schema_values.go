package diff

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

func (w *schemaWalk) compareRequired(n node) {
	old, now := k8s.Texts(n.old, "required"), k8s.Texts(n.now, "required")
	for _, name := range now {
		if slices.Contains(old, name) {
			continue
		}
		p := n.property(name)
		f := Finding{Before: "optional", After: "required", Message: "field becomes required"}
		p.path = n.path.field("required")
		if defaultValue, ok := p.now["default"]; ok {
			f.Message = "field becomes required, with the default " + quoteValue(defaultValue)
			w.reportKeyword("crd.required-defaulted", p, f)
			continue
		}
		w.reportKeyword("crd.required-added", p, f)
	}
	for _, name := range old {
		if !slices.Contains(now, name) && k8s.Map(n.now, "properties", name) != nil {
			w.reportKeyword("crd.required-removed", n.property(name), Finding{
				Before: "required", After: "optional", Message: "field is no longer required", explains: []fieldPath{n.path.field("required")},
			})
		}
	}
}

// compareEnum compares the allowed values in enum.
func (w *schemaWalk) compareEnum(n node) {
	old, had := n.old["enum"].([]any)
	now, has := n.now["enum"].([]any)
	switch {
	case !had && has:
		w.reportChange("crd.enum-added", n, "enum", "values are restricted to %s", sanitize.Truncate(formatValue(now), 120))
		return
	case had && !has:
		w.reportChange("crd.enum-removed", n, "enum", "values are no longer restricted to %s", sanitize.Truncate(formatValue(old), 120))
		return
	}
	if removed := missingValues(old, now); len(removed) > 0 {
		w.reportChange("crd.enum-value-removed", n, "enum", "no longer allowed: %s", strings.Join(removed, ", "))
	}
	if added := missingValues(now, old); len(added) > 0 {
		w.reportChange("crd.enum-value-added", n, "enum", "now allowed: %s", strings.Join(added, ", "))
	}
}

// missingValues formats the values in a that are not in b.
func missingValues(a, b []any) []string {
	var out []string
	for _, v := range a {
		if !slices.ContainsFunc(b, func(o any) bool { return reflect.DeepEqual(v, o) }) {
			out = append(out, quoteValue(v))
		}
	}
	return out
}

// compareBounds compares limits such as minimum, maxLength and maxItems.
func (w *schemaWalk) compareBounds(n node) {
	for _, keyword := range []string{"minimum", "minLength", "minItems", "minProperties", "maximum", "maxLength", "maxItems", "maxProperties"} {
		a, b := boundValue(n.old, keyword), boundValue(n.now, keyword)
		switch {
		case a == b:
		case b > a == strings.HasPrefix(keyword, "min"):
			w.reportChange("crd.bound-tightened", n, keyword, "%s is %s, was %s", keyword, formatBound(n.now[keyword]), formatBound(n.old[keyword]))
		default:
			w.reportChange("crd.bound-loosened", n, keyword, "%s is %s, was %s", keyword, formatBound(n.now[keyword]), formatBound(n.old[keyword]))
		}
	}
	for _, keyword := range []string{"exclusiveMinimum", "exclusiveMaximum", "uniqueItems"} {
		a, b := k8s.True(n.old, keyword), k8s.True(n.now, keyword)
		if !a && b {
			w.reportChange("crd.bound-tightened", n, keyword, "%s set", keyword)
		} else if a && !b {
			w.reportChange("crd.bound-loosened", n, keyword, "%s no longer set", keyword)
		}
	}
	w.compareMultipleOf(n)
}

func formatBound(v any) string {
	if v == nil {
		return "not set"
	}
	return formatValue(v)
}

// boundValue returns the value of a limit. If it is not set, it returns a value that limits
// nothing.
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

// compareMultipleOf compares multipleOf. A new value is looser if it divides the old one.
func (w *schemaWalk) compareMultipleOf(n node) {
	a, had := parseNumber(n.old["multipleOf"])
	b, has := parseNumber(n.now["multipleOf"])
	switch {
	case had && has && a == b || !had && !has:
	case !has || had && b != 0 && math.Mod(a, b) == 0:
		w.reportChange("crd.bound-loosened", n, "multipleOf", "multipleOf is %s, was %s", formatBound(n.now["multipleOf"]), formatBound(n.old["multipleOf"]))
	default:
		w.reportChange("crd.bound-tightened", n, "multipleOf", "multipleOf is %s, was %s", formatBound(n.now["multipleOf"]), formatBound(n.old["multipleOf"]))
	}
}

// comparePatternAndFormat compares pattern and format. A format that the API server does not
// enforce is ignored.
func (w *schemaWalk) comparePatternAndFormat(n node) {
	a, b := k8s.Text(n.old, "pattern"), k8s.Text(n.now, "pattern")
	switch {
	case a == b:
	case b == "":
		w.reportChange("crd.pattern-removed", n, "pattern", "pattern removed")
	default:
		w.reportChange("crd.pattern-changed", n, "pattern", "must match %s", sanitize.Truncate(b, 120))
	}
	a, b = enforcedFormat(k8s.Text(n.old, "format")), enforcedFormat(k8s.Text(n.now, "format"))
	switch {
	case a == b:
	case b == "" || b == "int64" && a == "int32" || b == "double" && a == "float":
		w.reportChange("crd.format-removed", n, "format", "format %s is removed", a)
	default:
		w.reportChange("crd.format-changed", n, "format", "must be a valid %s", b)
	}
}

// enforcedFormat returns format if the API server validates values of this format, otherwise "" (see
// apiextensions-apiserver, supportedFormats; numeric formats are validated as ranges).
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

func (w *schemaWalk) compareNullable(n node) {
	a, b := k8s.True(n.old, "nullable"), k8s.True(n.now, "nullable")
	if a && !b {
		w.reportChange("crd.nullable-removed", n, "nullable", "null is no longer allowed")
	} else if !a && b {
		w.reportChange("crd.nullable-added", n, "nullable", "null is allowed")
	}
}

func (w *schemaWalk) compareDefaults(n node) {
	a, had := n.old["default"]
	b, has := n.now["default"]
	switch {
	case !had && has:
		w.reportChange("crd.default-added", n, "default", "now defaults to %s", quoteValue(b))
	case had && !has:
		w.reportChange("crd.default-removed", n, "default", "no longer defaults to %s", quoteValue(a))
	case had && !reflect.DeepEqual(a, b):
		w.reportChange("crd.default-changed", n, "default", "defaults to %s, was %s", quoteValue(b), quoteValue(a))
	}
}

const celKeyword = "x-kubernetes-validations"

// compareValidations compares CEL validation rules by their expressions. An added rule with the
// same message as a removed rule counts as a changed rule.
func (w *schemaWalk) compareValidations(n node) {
	old, now := k8s.Items(n.old, celKeyword), k8s.Items(n.now, celKeyword)
	contains := func(list []map[string]any, r map[string]any) bool {
		return slices.ContainsFunc(list, func(o map[string]any) bool { return k8s.Text(o, "rule") == k8s.Text(r, "rule") })
	}
	ruleAt := func(r map[string]any) fieldPath {
		return n.path.field(celKeyword).with(step{key: k8s.Text(r, "rule"), by: "rule"})
	}
	var removed []map[string]any
	for _, r := range old {
		if !contains(now, r) {
			removed = append(removed, r)
		}
	}
	for _, r := range now {
		if contains(old, r) {
			continue
		}
		f := Finding{After: k8s.Text(r, "rule"), Message: "must hold: " + sanitize.Truncate(cmp.Or(k8s.Text(r, "message"), k8s.Text(r, "rule")), 160), explains: []fieldPath{ruleAt(r)}}
		i := slices.IndexFunc(removed, func(o map[string]any) bool {
			return k8s.Text(o, "message") != "" && k8s.Text(o, "message") == k8s.Text(r, "message")
		})
		if i < 0 {
			w.reportKeyword("crd.rule-added", n, f, celKeyword)
			continue
		}
		f.Before, f.explains = k8s.Text(removed[i], "rule"), append(f.explains, ruleAt(removed[i]))
		removed = slices.Delete(removed, i, i+1)
		w.reportKeyword("crd.rule-changed", n, f, celKeyword)
	}
	for _, r := range removed {
		w.reportKeyword("crd.rule-removed", n, Finding{
			Before: k8s.Text(r, "rule"), Message: "removed: " + sanitize.Truncate(cmp.Or(k8s.Text(r, "message"), k8s.Text(r, "rule")), 160),
			explains: []fieldPath{ruleAt(r)},
		})
	}
}

func (w *schemaWalk) compareCombinations(n node) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not"} {
		a, b := n.old[keyword], n.now[keyword]
		switch {
		case reflect.DeepEqual(a, b) || k8s.True(n.now, "x-kubernetes-int-or-string"):
		case b == nil:
			w.reportChange("crd.combination-removed", n, keyword, "%s is removed", keyword)
		default:
			w.reportChange("crd.combination-changed", n, keyword, "%s changed", keyword)
		}
	}
}

// compareTopology compares the keywords that determine how server-side apply merges lists and maps,
// and whether a field is an embedded resource.
func (w *schemaWalk) compareTopology(n node) {
	listType := func(s map[string]any) string {
		typ := cmp.Or(k8s.Text(s, "x-kubernetes-list-type"), "atomic")
		if typ == "map" {
			return fmt.Sprintf("map by %s", strings.Join(k8s.Texts(s, "x-kubernetes-list-map-keys"), ", "))
		}
		return typ
	}
	if a, b := listType(n.old), listType(n.now); a != b {
		w.reportKeyword("crd.list-type-changed", n, Finding{Before: a, After: b, Message: fmt.Sprintf("list is %s, was %s", b, a), explains: []fieldPath{n.path.field("x-kubernetes-list-type"), n.path.field("x-kubernetes-list-map-keys")}}, "x-kubernetes-list-type")
	}
	mapType := func(s map[string]any) string { return cmp.Or(k8s.Text(s, "x-kubernetes-map-type"), "granular") }
	if a, b := mapType(n.old), mapType(n.now); a != b {
		w.reportKeyword("crd.map-type-changed", n, Finding{Before: a, After: b, Message: fmt.Sprintf("map is %s, was %s", b, a)}, "x-kubernetes-map-type")
	}
	const embedded = "x-kubernetes-embedded-resource"
	if a, b := k8s.True(n.old, embedded), k8s.True(n.now, embedded); a != b {
		w.reportChange("crd.embedded-changed", n, embedded, "embedded resource: %t, was %t", b, a)
	}
}
