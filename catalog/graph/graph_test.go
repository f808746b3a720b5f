package graph_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/graph"
	"github.com/quayside/quayside/lockfile"
)

// example returns a package with two channels. The first channel has edges of every kind. One of these edges
// begins at a bundle outside the channel.
func example(t *testing.T) *catalog.Package {
	t.Helper()
	data := catalog.PackageData{Name: "a", DefaultChannel: "stable", Channels: []catalog.ChannelData{
		{Name: "stable", Entries: []catalog.EntryData{
			{Name: "a.v1"},
			{Name: "a.v2", Replaces: "a.v1", Skips: []string{"a.v0", "a.v1"}, SkipRange: ">=1.0.0 <3.0.0"},
			{Name: "a.v3", Replaces: "a.v2", SkipRange: ">=1.0.0 <3.0.0"},
			{Name: "a.v4", Replaces: "a.v3"},
		}},
		{Name: `b"eta`, Entries: []catalog.EntryData{{Name: "a.v3"}}},
	}}
	for _, v := range []string{"1", "2", "3", "4"} {
		data.Bundles = append(data.Bundles, catalog.BundleData{Name: "a.v" + v, Image: "quay.io/a:" + v, Properties: []catalog.Property{
			{Type: "olm.package", Value: json.RawMessage(`{"packageName": "a", "version": "` + v + `.0.0"}`)},
		}})
	}
	c, err := catalog.New(catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "cat"}, Packages: []catalog.PackageData{data}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := c.Package("a")
	return p
}

func TestPrinters(t *testing.T) {
	g := graph.New(example(t), &lockfile.Pin{Bundle: "a.v3", Channel: "stable"}, []string{"a.v4"})
	for name, tt := range map[string]struct{ got, want string }{
		"text":    {g.Text(), text},
		"mermaid": {g.Mermaid(), mermaid},
		"dot":     {g.DOT(), dot},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestWithoutAPin checks that without a pin no node is marked, and that a pin without a channel
// marks its path in all channels.
func TestWithoutAPin(t *testing.T) {
	marked := func(pin *lockfile.Pin) (nodes int) {
		for _, ch := range graph.New(example(t), pin, nil).Channels {
			for _, n := range ch.Nodes {
				if n.Pinned || n.OnPath {
					nodes++
				}
			}
		}
		return nodes
	}
	if n := marked(nil); n != 0 {
		t.Errorf("%d nodes are marked without a pin", n)
	}
	if n := marked(&lockfile.Pin{Bundle: "a.v3"}); n != 2 {
		t.Errorf("%d nodes are marked, want one in each channel", n)
	}
}

// TestHostileNames checks that no name can end its label. Every line of the output must match one of the line
// formats of the printer.
func TestHostileNames(t *testing.T) {
	const (
		label = `"(?:[^"#%{}<>&;\x60\\\x00-\x1f]|#[0-9]+;)*"`
		text  = `"(?:[^"\\\x00-\x1f&]|\\["\\]|&amp;)*"`
	)
	mermaidLine := regexp.MustCompile(`^(?:flowchart LR|  subgraph c0 \[` + label + `\]|    c0n\d\[` + label + `\]|    c0n\d --> c0n\d|  end)$`)
	dotLine := regexp.MustCompile(`^(?:digraph ` + text + ` \{|  rankdir=LR;|  node \[shape=box\];|  subgraph cluster_0 \{|    label=` + text + `;|    ` +
		text + ` \[label=` + text + `\];|    ` + text + ` -> ` + text + ` \[\];| *\})$`)
	for _, name := range []string{
		"a\"]\n  c0n0 --> x\n", "%%{init: {}}%%", "`md`", "#quot;#35;", `back\nslash\`, "<b>", "&#8238;", "\u202e\x1b[2J\u2028", "]; end", "::error::x",
	} {
		g := graph.Graph{Package: name, Catalog: name, Channels: []graph.Channel{{
			Name: name, Nodes: []graph.Node{{Bundle: name}, {Bundle: "b"}}, Edges: []graph.Edge{{From: name, To: "b", Kind: catalog.EdgeReplaces}},
		}}}
		for line := range strings.Lines(g.Mermaid()) {
			if !mermaidLine.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%q: Mermaid has the line %q", name, line)
			}
		}
		for line := range strings.Lines(g.DOT()) {
			if !dotLine.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%q: DOT has the line %q", name, line)
			}
		}
		if n := strings.Count(g.Text(), "\n"); n != 5 {
			t.Errorf("%q: the text has %d lines, want 5:\n%s", name, n, g.Text())
		}
	}
}

const text = `a from catalog olm/cat
channel stable (default)
  > a.v4 (head)
      replaces a.v3
  * a.v3
      replaces a.v2
      skipRange >=1.0.0 <3.0.0
    a.v2
      replaces a.v1
      skips a.v0
      skipRange >=1.0.0 <3.0.0
    a.v1 (skipped)
    a.v0 (not in the channel)
channel b"eta
    a.v3 (head)
`

const mermaid = `flowchart LR
  subgraph c0 ["stable"]
    c0n0["a.v4"]
    c0n1["a.v3, skipRange #62;#61;1.0.0 #60;3.0.0"]
    c0n2["a.v2, skipRange #62;#61;1.0.0 #60;3.0.0"]
    c0n3["a.v1"]
    c0n4["a.v0"]
    c0n1 --> c0n0
    c0n2 --> c0n1
    c0n3 --> c0n2
    c0n4 -.->|skips| c0n2
  end
  subgraph c1 ["b#34;eta"]
    c1n0["a.v3"]
  end
  classDef pinned stroke-width:4px
  class c0n1 pinned
  classDef way stroke-width:2px
  class c0n0 way
  linkStyle 0 stroke-width:4px
`

const dot = `digraph "a" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="stable";
    "stable/a.v4" [label="a.v4", penwidth=3];
    "stable/a.v3" [label="a.v3, skipRange >=1.0.0 <3.0.0", style=filled, penwidth=3];
    "stable/a.v2" [label="a.v2, skipRange >=1.0.0 <3.0.0"];
    "stable/a.v1" [label="a.v1", style=dashed];
    "stable/a.v0" [label="a.v0", style=dashed];
    "stable/a.v3" -> "stable/a.v4" [penwidth=3];
    "stable/a.v2" -> "stable/a.v3" [];
    "stable/a.v1" -> "stable/a.v2" [];
    "stable/a.v0" -> "stable/a.v2" [style=dashed, label="skips"];
  }
  subgraph cluster_1 {
    label="b\"eta";
    "b\"eta/a.v3" [label="a.v3"];
  }
}
`
