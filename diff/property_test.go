package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestItself checks that a comparison of a state with itself is empty.
func TestItself(t *testing.T) {
	before, after := demo(t)
	for _, s := range []State{before, after} {
		if r := compare(t, s, s); !r.Empty() || len(r.Removals) > 0 {
			t.Errorf("%s: %v", s.Name, lines(r))
		}
	}
}

// TestOrderHasNoEffect checks that a report does not depend on the order of objects, resources and pins.
func TestOrderHasNoEffect(t *testing.T) {
	before, after := demo(t)
	want, err := indentJSON(compare(t, before, after).Document())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		for _, s := range []*State{&before, &after} {
			s.Objects, s.Resources, s.Pins = slices.Clone(s.Objects), slices.Clone(s.Resources), slices.Clone(s.Pins)
			r.Shuffle(len(s.Objects), func(i, j int) { s.Objects[i], s.Objects[j] = s.Objects[j], s.Objects[i] })
			r.Shuffle(len(s.Resources), func(i, j int) { s.Resources[i], s.Resources[j] = s.Resources[j], s.Resources[i] })
			r.Shuffle(len(s.Pins), func(i, j int) { s.Pins[i], s.Pins[j] = s.Pins[j], s.Pins[i] })
		}
		got, err := indentJSON(compare(t, before, after).Document())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Fatal(cmp.Diff(string(want), string(got)))
		}
	}
}

// TestArgumentsAreUnmodified checks that Compare does not modify its arguments.
func TestArgumentsAreUnmodified(t *testing.T) {
	before, after := demo(t)
	b2, a2 := demo(t)
	compare(t, before, after)
	if d := cmp.Diff([]State{b2, a2}, []State{before, after}, cmp.AllowUnexported(Object{})); d != "" {
		t.Error(d)
	}
}

// schemaOf draws a structural schema.
func schemaOf(t *rapid.T, depth int) map[string]any {
	kinds := []string{"string", "integer", "boolean", "number"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array")
	}
	s := map[string]any{"type": rapid.SampledFrom(kinds).Draw(t, "type")}
	switch s["type"] {
	case "object":
		props := map[string]any{}
		for _, name := range []string{"a", "b", "c"} {
			if rapid.Bool().Draw(t, "has "+name) {
				props[name] = schemaOf(t, depth-1)
			}
		}
		s["properties"] = props
		if len(props) > 0 && rapid.Bool().Draw(t, "required") {
			s["required"] = []any{sortedKeys(props)[0]}
		}
	case "array":
		s["items"] = schemaOf(t, depth-1)
	case "string":
		if rapid.Bool().Draw(t, "enum") {
			s["enum"] = []any{"x", "y"}[:rapid.IntRange(1, 2).Draw(t, "n")]
		}
		if rapid.Bool().Draw(t, "length") {
			s["maxLength"] = rapid.Int64Range(1, 3).Draw(t, "max")
		}
	case "integer":
		if rapid.Bool().Draw(t, "min") {
			s["minimum"] = rapid.Int64Range(0, 3).Draw(t, "minimum")
		}
	}
	return s
}

