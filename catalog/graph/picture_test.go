package graph_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/graph"
	"github.com/quayside/quayside/lockfile"
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

// channel is a channel in the line language of these tests: entries separated by
// blanks, the oldest first, each a version, what it replaces after "<" (nothing:
// the one before, "-": none), skips after "!" and a skipRange after "~".
func channel(t *testing.T, name, text string) catalog.ChannelData {
	t.Helper()
	out := catalog.ChannelData{Name: name}
	before := ""
	for _, word := range strings.Fields(text) {
		parts := regexp.MustCompile(`^([^<!~]+)(?:<([^!~]*))?(?:!([^~]*))?(?:~(.*))?$`).FindStringSubmatch(word)
		if parts == nil {
			t.Fatalf("%q", word)
		}
		e := catalog.EntryData{Name: bundleName(parts[1]), Replaces: before, SkipRange: strings.ReplaceAll(parts[4], "_", " ")}
		if parts[2] != "" {
			e.Replaces = strings.TrimPrefix(bundleName(parts[2]), bundleName("-"))
		}
		if parts[3] != "" {
			for v := range strings.SplitSeq(parts[3], ",") {
				e.Skips = append(e.Skips, bundleName(v))
			}
		}
		out.Entries = append(out.Entries, e)
		before = e.Name
	}
	return out
}

func bundleName(version string) string { return "lantern-operator.v" + version }

// lantern returns a package with these channels. Versions whose patch is 9 are
// deprecated; those of a major want the Kubernetes of that number.
func lantern(t *testing.T, channels ...catalog.ChannelData) *catalog.Package {
	t.Helper()
	return built(t, data(channels...))
}

func data(channels ...catalog.ChannelData) catalog.PackageData {
	p := catalog.PackageData{Name: "lantern-operator", DefaultChannel: channels[0].Name, Channels: channels}
	seen := map[string]bool{}
	for _, ch := range channels {
		for _, e := range ch.Entries {
			if seen[e.Name] {
				continue
			}
			seen[e.Name] = true
			version := strings.TrimPrefix(e.Name, bundleName(""))
			b := catalog.BundleData{Name: e.Name, Image: "quay.io/lantern/bundle:" + version, Properties: []catalog.Property{
				{Type: "olm.package", Value: json.RawMessage(`{"packageName": "lantern-operator", "version": "` + version + `"}`)},
			}}
			major, _, _ := strings.Cut(version, ".")
			b.Metadata.MinKubeVersion = "1.2" + major + ".0"
			if strings.HasSuffix(version, ".9") {
				b.Properties = append(b.Properties, catalog.Property{Type: "olm.deprecated", Value: json.RawMessage("{}")})
			}
			p.Bundles = append(p.Bundles, b)
		}
	}
	return p
}

func built(t *testing.T, p catalog.PackageData) *catalog.Package {
	t.Helper()
	c, err := catalog.New(catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "harbour"}, Packages: []catalog.PackageData{p}})
	if err != nil {
		t.Fatal(err)
	}
	pkg, _ := c.Package(p.Name)
	return pkg
}

// marks are what a graph marks: a pin and its remaining hops.
type marks struct {
	pin  *lockfile.Pin
	hops []string
}

func pinned(ch, version string, hops ...string) marks {
	m := marks{pin: &lockfile.Pin{Bundle: bundleName(version), Channel: ch}}
	for _, h := range hops {
		m.hops = append(m.hops, bundleName(h))
	}
	return m
}

func marked(p *catalog.Package, m marks) graph.Graph { return graph.Of(p, m.pin, m.hops) }

// chain returns so many versions of a minor, each of which replaces the one before.
func chain(minor string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " %s.%d", minor, i)
	}
	return b.String()
}

// hops are versions of a minor from one to another.
func hops(minor string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s.%d", minor, i))
	}
	return out
}

