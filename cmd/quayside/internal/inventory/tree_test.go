package inventory_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/resolve/explain"
)

// newNode returns an operator ("namespace/package version") with its dependencies. why is the
// requirement through which its parent depends on it.
func newNode(text, why string, children ...explain.Node) explain.Node {
	key, version, _ := strings.Cut(text, " ")
	namespace, pkg, _ := strings.Cut(key, "/")
	return explain.Node{Namespace: namespace, Package: pkg, Version: version, Requirement: why, Children: children}
}

func newRoot(text string, children ...explain.Node) explain.Node {
	n := newNode(text, "", children...)
	n.Subscription = n.Package
	return n
}

// exampleTrees returns trees with every kind of node.
func exampleTrees() []explain.Node {
	orphan := newRoot("old/beacon 0.3.0")
	orphan.Orphan = true
	again := newNode("sea/chart 2.0.0", "olm.package.required chart >=1.0.0")
	again.Repeated = true
	return []explain.Node{
		newRoot("sea/lantern 1.2.0", newNode("sea/chart 2.0.0", "olm.gvk.required maps.harbour.example.com/v1alpha1 SeaChart", newNode("sea/paper 0.9.1", "olm.package.required paper <1.0.0"))),
		newRoot("sea/pilot 4.1.0", again, newNode("land/telephone 7.0.0", "olm.gvk.required lines.harbour.example.com/v1 Call")),
		newRoot("land/crane 1.0.0"),
		orphan,
	}
}

// allOperators returns all operators of exampleTrees.
func allOperators() []string {
	return []string{"land/crane", "land/telephone", "old/beacon", "sea/chart", "sea/lantern", "sea/paper", "sea/pilot"}
}

// newForest returns the trees of clusters with valid globs.
func newForest(trees []explain.Node, clusters []profile.Cluster) inventory.Forest {
	f, err := inventory.NewForest(trees, clusters)
	if err != nil {
		panic(err)
	}
	return f
}

func exampleForests() map[string]inventory.Forest {
	some := []string{"sea/chart", "sea/lantern", "land/crane"}
	fleet := []profile.Cluster{
		{Name: "dev", Operators: allOperators()}, {Name: "north", Operators: some}, {Name: "south", Operators: some}, {Name: "stage", Operators: allOperators()}, {Name: "chart-only", Operators: []string{"sea/chart", "sea/paper"}}, {Name: "empty", Operators: []string{"none/none"}},
	}
	return map[string]inventory.Forest{
		"tree-one":   newForest(exampleTrees(), []profile.Cluster{{Name: "default", Operators: allOperators()}}),
		"tree-alike": newForest(exampleTrees(), []profile.Cluster{{Name: "dev", Operators: allOperators()}, {Name: "stage", Operators: allOperators()}}),
		"tree-fleet": newForest(exampleTrees(), fleet),
		"tree-none":  newForest(nil, []profile.Cluster{{Name: "default"}}),
	}
}

func TestGoldenForest(t *testing.T) {
	for name, f := range exampleForests() {
		for _, format := range []string{"svg", "html"} {
			text, err := f.Print(format)
			if err != nil {
				t.Fatal(err)
			}
			goldentest.Compare(t, filepath.Join("testdata", name+"."+format), text)
		}
	}
}

func renderSVG(t *testing.T, f inventory.Forest) []byte {
	t.Helper()
	out, err := f.Print("svg")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// svgTexts returns the texts in a picture.
func svgTexts(t *testing.T, picture []byte) string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`>([^<]+)</(?:text|tspan)>|<text[^>]*>([^<]+)<tspan`).FindAllSubmatch(picture, -1) {
		out = append(out, string(m[1])+string(m[2]))
	}
	return strings.Join(out, " ")
}

