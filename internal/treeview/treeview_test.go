package treeview_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/treeview"
	"github.com/quayside/quayside/resolve"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file, or writes the file under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what it was; -update writes it anew", file)
	}
}

// op returns an operator, "namespace/package version", with what it needs.
func op(text, why string, children ...resolve.Node) resolve.Node {
	key, version, _ := strings.Cut(text, " ")
	namespace, pkg, _ := strings.Cut(key, "/")
	return resolve.Node{Namespace: namespace, Package: pkg, Version: version, Requirement: why, Children: children}
}

func root(text string, children ...resolve.Node) resolve.Node {
	n := op(text, "", children...)
	n.Subscription = n.Package
	return n
}

// harbour is an installation with all that may be in one.
func harbour() []resolve.Node {
	orphan := root("old/beacon 0.3.0")
	orphan.Orphan = true
	again := op("sea/chart 2.0.0", "olm.package.required chart >=1.0.0")
	again.Repeated = true
	return []resolve.Node{
		root("sea/lantern 1.2.0", op("sea/chart 2.0.0", "olm.gvk.required maps.harbour.example.com/v1alpha1 SeaChart", op("sea/paper 0.9.1", "olm.package.required paper <1.0.0"))),
		root("sea/pilot 4.1.0", again, op("land/telephone 7.0.0", "olm.gvk.required lines.harbour.example.com/v1 Call")),
		root("land/crane 1.0.0"),
		orphan,
	}
}

// all is what a cluster gets that gets everything.
func all() []string {
	return []string{"land/crane", "land/telephone", "old/beacon", "sea/chart", "sea/lantern", "sea/paper", "sea/pilot"}
}

func picked() map[string]treeview.Forest {
	some := []string{"sea/chart", "sea/lantern", "land/crane"}
	fleet := []treeview.Cluster{
		{Name: "dev", Gets: all()}, {Name: "north", Gets: some}, {Name: "south", Gets: some}, {Name: "stage", Gets: all()}, {Name: "chart-only", Gets: []string{"sea/chart", "sea/paper"}}, {Name: "empty"},
	}
	return map[string]treeview.Forest{
		"tree-one":   treeview.Of(harbour(), []treeview.Cluster{{Name: "default", Gets: all()}}),
		"tree-alike": treeview.Of(harbour(), []treeview.Cluster{{Name: "dev", Gets: all()}, {Name: "stage", Gets: all()}}),
		"tree-fleet": treeview.Of(harbour(), fleet),
		"tree-none":  treeview.Of(nil, []treeview.Cluster{{Name: "default"}}),
	}
}

func TestGolden(t *testing.T) {
	for name, f := range picked() {
		for _, format := range []string{"svg", "html"} {
			text, err := f.Print(format)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+"."+format), text)
		}
	}
}

func svg(t *testing.T, f treeview.Forest) []byte {
	t.Helper()
	out, err := f.Print("svg")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// texts returns what is written in a picture.
func texts(t *testing.T, picture []byte) string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllSubmatch(picture, -1) {
		out = append(out, string(m[1]))
	}
	return strings.Join(out, "\n")
}

// TestClusters shows who is told together, and what is missing where.
func TestClusters(t *testing.T) {
	got := texts(t, svg(t, picked()["tree-fleet"]))
	for _, want := range []string{
		"2 clusters: dev, stage", "2 clusters: north, south", "Cluster chart-only", "Cluster empty: no operators",
		"paper 0.9.1\nolm.package.required paper &lt;1.0.0, missing", // in north and south
		"needed by sea/lantern, sea/pilot (missing)",                 // in chart-only
		"land/telephone 7.0.0", "not needed any more", "dependencies shown above",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture lacks %q:\n%s", want, got)
		}
	}
	if got := texts(t, svg(t, picked()["tree-alike"])); !strings.Contains(got, "All 2 clusters: dev, stage") || strings.Count(got, "crane 1.0.0") != 1 {
		t.Error(got)
	}
	if got := texts(t, svg(t, picked()["tree-one"])); strings.Contains(strings.ToLower(got), "clusters") {
		t.Errorf("the only cluster is named:\n%s", got)
	}
}

// TestBounds draws what is too much to be drawn.
func TestBounds(t *testing.T) {
	deep := root("n/p0 1.0.0")
	at := &deep
	for i := range 200 {
		at.Children = []resolve.Node{op(fmt.Sprintf("n/p%d 1.0.0", i+1), "x")}
		at = &at.Children[0]
	}
	var deepKeys, manyKeys []string
	for i := range 201 {
		deepKeys = append(deepKeys, fmt.Sprintf("n/p%d", i))
	}
	var many []resolve.Node
	for i := range 5000 {
		many = append(many, root(fmt.Sprintf("n%d/p 1.0.0", i)))
		manyKeys = append(manyKeys, fmt.Sprintf("n%d/p", i))
	}
	var fleet []treeview.Cluster
	for i := range 5000 {
		fleet = append(fleet, treeview.Cluster{Name: fmt.Sprintf("c%d", i), Gets: manyKeys[i : i+1]})
	}
	for _, c := range []struct {
		name string
		f    treeview.Forest
		want string
	}{
		{"deep", treeview.Of([]resolve.Node{deep}, []treeview.Cluster{{Name: "c", Gets: deepKeys}}), "for n/p199"},
		{"many operators", treeview.Of(many, []treeview.Cluster{{Name: "c", Gets: manyKeys}}), "more rows: too many to be drawn"},
		{"many clusters", treeview.Of(many, fleet), "4900 groups of clusters more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			picture := svg(t, c.f)
			harmless(t, picture)
			if !strings.Contains(string(picture), c.want) || len(picture) > 1<<21 {
				t.Errorf("%d bytes, without %q", len(picture), c.want)
			}
			if _, err := c.f.Print("html"); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzNames puts a name of a stranger wherever there is one.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "</text><script>alert(1)</script>", "{{.}}", `"><img src=x onerror=a()>`, "\u202e\x1b[2J\n::error::x", strings.Repeat("n", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := resolve.Node{Namespace: s, Package: s, Version: s, Subscription: s, Children: []resolve.Node{{Namespace: s, Package: s + "2", Version: s, Requirement: s}}}
		forest := treeview.Of([]resolve.Node{n}, []treeview.Cluster{{Name: s, Gets: []string{s + "/" + s}}, {Name: s + "2"}})
		harmless(t, svg(t, forest))
		page, err := forest.Print("html")
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.ToLower(string(page)); strings.Contains(text, "<script") || strings.Contains(text, "<img") {
			t.Errorf("%s", page)
		}
	})
}

// harmless fails where a picture is no XML, or has an element that it never has.
func harmless(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && !slices.Contains([]string{"svg", "title", "desc", "style", "g", "rect", "path", "text"}, e.Name.Local) {
			t.Errorf("an element <%s>", e.Name.Local)
		}
	}
}