// picked is what there are pictures of, in testdata.
func picked(t *testing.T) map[string]graph.Graph {
	t.Helper()
	stable := channel(t, "stable", "0.9.0"+chain("1.0", 6)+" 1.1.0<1.0.2!1.0.3,1.0.4,1.0.5~>=1.0.0_<1.1.0 1.1.1 1.1.9 2.0.0 2.0.1<1.1.9!2.0.0")
	several := []catalog.ChannelData{stable, channel(t, "candidate", chain("1.0", 6)+chain("1.1", 4)+chain("2.0", 3)), channel(t, "legacy-0.x", "0.8.0<0.7.3 0.9.0")}
	several[2].Entries = append(several[2].Entries[:1:1], several[2].Entries[1])
	dense := "1.0.0"
	for i := range 40 {
		dense += fmt.Sprintf(" 1.%d.0~>=1.0.0_<1.%d.0", i+1, i+1)
	}
	return map[string]graph.Graph{
		"graph-pin":     marked(lantern(t, several...), pinned("stable", "1.0.2", "1.1.0", "1.1.1", "1.1.9", "2.0.1")).Short(),
		"graph-hops":    marked(lantern(t, channel(t, "stable", chain("1.0", 30))), pinned("stable", "1.0.3", hops("1.0", 4, 29)...)).Short(),
		"graph-no-pin":  graph.Of(lantern(t, several...), nil, nil).Short(),
		"graph-whole":   marked(lantern(t, several...), pinned("stable", "1.0.2", "1.1.0", "1.1.1", "1.1.9", "2.0.1")),
		"graph-dense":   graph.Of(lantern(t, channel(t, "stable", dense)), nil, nil),
		"graph-at-head": marked(lantern(t, channel(t, "stable", chain("1.0", 4))), pinned("stable", "1.0.3")).Short(),
	}
}

func TestGolden(t *testing.T) {
	for name, g := range picked(t) {
		golden(t, filepath.Join("testdata", name+".svg"), graph.SVG([]graph.Graph{g}))
		page, err := graph.HTML([]graph.Graph{g})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", name+".html"), page)
	}
}

// TestShort shows what is left out and what is told as one.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		name, channel string
		marks         marks
		want          string // names of nodes, newest first, and the edges between them
	}{
		{"a chain", chain("1.0", 6), marks{}, "1.0.5 <replaces 5 versions, 1.0.0 to 1.0.4; 5 versions, 1.0.0 to 1.0.4"},
		{"too few to be one", chain("1.0", 3), marks{}, "1.0.2 <replaces 1.0.1; 1.0.1 <replaces 1.0.0; 1.0.0"},
		{"from the pin", chain("1.0", 9), pinned("c", "1.0.2", hops("1.0", 3, 8)...), "1.0.8 <replaces 5 versions, 1.0.3 to 1.0.7; 5 versions, 1.0.3 to 1.0.7 <replaces 1.0.2; 1.0.2; 2 versions below"},
		{"at the head", chain("1.0", 3), pinned("c", "1.0.2"), "1.0.2; 2 versions below"},
		{"skipped ones", "1.0.0 1.0.1 1.0.2 1.0.3 1.1.0<1.0.0!1.0.1,1.0.2,1.0.3", marks{}, "1.1.0 <replaces 1.0.0 <skips 3 versions, 1.0.1 to 1.0.3; 3 versions, 1.0.1 to 1.0.3 <replaces 1.0.0; 1.0.0"},
		{"deprecated ones", "1.0.0 1.0.1 1.0.2 1.0.9 1.1.0", marks{}, "1.1.0 <replaces 1.0.9; 1.0.9 <replaces 3 versions, 1.0.0 to 1.0.2; 3 versions, 1.0.0 to 1.0.2"},
		{"a branch", "1.0.0 1.0.1 1.0.2 1.0.3 1.0.4<1.0.1!1.0.2,1.0.3", marks{}, "1.0.4 <replaces 1.0.1 <skips 1.0.2 <skips 1.0.3; 1.0.3 <replaces 1.0.2; 1.0.2 <replaces 1.0.1; 1.0.1 <replaces 1.0.0; 1.0.0"},
		{"each from all before", "1.0.0 1.0.1~<1.0.1 1.0.2~<1.0.2 1.0.3~<1.0.3 1.0.4~<1.0.4", marks{}, "1.0.4 <replaces 4 versions, 1.0.0 to 1.0.3 <skipRange 4 versions, 1.0.0 to 1.0.3; 4 versions, 1.0.0 to 1.0.3"},
		{"two ranges", "1.0.0 1.0.1 1.0.2 1.1.0 1.1.1 1.1.2 1.2.0~>=1.1.0_<1.2.0", marks{}, "1.2.0 <replaces 3 versions, 1.1.0 to 1.1.2 <skipRange 3 versions, 1.1.0 to 1.1.2; 3 versions, 1.1.0 to 1.1.2 <replaces 3 versions, 1.0.0 to 1.0.2; 3 versions, 1.0.0 to 1.0.2"},
		{"from elsewhere", "1.0.0<0.9.0!0.8.0,0.8.1,0.8.2 1.0.1", marks{}, "1.0.1 <replaces 1.0.0; 1.0.0 <replaces v0.9.0 <skips 3 versions, v0.8.0 to v0.8.2; v0.9.0; 3 versions, v0.8.0 to v0.8.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := marked(lantern(t, channel(t, "c", c.channel)), c.marks)
			before, _ := json.Marshal(whole)
			short := whole.Short()
			if after, _ := json.Marshal(whole); !bytes.Equal(before, after) {
				t.Error("the whole graph was changed")
			}
			var got []string
			ch := short.Channels[0]
			plain := func(s string) string {
				if strings.Contains(s, " versions, ") {
					return s
				}
				return strings.TrimPrefix(s, bundleName(""))
			}
			for _, n := range ch.Nodes {
				line := plain(n.Bundle)
				if n.Absent && !strings.Contains(line, "versions") {
					line = "v" + line
				}
				for _, e := range ch.Edges {
					if e.To == n.Bundle {
						from := plain(e.From)
						if slices.ContainsFunc(ch.Nodes, func(n graph.Node) bool { return n.Bundle == e.From && n.Absent && n.Bundle != from }) {
							from = "v" + from
						}
						line += " <" + string(e.Kind) + " " + from
					}
				}
				got = append(got, line)
			}
			if note := regexp.MustCompile(`(?m)^\d+ versions? below`).FindString(short.Text()); note != "" {
				got = append(got, note)
			}
			if g := strings.Join(got, "; "); g != c.want {
				t.Errorf("\n got %s\nwant %s", g, c.want)
			}
		})
	}
}