// TestForestClusters checks the groups of clusters, and the operators that are missing in them.
func TestForestClusters(t *testing.T) {
	got := svgTexts(t, renderSVG(t, exampleForests()["tree-fleet"]))
	for _, want := range []string{
		"2 clusters: dev, stage", "2 clusters: north, south", "Cluster chart-only", "Cluster empty: no operators",
		"paper 0.9.1 olm.package.required paper &lt;1.0.0, missing", // in north and south
		"needed by sea/lantern, sea/pilot (missing)",                // in chart-only
		"land/telephone 7.0.0", "no longer needed", "also required by pilot 4.1.0: olm.package.required chart &gt;=1.0.0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q:\n%s", want, got)
		}
	}
	if got := svgTexts(t, renderSVG(t, exampleForests()["tree-alike"])); !strings.Contains(got, "All 2 clusters: dev, stage") || strings.Count(got, "crane 1.0.0") != 1 {
		t.Error(got)
	}
	if got := svgTexts(t, renderSVG(t, exampleForests()["tree-one"])); strings.Contains(strings.ToLower(got), "clusters") {
		t.Errorf("the only cluster is named:\n%s", got)
	}
}

// TestForestBounds draws trees and fleets that exceed the limits of a picture.
func TestForestBounds(t *testing.T) {
	deep := newRoot("n/p0 1.0.0")
	at := &deep
	for i := range 200 {
		at.Children = []explain.Node{newNode(fmt.Sprintf("n/p%d 1.0.0", i+1), "x")}
		at = &at.Children[0]
	}
	var deepKeys, manyKeys []string
	for i := range 201 {
		deepKeys = append(deepKeys, fmt.Sprintf("n/p%d", i))
	}
	var many []explain.Node
	for i := range 5000 {
		many = append(many, newRoot(fmt.Sprintf("n%d/p 1.0.0", i)))
		manyKeys = append(manyKeys, fmt.Sprintf("n%d/p", i))
	}
	var fleet []profile.Cluster
	for i := range 1000 {
		fleet = append(fleet, profile.Cluster{Name: fmt.Sprintf("c%d", i), Operators: manyKeys[i : i+1]})
	}
	for _, c := range []struct {
		name string
		f    inventory.Forest
		want string
	}{
		{"deep", newForest([]explain.Node{deep}, []profile.Cluster{{Name: "c", Operators: deepKeys}}), "for n/p199"},
		{"many operators", newForest(many, []profile.Cluster{{Name: "c", Operators: manyKeys}}), "more rows: too many to draw"},
		{"many clusters", newForest(many[:1000], fleet), "900 more groups of clusters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			picture := renderSVG(t, c.f)
			checkHarmless(t, picture)
			if !strings.Contains(string(picture), c.want) || len(picture) > 1<<21 {
				t.Errorf("%d bytes, without %q", len(picture), c.want)
			}
			if _, err := c.f.Print("html"); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzForestNames draws trees with untrusted names.
func FuzzForestNames(f *testing.F) {
	for _, s := range []string{"a", "</text><script>alert(1)</script>", "{{.}}", `"><img src=x onerror=a()>`, "\u202e\x1b[2J\n::error::x", strings.Repeat("n", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := explain.Node{Namespace: s, Package: s, Version: s, Subscription: s, Children: []explain.Node{{Namespace: s, Package: s + "2", Version: s, Requirement: s}}}
		f := newForest([]explain.Node{n}, []profile.Cluster{{Name: s, Operators: []string{"none/none"}}, {Name: s + "2"}})
		checkHarmless(t, renderSVG(t, f))
		page, err := f.Print("html")
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.ToLower(string(page)); strings.Contains(text, "<script") || strings.Contains(text, "<img") {
			t.Errorf("%s", page)
		}
	})
}

// checkHarmless fails the test if a picture is not XML, or has an unexpected element.
func checkHarmless(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && !slices.Contains([]string{"svg", "title", "desc", "style", "g", "rect", "circle", "path", "text", "tspan"}, e.Name.Local) {
			t.Errorf("an element <%s>", e.Name.Local)
		}
	}
}
