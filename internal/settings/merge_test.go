package settings

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/yamlnode"
)

// settings draws the settings of one file. The values contain the number of the file.
func settings(t *rapid.T, file int) *yamlnode.Node {
	text := func() string { return fmt.Sprintf("f%d", file) }
	scalar := func(label string) string {
		return rapid.SampledFrom([]string{text(), text(), text(), "~"}).Draw(t, label)
	}
	some := func(label string) bool { return rapid.Bool().Draw(t, label) }
	names := func(label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, label)
	}
	var fields []string
	add := func(label string, value func() string) {
		if some(label) {
			fields = append(fields, label+": "+value())
		}
	}
	add("output", func() string { return scalar("output value") })
	add("mirrors", func() string {
		return rapid.SampledFrom([]string{"[]", "[" + text() + "]", "~"}).Draw(t, "mirrors value")
	})
	add("proxy", func() string {
		return rapid.SampledFrom([]string{"~", text(), "{}", "{httpProxy: " + scalar("http") + "}", "{noProxy: " + scalar("no") + ", httpsProxy: " + text() + "}"}).Draw(t, "proxy value")
	})
	add("catalogs", func() string {
		var entries []string
		for _, name := range names("catalogs") {
			ns := rapid.SampledFrom([]string{"", "namespace: olm, "}).Draw(t, "namespace")
			entries = append(entries, fmt.Sprintf("{%sname: %s, source: %s}", ns, name, scalar("source")))
		}
		return rapid.SampledFrom([]string{"[" + strings.Join(entries, ", ") + "]", "[" + strings.Join(entries, ", ") + "]", "~"}).Draw(t, "catalogs value")
	})
	add("clusters", func() string {
		var entries []string
		for _, name := range names("clusters") {
			config := rapid.SampledFrom([]string{"~", "{}", "{x: " + text() + "}", "{y: {z: " + scalar("z") + "}}", text()}).Draw(t, "config")
			entries = append(entries, fmt.Sprintf("{name: %s, config: %s}", name, config))
		}
		return "[" + strings.Join(entries, ", ") + "]"
	})
	add("policy", func() string {
		return fmt.Sprintf("{rules: %s, waivers: [{rule: %s}], severity: {%s: %s}}", rapid.SampledFrom([]string{"[]", "~", "[{name: " + text() + "}]"}).Draw(t, "rules"), text(), text(), scalar("severity"))
	})
	docs, err := yamlnode.Documents("f", []byte("spec: {"+strings.Join(fields, ", ")+"}\n"), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, spec := yamlnode.Field(copyTree(docs[0], file*lineSpan), "spec")
	return spec
}

// show formats a tree with the line of each node.
func show(n *yamlnode.Node) string {
	var b strings.Builder
	var walk func(n *yamlnode.Node, indent string)
	walk = func(n *yamlnode.Node, indent string) {
		fmt.Fprintf(&b, "%s%d %s %q\n", indent, n.Line, n.ShortTag(), n.Value)
		for _, c := range n.Content {
			walk(c, indent+"  ")
		}
	}
	walk(n, "")
	return b.String()
}

// scalars calls the function each for every scalar value of a field below n.
func scalars(n *yamlnode.Node, each func(*yamlnode.Node)) {
	switch n.Kind { //nolint:exhaustive // other nodes have no values
	case yamlnode.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			scalars(n.Content[i], each)
		}
	case yamlnode.SequenceNode:
		for _, c := range n.Content {
			scalars(c, each)
		}
	case yamlnode.ScalarNode:
		each(n)
	}
}

func empty() *yamlnode.Node { return &yamlnode.Node{Kind: yamlnode.MappingNode, Tag: "!!map"} }

// TestMergingNothing merges settings with empty settings, which must have no effect.
func TestMergingNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := settings(t, 1)
		m := merger{reset: map[*yamlnode.Node]bool{}}
		for name, got := range map[string]*yamlnode.Node{"over": m.merge("spec", a, empty()), "base": m.merge("spec", empty(), a)} {
			if got.Line = a.Line; show(m.prune(got)) != show(a) {
				t.Fatalf("%s: %s", name, cmp.Diff(show(a), show(got)))
			}
		}
	})
}

// TestMergingIsAssociative merges three files in both orders, (a+b)+c and a+(b+c), and compares the results.
func TestMergingIsAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := settings(t, 1), settings(t, 2), settings(t, 3)
		before := show(a) + show(b) + show(c)
		m := merger{reset: map[*yamlnode.Node]bool{}}
		left := m.prune(m.merge("spec", m.merge("spec", a, b), c))
		right := m.prune(m.merge("spec", a, m.merge("spec", b, c)))
		if show(left) != show(right) {
			t.Fatalf("-(a+b)+c +a+(b+c)\n%s\n%s", cmp.Diff(show(left), show(right)), before)
		}
		if show(a)+show(b)+show(c) != before {
			t.Fatal("a file was modified")
		}
	})
}

// TestMergedPositions checks that the position of each merged value is in the last file that sets the value.
func TestMergedPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := merger{reset: map[*yamlnode.Node]bool{}}
		merged := empty()
		last := map[string]int{} // last file that sets a field outside of lists
		for file := 1; file <= 3; file++ {
			own := settings(t, file)
			for i := 0; i < len(own.Content); i += 2 {
				last[own.Content[i].Value] = file
			}
			merged = m.merge("spec", merged, own)
		}
		merged = m.prune(merged)
		scalars(merged, func(n *yamlnode.Node) {
			if strings.HasPrefix(n.Value, "f") && n.Value != fmt.Sprintf("f%d", n.Line/lineSpan) {
				t.Fatalf("%s has a position in file %d\n%s", n.Value, n.Line/lineSpan, show(merged))
			}
		})
		for i := 0; i < len(merged.Content); i += 2 {
			if file := merged.Content[i+1].Line / lineSpan; file != last[merged.Content[i].Value] {
				t.Fatalf("%s has a position in file %d, want %d", merged.Content[i].Value, file, last[merged.Content[i].Value])
			}
		}
		if _, output := yamlnode.Field(merged, "output"); output != nil && slices.Contains([]string{"", "~"}, output.Value) && last["output"] > 1 && m.reset[output] {
			t.Fatal("a null that removes a field remains")
		}
	})
}