// TestFolds holds over random channels: every version is in one node, nothing but the
// head stands in its place, and an edge between nodes is one between their versions.
func TestFolds(t *testing.T) {
	for seed := range uint64(300) {
		whole := graph.Of(built(t, random(rand.New(rand.NewPCG(seed, 0)))), nil, nil)
		short := whole.Short()
		for i, ch := range whole.Channels {
			versions := 0
			for _, n := range short.Channels[i].Nodes {
				if m := regexp.MustCompile(`^(\d+) versions, `).FindStringSubmatch(n.Bundle); m != nil {
					k, _ := strconv.Atoi(m[1])
					if versions += k; k < 3 || n.Head {
						t.Errorf("seed %d: %q", seed, n.Bundle)
					}
				} else {
					versions++
				}
			}
			if versions != len(ch.Nodes) {
				t.Errorf("seed %d: %d versions of %d in channel %s", seed, versions, len(ch.Nodes), ch.Name)
			}
			for _, e := range ch.Edges {
				if e.To == ch.Nodes[0].Bundle && !slices.ContainsFunc(short.Channels[i].Edges, func(s graph.Edge) bool { return s.To == e.To && s.Kind == e.Kind }) {
					t.Errorf("seed %d: the head has no %s any more", seed, e.Kind)
				}
			}
		}
	}
}

// random returns a package of some channels in which entries replace the one before,
// skip some and have ranges.
func random(r *rand.Rand) catalog.PackageData {
	var channels []catalog.ChannelData
	for c := range 1 + r.IntN(3) {
		ch := catalog.ChannelData{Name: fmt.Sprintf("channel-%d", c)}
		n := 1 + r.IntN(25)
		for i := range n {
			e := catalog.EntryData{Name: bundleName(fmt.Sprintf("1.%d.%d", i/5, i%5))}
			if i > 0 {
				e.Replaces = ch.Entries[i-1].Name
				if r.IntN(6) == 0 {
					e.Skips = append(e.Skips, bundleName(fmt.Sprintf("0.0.%d", r.IntN(9))))
				}
			}
			if r.IntN(4) == 0 {
				e.SkipRange = fmt.Sprintf(">=1.%d.0 <1.%d.%d", r.IntN(5), i/5, i%5)
			}
			ch.Entries = append(ch.Entries, e)
		}
		channels = append(channels, ch)
	}
	return data(channels...)
}

// TestOrder shows that the order in which a catalog tells things makes no difference.
func TestOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r)
		want := printed(t, p)
		r.Shuffle(len(p.Bundles), func(i, j int) { p.Bundles[i], p.Bundles[j] = p.Bundles[j], p.Bundles[i] })
		r.Shuffle(len(p.Channels), func(i, j int) { p.Channels[i], p.Channels[j] = p.Channels[j], p.Channels[i] })
		for _, ch := range p.Channels {
			r.Shuffle(len(ch.Entries), func(i, j int) { ch.Entries[i], ch.Entries[j] = ch.Entries[j], ch.Entries[i] })
		}
		if got := printed(t, p); got != want {
			t.Fatalf("seed %d: another order gives another picture", seed)
		}
	}
}

