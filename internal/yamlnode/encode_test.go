package yamlnode_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/internal/yamlnode"
)

// checkEncoding encodes v, and checks that kustomize's decoder and the API server's decoder return v, even
// if package sanitize escapes the text first.
func checkEncoding(t interface {
	Fatalf(format string, args ...any)
	Helper()
}, v map[string]any,
) {
	t.Helper()
	data := yamlnode.Encode(v)
	if shown, err := yamltest.Decode([]byte(sanitize.Lines(string(data)))); err != nil || !k8s.Equal(shown, any(v)) {
		t.Fatalf("the sanitized text decodes to another value: %v\n%s", err, data)
	}
	got, err := yamltest.Decode(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !k8s.Equal(got, any(v)) {
		t.Fatalf("kustomize decodes another value:\n%s", data)
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
	if !k8s.Equal(yamltest.Plain(again), any(v)) {
		t.Fatalf("the API server decodes another value:\n%s", data)
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	hard := []string{
		"", " ", "y", "N", "on", "Off", "true", "~", "null", "=", "<<", "0777", "0o17", "1e3", "1_000", ".5", "+1", "-", "--", "---", "- a", "-a",
		"1:30", "2001-01-01", "2001-01-01T00:00:00Z", ".inf", "0x1F", "a: b", "a:", ":a", "a #b", "#a", "'a", "\"", "*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "{a}", "[a]", "a, b",
		"a\nb", "a\nb\n", "a\n\n", "\na", " a\nb", "a\n b", "a\n\tb", "\ta", "a\t", "a\r\nb", "a\u0085b", "a\u2028b", "\ufeffa", "é", "😀", "a \nb", "a\n\n\nb\n", "\n", "\n\n", "a\\b", "?", "? a", "a?",
		"a ##[error]b", "a\n  ::error::b\n", "::a", "##vso[x]\nb", "\u3164", "\u034f\nb", "a\U000e0101", "\u202e\nb",
	}
	for _, s := range hard {
		checkEncoding(t, map[string]any{"k": s, "l": []any{s, map[string]any{"m": s}, []any{s}}})
		if s != "<<" { // as a key, it is a merge key, even in quotes
			checkEncoding(t, map[string]any{s: map[string]any{s: s}})
		}
	}
}

func TestEncodeRoundTripRandom(t *testing.T) {
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

func FuzzEncode(f *testing.F) {
	f.Add("key", "value\nof lines\n")
	f.Add("=", " a\n\tb")
	f.Fuzz(func(t *testing.T, key, value string) {
		if strings.ToValidUTF8(key, "") != key || strings.ToValidUTF8(value, "") != value || len(key) > 500 || key == "<<" {
			t.Skip("no parser returns this value")
		}
		checkEncoding(t, map[string]any{key: value, "l": []any{value}})
	})
}
