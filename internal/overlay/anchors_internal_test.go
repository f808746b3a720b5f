package overlay

import (
	"bytes"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzMayAlias checks that a text has no anchor if mayHaveAnchor returns false for it. This is important,
// because a build does not check such a text against the limits.
func FuzzMayAlias(f *testing.F) {
	for _, text := range []string{
		"a: &b c\n", "&a b: *a\n", "[&a b, *a]", "{\"a\":&b c, d: *b}", "- &a [x]\n- *a\n", "a:\n&b\n", "!!str &a b", "? &a b\n", "\ufeff&a b",
		"a: x\u2028&b c\n", "a: x\u0085&b c\n", "a: x\r&b c\n", "a & b: AT&T && more, x&y\n", "|\n  &a\n", "\xff\xfea\x00:\x00 \x00&\x00b\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if mayHaveAnchor(data) {
			return
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var doc yaml.Node
			if err := dec.Decode(&doc); err != nil {
				return
			}
			if hasAnchor(&doc) {
				t.Fatalf("%q has an anchor", data)
			}
		}
	})
}

func hasAnchor(n *yaml.Node) bool {
	if n.Anchor != "" {
		return true
	}
	for _, e := range n.Content {
		if hasAnchor(e) {
			return true
		}
	}
	return false
}

func TestMayAlias(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "&": false, "a & b": false, "AT&T": false, "x &": false, "a &\n": false, "a && b": true, "&a": true, "a: &b": true, "[&b": true, "-\t&b": true,
	} {
		if got := mayHaveAnchor([]byte(text)); got != want {
			t.Errorf("mayHaveAnchor(%q) = %v, want %v", text, got, want)
		}
	}
}