func printed(t *testing.T, p catalog.PackageData) string {
	t.Helper()
	g := []graph.Graph{graph.Of(built(t, p), nil, nil)}
	var out strings.Builder
	for _, format := range []string{"text", "dot", "mermaid", "svg", "html"} {
		text, err := graph.Print(format, g, false)
		if err != nil || text == "" {
			t.Fatalf("%s: %d bytes, %v", format, len(text), err)
		}
		out.WriteString(text)
	}
	return out.String()
}

// TestBounds draws what is too large to be drawn.
func TestBounds(t *testing.T) {
	large := catalog.ChannelData{Name: "large"}
	for i := range 5000 {
		e := catalog.EntryData{Name: bundleName(fmt.Sprintf("1.0.%d", i))}
		if i > 0 {
			e.Replaces = large.Entries[i-1].Name
		}
		large.Entries = append(large.Entries, e)
	}
	large.Entries[4999].SkipRange = "<1.0.4999"
	whole := []graph.Graph{graph.Of(lantern(t, large), nil, nil)}
	many := graph.Graph{Package: "many", Channels: make([]graph.Channel, 10000)}
	for i := range many.Channels {
		many.Channels[i] = graph.Channel{Name: fmt.Sprint(i), Nodes: []graph.Node{{Bundle: "a", Head: true}}}
	}
	circle := graph.Graph{Package: "circle", Channels: []graph.Channel{{Name: "c", Nodes: []graph.Node{{Bundle: "a"}, {Bundle: "b", Head: true}, {Bundle: "c"}}, Edges: []graph.Edge{
		{From: "a", To: "b", Kind: catalog.EdgeReplaces}, {From: "b", To: "c", Kind: catalog.EdgeReplaces}, {From: "c", To: "a", Kind: catalog.EdgeSkipRange}, {From: "c", To: "c", Kind: catalog.EdgeSkips},
	}}}}
	for _, c := range []struct {
		name   string
		graphs []graph.Graph
		want   string
	}{
		{"5,000 versions", whole, "too many to be drawn"},
		{"5,000 versions, short", []graph.Graph{whole[0].Short()}, "4989 versions"},
		{"10,000 channels", []graph.Graph{many}, "9900 more channels: too many to be drawn"},
		{"a circle", []graph.Graph{circle, circle.Short()}, "circle"},
		{"nothing", []graph.Graph{{Package: "empty"}}, "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svg := graph.SVG(c.graphs)
			sound(t, c.name, svg)
			if !strings.Contains(string(svg), c.want) || len(svg) > 1<<21 {
				t.Errorf("%d bytes, without %q", len(svg), c.want)
			}
			page, err := graph.HTML(c.graphs)
			if err != nil || !strings.Contains(string(page), c.want) {
				t.Errorf("%v; the page lacks %q", err, c.want)
			}
		})
	}
}

// sound fails where a picture is no XML, is wider than it may be, or has in it what
// runs, loads or refers to something.
func sound(t *testing.T, name string, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains([]string{"svg", "title", "desc", "style", "g", "rect", "path", "text"}, e.Name.Local) {
			t.Errorf("%s: an element <%s>", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") || a.Name.Local == "style" {
				t.Errorf("%s: <%s> has %s", name, e.Name.Local, a.Name.Local)
			}
			if w, _ := strconv.Atoi(a.Value); e.Name.Local == "svg" && a.Name.Local == "width" && w > 1200 {
				t.Errorf("%s: %d wide", name, w)
			}
		}
	}
}

// FuzzNames puts a name of a stranger wherever there is one.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "</text><script>alert(1)</script>", "{{.}}", `"><img src=x onerror=a()>`, "\u202e\x1b[2J\n::error::x", "x.v1.0.0", "3 versions, a to b", strings.Repeat("n", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := graph.Graph{Catalog: s, Package: s, Channels: []graph.Channel{{
			Name: s, Deprecated: true,
			Nodes: []graph.Node{{Bundle: s, Version: s, MinKubeVersion: s, Head: true, Deprecated: true}, {Bundle: s + "1", Pinned: true}, {Bundle: s + "2"}, {Bundle: s + "3"}, {Bundle: s + "4", Absent: true}},
			Edges: []graph.Edge{{From: s + "1", To: s, Kind: catalog.EdgeReplaces}, {From: s + "3", To: s + "1", Kind: catalog.EdgeSkips}, {From: s + "4", To: s, Kind: catalog.EdgeSkipRange}},
		}, {Name: s + "2"}}}
		for _, one := range []graph.Graph{g, g.Short()} {
			sound(t, "fuzzed", graph.SVG([]graph.Graph{one}))
			page, err := graph.HTML([]graph.Graph{one})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.ToLower(string(page)); strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.Contains(text, "<foreignobject") {
				t.Errorf("%s", page)
			}
		}
	})
}
