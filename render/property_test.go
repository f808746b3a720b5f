package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/bundle"
)

// decodeV3 reads YAML as kustomize does.
func decodeV3(data []byte) (any, error) {
	var v any
	if err := yamlv3.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return plainInts(v), nil
}

// plainInts turns what yaml.v3 yields into what an Object holds.
func plainInts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainInts(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainInts(e)
		}
	case int:
		return int64(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

// checkEncoding fails if either kind of reader takes the encoding of v for
// anything but v.
func checkEncoding(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, v map[string]any,
) {
	t.Helper()
	data := Encode(v)
	got, err := decodeV3(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !equal(got, any(v)) {
		t.Fatalf("read by yaml.v3 it is something else:\n%s", data)
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	var again map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&again); err != nil {
		t.Fatalf("%v", err)
	}
	if !equal(plainNumbers(again), any(v)) {
		t.Fatalf("read by the API server's reader it is something else:\n%s", data)
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	hard := []string{
		"", " ", "y", "N", "on", "Off", "true", "~", "null", "=", "<<", "0777", "0o17", "1e3", "1_000", ".5", "+1", "-", "--", "---", "- a", "-a",
		"1:30", "2001-01-01", "2001-01-01T00:00:00Z", ".inf", "0x1F", "a: b", "a:", ":a", "a #b", "#a", "'a", "\"", "*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "{a}", "[a]", "a, b",
		"a\nb", "a\nb\n", "a\n\n", "\na", " a\nb", "a\n b", "a\n\tb", "\ta", "a\t", "a\r\nb", "a\u0085b", "a\u2028b", "\ufeffa", "é", "😀", "a \nb", "a\n\n\nb\n", "\n", "\n\n", "a\\b", "?", "? a", "a?",
	}
	for _, s := range hard {
		checkEncoding(t, map[string]any{"k": s, "l": []any{s, map[string]any{"m": s}, []any{s}}})
		if s != "<<" { // as a key it merges, quoted or not
			checkEncoding(t, map[string]any{s: map[string]any{s: s}})
		}
	}
}

func TestEncodeIsReadBackWhateverItIs(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.StringMatching(`[-+.:0-9a-fxoeETZ_ #'"\n\t]{0,12}`), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.String().Filter(func(s string) bool { return s != "<<" }), value(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		checkEncoding(t, map[string]any{"v": value(3).Draw(t, "value")})
	})
}

// TestNoFieldIsLost compares each object that comes from a file with what is
// rendered of it. Everything that the file says is there, but for what a rule
// changes: the namespace (rule 6), subjects (7), old versions (8), the Service
// and the CA of conversion webhooks (10, 11).
func TestNoFieldIsLost(t *testing.T) {
	for _, dir := range corpusBundles(t) {
		t.Run(filepath.Base(filepath.Dir(dir))+"_"+filepath.Base(dir), func(t *testing.T) {
			b := load(t, dir)
			before := copies(b.Objects)
			objects, _, err := Manifests(b, pinOf(b, "op-ns"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range b.Objects {
				if !equal(map[string]any(before[i]), o.Fields) {
					t.Errorf("%s was changed in place", o)
				}
			}
			rendered := map[string]Object{}
			for _, o := range objects {
				rendered[o.Group()+" "+o.Kind()+" "+o.Name()+" "+o.Namespace()] = o
			}
			scope := newScopes(b.Objects)
			for _, o := range before {
				if o.APIVersion() == "" || strings.HasSuffix(o.APIVersion(), "v1beta1") {
					continue
				}
				ns := ""
				if scope.namespaced(o.Group(), o.Kind()) {
					ns = "op-ns"
				}
				got, ok := rendered[o.Group()+" "+o.Kind()+" "+o.Name()+" "+ns]
				if !ok {
					t.Errorf("%s is not rendered", o.Key())
					continue
				}
				decoded, err := decodeV3(Encode(map[string]any(got)))
				if err != nil {
					t.Fatal(err)
				}
				missing(t, o.Key().String(), "", decoded, map[string]any(o))
			}
		})
	}
}

func copies(objects []bundle.Object) []Object {
	out := make([]Object, len(objects))
	for i, o := range objects {
		out[i] = deepCopy(Object(o.Fields))
	}
	return out
}

// missing reports what want has and got has not.
func missing(t *testing.T, object, at string, got, want any) {
	t.Helper()
	for _, allowed := range []string{
		".metadata.namespace", ".subjects[", ".spec.conversion.webhook.clientConfig", ".spec.conversion.strategy", ".spec.conversion.webhook.conversionReviewVersions",
		".metadata.annotations.cert-manager.io/inject-ca-from", ".spec.ports",
	} {
		if strings.HasPrefix(at, allowed) {
			return
		}
	}
	if w, ok := want.(map[string]any); ok {
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %s: got %v, want an object", object, at, got)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			value, ok := g[key]
			if !ok {
				t.Errorf("%s: %s.%s is lost", object, at, key)
				continue
			}
			missing(t, object, at+"."+key, value, w[key])
		}
		return
	}
	if w, ok := want.([]any); ok {
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s: %s: got %v, want a list of %d", object, at, got, len(w))
			return
		}
		for i := range w {
			missing(t, object, fmt.Sprintf("%s[%d]", at, i), g[i], w[i])
		}
		return
	}
	if !equal(got, want) {
		t.Errorf("%s: %s: got %v, want %v", object, at, got, want)
	}
}

func TestDocumentsAreInApplyOrder(t *testing.T) {
	object := func(version, kind string) Object { return newObject(version, kind, "", "x") }
	data := Documents([]Object{
		object("example.com/v1", "Namespace"), object("apps/v1", "Deployment"), object("rbac.authorization.k8s.io/v1", "RoleBinding"),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition"), object("v1", "Namespace"), object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
		object("v1", "ServiceAccount"),
	})
	want := []string{"v1 Namespace", "ServiceAccount", "CustomResourceDefinition", "RoleBinding", "Deployment", "ValidatingWebhookConfiguration", "example.com/v1 Namespace"}
	at := 0
	for _, kind := range want {
		version, name, ok := strings.Cut(kind, " ")
		if !ok {
			version, name = "", kind
		}
		next := bytes.Index(data[at:], []byte(version+"\nkind: "+name+"\n"))
		if next < 0 {
			t.Fatalf("%s is not where it ought to be:\n%s", kind, data)
		}
		at += next + 1
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("key", "value\nof lines\n")
	f.Add("=", " a\n\tb")
	f.Fuzz(func(t *testing.T, key, value string) {
		if strings.ToValidUTF8(key, "") != key || strings.ToValidUTF8(value, "") != value || len(key) > 500 || key == "<<" {
			t.Skip("not what a parser yields")
		}
		checkEncoding(t, map[string]any{key: value, "l": []any{value}})
	})
}