// TestSchemaMirrors compares schemas in both directions. Items that are added, tightened or dropped in
// one direction must be removed, loosened or gained in the other. A schema must equal itself.
func TestSchemaMirrors(t *testing.T) {
	opposite := map[string]string{
		"crd.required-added": "crd.required-removed", "crd.enum-added": "crd.enum-removed", "crd.enum-value-added": "crd.enum-value-removed",
		"crd.bound-tightened": "crd.bound-loosened",
	}
	for a, b := range opposite {
		opposite[b] = a
	}
	walk := func(a, b map[string]any) (found, added []string) {
		w := schemaWalk{
			report: func(rule, at string, _ fieldPath, _ Finding, _ ...Severity) { found = append(found, rule+" "+at) },
			added:  func(at string, _ fieldPath) { added = append(added, at) },
		}
		w.compareSchemas(a, b)
		return found, added
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := schemaOf(t, 3), schemaOf(t, 3)
		if found, added := walk(a, a); len(found)+len(added) > 0 {
			t.Fatalf("a schema differs from itself: %v %v", found, added)
		}
		there, came := walk(a, b)
		back, went := walk(b, a)
		removed := func(list []string) (out []string) {
			for _, l := range list {
				if rule, at, _ := strings.Cut(l, " "); rule == "crd.field-removed" {
					out = append(out, at)
				}
			}
			slices.Sort(out)
			return out
		}
		slices.Sort(came)
		slices.Sort(went)
		if d := cmp.Diff(came, removed(back)); d != "" {
			t.Fatalf("added by before → after, but not removed by after → before: %s", d)
		}
		if d := cmp.Diff(went, removed(there)); d != "" {
			t.Fatalf("added by after → before, but not removed by before → after: %s", d)
		}
		for _, l := range there {
			rule, at, _ := strings.Cut(l, " ")
			inverse := opposite[rule] + " " + at
			// A requirement on an added field has no counterpart, because no finding reports that a
			// removed field was required. An integer is a number, but not vice versa.
			if opposite[rule] != "" && !slices.Contains(came, at) && !slices.Contains(back, "crd.type-changed "+at) && !slices.Contains(back, inverse) {
				t.Fatalf("%s has no counterpart in %v", l, back)
			}
		}
	})
}

// TestPermissionsMirror checks that permissions gained in one direction are lost in the other.
func TestPermissionsMirror(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) string {
			var rules []string
			for i := range rapid.IntRange(0, 4).Draw(rt, label) {
				l := fmt.Sprint(label, i)
				rules = append(rules, rule(rapid.SampledFrom([]string{"''", "apps", "'*'"}).Draw(rt, l+"g"), rapid.SampledFrom([]string{"pods", "secrets", "'*'", "pods, pods/exec"}).Draw(rt, l+"r"),
					rapid.SampledFrom([]string{"get", "get, list", "'*'"}).Draw(rt, l+"v")))
			}
			return doc(clusterRole(rules...), binding, account)
		}
		a, b := draw("a"), draw("b")
		count := func(r *Report, lost bool) int {
			n := 0
			for _, f := range r.Findings {
				if f.family() == "rbac" && (f.Rule == "rbac.lost") == lost {
					n++
				}
			}
			return n
		}
		there, back := compareManifests(t, a, b), compareManifests(t, b, a)
		if (count(there, false) > 0) != (count(back, true) > 0) || (count(there, true) > 0) != (count(back, false) > 0) {
			rt.Fatalf("before → after: %v; after → before: %v", lines(there), lines(back))
		}
	})
}

// FuzzDefinitions checks that invalid CRDs cause no panic, and that a CRD equals itself.
func FuzzDefinitions(f *testing.F) {
	f.Add(widget("{type: string}"), widget("{type: integer}"))
	f.Add(widgetOf("{name: v1}"), widgetOf("{name: v1, schema: {openAPIV3Schema: []}}"))
	f.Add(widget("{type: array, items: [a], enum: {}, required: 7, maximum: x, default: [1, {}]}"), widget("{items: {items: {items: {}}}, properties: [], additionalProperties: 3}"))
	f.Add("apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: 7", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}")
	f.Fuzz(func(t *testing.T, a, b string) {
		read := func(s string) ([]Object, bool) {
			out, err := Objects([]File{{Path: "x.yaml", Data: []byte(s)}}, nil)
			return out, err == nil
		}
		x, ok1 := read(a)
		y, ok2 := read(b)
		if !ok1 || !ok2 {
			return
		}
		r, err := Compare(State{Objects: x}, State{Objects: y}, CompareOptions{})
		if err != nil {
			return
		}
		if len(Markdown(r)) >= MaxComment {
			t.Error("comment too long")
		}
		if _, err := indentJSON(r.Document()); err != nil {
			t.Error(err)
		}
		if self, err := Compare(State{Objects: x}, State{Objects: x}, CompareOptions{}); err != nil || !self.Empty() {
			t.Errorf("a CRD differs from itself: %v, %v", lines(self), err)
		}
	})
}
