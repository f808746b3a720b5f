package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDependency(t *testing.T) {
	for _, tt := range []struct{ typ, value, want string }{
		{"olm.package", `{"version":">=1 <2","packageName":"a"}`, `olm.package.required {"packageName":"a","versionRange":">=1 <2"}`},
		{"olm.gvk", `{"version":"v1","kind":"K","group":"g","x":1}`, `olm.gvk.required {"group":"g","kind":"K","version":"v1"}`},
		{"olm.label", `{"label":"l"}`, `olm.label.required {"label":"l"}`},
		{"olm.constraint", `{"gvk":{}}`, `olm.constraint {"gvk":{}}`},
		{"other", `1`, `other 1`},
		{"olm.package", `[]`, ""},
		{"olm.gvk", `{"kind":1}`, ""},
	} {
		got, err := Dependency(Property{Type: tt.typ, Value: []byte(tt.value)})
		if (err != nil) != (tt.want == "") || err == nil && got.Type+" "+string(got.Value) != tt.want {
			t.Errorf("%s %s: got %s %s, %v, want %s", tt.typ, tt.value, got.Type, got.Value, err, tt.want)
		}
	}
}

// TestProperties checks that constructed properties can be decoded.
func TestProperties(t *testing.T) {
	g := GVK{Group: "g<>.io", Version: "v1", Kind: "K"}
	need, err := Dependency(Property{Type: TypePackage, Value: PackageProperty("b", "<2.0.0").Value})
	if err != nil {
		t.Fatal(err)
	}
	got := Read([]Property{PackageProperty("a", "1.0.0"), GVKProperty(g), GVKProperty(g), RequiredGVKProperty(g), MaxOpenShiftVersionProperty("4.9"), need, {Type: TypeDeprecated, Value: []byte("{}")}, {Type: "other", Value: []byte("{}")}})
	if r := got.Requires[1].Range.String(); r != "<2.0.0" {
		t.Errorf("range %q", r)
	}
	got.Requires[1].Range = Range{}
	want := Facts{
		Package: "a", Version: "1.0.0", Provides: []GVK{g}, MaxVersion: "4.9", Deprecated: true,
		Requires: []Requirement{{Kind: RequireGVK, GVK: g}, {Kind: RequirePackage, Package: "b"}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Range{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestDepthOfConstraints(t *testing.T) {
	for depth, want := range map[int]bool{maxConstraintDepth: true, maxConstraintDepth + 1: false} {
		text := strings.Repeat(`{"not":{"constraints":[`, depth-1) + `{"gvk":{}}` + strings.Repeat(`]}}`, depth-1)
		if _, err := parseConstraint([]byte(text)); (err == nil) != want {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// TestUnreadable checks which invalid values of properties cause an error.
func TestUnreadable(t *testing.T) {
	r := NewReader()
	var f Facts
	for typ, fault := range map[string]bool{
		TypePackage: true, TypeGVK: true, TypeLabel: false, TypeMaxVersion: false, TypeGVKRequired: false, TypeConstraint: false,
	} {
		if err := r.Add(&f, Property{Type: typ, Value: []byte(`[1]`)}); (err != nil) != fault {
			t.Errorf("%s: %v", typ, err)
		}
	}
	first := f.Unusable
	if err := r.Add(&f, Property{Type: TypePackageRequired, Value: []byte(`{}`)}); err != nil || first == "" || f.Unusable != first {
		t.Errorf("%v; unusable for %q, then for %q", err, first, f.Unusable)
	}
	if len(f.Provides)+len(f.Labels)+len(f.Requires) > 0 || f.MaxVersion != "[1]" {
		t.Errorf("got %+v", f)
	}
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{">=1.0.0 <2.0.0 || 3.x", "1.0.0", "!=1.2.3", "x", "1.x.x", ">1.x", "", "*", "^1", "~1", "1.0", "v1.0.0", ">=1.0.0,<2.0.0", "|| 1.0.0", "<", "1.0.0 ||", ">=x.1.0"} {
		f.Add(seed, "1.2.3-rc.1+b")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		r, err := ParseRange(text)
		if err != nil {
			if r.Contains(Version{}) {
				t.Fatalf("invalid range %q contains 0.0.0", text)
			}
			return
		}
		if r.String() != text {
			t.Fatalf("String() = %q, want %q", r.String(), text)
		}
		if v, err := ParseVersion(version); err == nil {
			r.Contains(v)
		}
	})
}

func TestParseRangeTooLong(t *testing.T) {
	if _, err := ParseRange(strings.Repeat("1.0.0 || ", 10_000) + "1.0.0"); err == nil || err.Error() != "version range of 90005 bytes exceeds the limit of 65536" {
		t.Errorf("got %.200v", err)
	}
}

func FuzzParseConstraint(f *testing.F) {
	for _, seed := range []string{
		`{"gvk":{"group":"g","version":"v1","kind":"K"}}`,
		`{"package":{"packageName":"a","versionRange":">=1.0.0 <2.0.0 || 3.x"}}`,
		`{"failureMessage":"m","all":{"constraints":[{"cel":{"rule":"properties.exists(p, p.type == \"x\")"}},{"any":{"constraints":[]}},{"not":{}}]}}`,
		`{"teapot":1}`, `null`, `[]`, `{"all":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseConstraint(data)
		if (r == nil) == (err == nil) {
			t.Fatalf("got requirement %v and error %v, want exactly one", r, err)
		}
		if r != nil {
			checkRequirement(t, *r, 1)
		}
	})
}

// checkRequirement fails if the fields of a requirement do not match its kind.
func checkRequirement(t *testing.T, r Requirement, depth int) {
	if r.Kind < RequireGVK || r.Kind > RequireCEL || depth > maxConstraintDepth {
		t.Fatalf("kind %d at depth %d", r.Kind, depth)
	}
	if len(r.Of) > 0 && r.Kind != RequireAll && r.Kind != RequireAny && r.Kind != RequireNot {
		t.Fatalf("kind %d has parts", r.Kind)
	}
	for _, sub := range r.Of {
		checkRequirement(t, sub, depth+1)
	}
}

func TestParseVersions(t *testing.T) {
	for _, tt := range []struct {
		within, version string
		want            bool
	}{
		{">=1.2 <2", "1.2.0", true},
		{">=1.2 <2", "2.0.0", false},
		{"1.2", "1.2.9", true},
		{"1.2.3", "1.2.4", false},
		{">=1.0.0", "1.1.0-rc.1", false},
		{">=1.0.0-0", "1.1.0-rc.1", true},
		{">=1", "latest", false},
	} {
		in, err := ParseVersions(tt.within)
		if err != nil {
			t.Fatalf("%s: %v", tt.within, err)
		}
		if got := in(tt.version); got != tt.want {
			t.Errorf("%s in %s: %v, want %v", tt.version, tt.within, got, tt.want)
		}
	}
	if _, err := ParseVersions("stable"); err == nil {
		t.Error(`"stable" is accepted as a range`)
	}
}
