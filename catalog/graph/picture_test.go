package graph_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/graph"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

// channel parses a channel: entries separated by blanks, the oldest first. Each is a version,
// followed by the replaced version after "<" (default: the previous one; "-": none), skipped
// versions after "!" and a skipRange after "~".
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

// newLantern returns a package with these channels. Versions with patch 9 are deprecated. A version N.x.y
// requires Kubernetes 1.2N.0.
func newLantern(t *testing.T, channels ...catalog.ChannelData) *catalog.Package {
	t.Helper()
	return buildPackage(t, data(channels...))
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

func buildPackage(t *testing.T, p catalog.PackageData) *catalog.Package {
	t.Helper()
	c, err := catalog.New(catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "harbour"}, Packages: []catalog.PackageData{p}})
	if err != nil {
		t.Fatal(err)
	}
	pkg, _ := c.Package(p.Name)
	return pkg
}

// marks are the marked nodes of a graph: the pin, and the remaining bundles on its upgrade path.
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

func newMarkedGraph(p *catalog.Package, m marks) graph.Graph { return graph.New(p, m.pin, m.hops) }

// chain returns n patch versions of a minor version in the notation of channel, oldest first.
func chain(minor string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " %s.%d", minor, i)
	}
	return b.String()
}

// hops returns the patch versions minor.from to minor.to, both included.
func hops(minor string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s.%d", minor, i))
	}
	return out
}

// goldenGraphs returns the graphs with golden files in testdata.
func goldenGraphs(t *testing.T) map[string]graph.Graph {
	t.Helper()
	stable := channel(t, "stable", "0.9.0"+chain("1.0", 6)+" 1.1.0<1.0.2!1.0.3,1.0.4,1.0.5~>=1.0.0_<1.1.0 1.1.1 1.1.9 2.0.0 2.0.1<1.1.9!2.0.0")
	several := []catalog.ChannelData{stable, channel(t, "candidate", chain("1.0", 6)+chain("1.1", 4)+chain("2.0", 3)), channel(t, "legacy-0.x", "0.8.0<0.7.3 0.9.0")}
	several[2].Entries = append(several[2].Entries[:1:1], several[2].Entries[1])
	dense := "1.0.0"
	for i := range 40 {
		dense += fmt.Sprintf(" 1.%d.0~>=1.0.0_<1.%d.0", i+1, i+1)
	}
	return map[string]graph.Graph{
		"graph-pin":     newMarkedGraph(newLantern(t, several...), pinned("stable", "1.0.2", "1.1.0", "1.1.1", "1.1.9", "2.0.1")).Short(),
		"graph-hops":    newMarkedGraph(newLantern(t, channel(t, "stable", chain("1.0", 30))), pinned("stable", "1.0.3", hops("1.0", 4, 29)...)).Short(),
		"graph-no-pin":  graph.New(newLantern(t, several...), nil, nil).Short(),
		"graph-whole":   newMarkedGraph(newLantern(t, several...), pinned("stable", "1.0.2", "1.1.0", "1.1.1", "1.1.9", "2.0.1")),
		"graph-dense":   graph.New(newLantern(t, channel(t, "stable", dense)), nil, nil),
		"graph-at-head": newMarkedGraph(newLantern(t, channel(t, "stable", chain("1.0", 4))), pinned("stable", "1.0.3")).Short(),
	}
}

func TestGolden(t *testing.T) {
	for name, g := range goldenGraphs(t) {
		for _, format := range []string{"svg", "html"} {
			text, err := graph.Print(format, []graph.Graph{g}, true)
			if err != nil {
				t.Fatal(err)
			}
			goldentest.Compare(t, filepath.Join("testdata", name+"."+format), []byte(text))
		}
	}
}

// TestShort checks which versions are omitted from a short graph.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		name, channel string
		marks         marks
		want          string // names of nodes, newest first, and the edges between them
	}{
		{"a chain", chain("1.0", 3), marks{}, "1.0.2 <replaces 1.0.1; 1.0.1 <replaces 1.0.0; 1.0.0"},
		{"from the pin", chain("1.0", 5), pinned("c", "1.0.2", hops("1.0", 3, 4)...), "1.0.4 <replaces 1.0.3; 1.0.3 <replaces 1.0.2; 1.0.2; 2 versions below"},
		{"at the head", chain("1.0", 3), pinned("c", "1.0.2"), "1.0.2; 2 versions below"},
		{"skipped", "1.0.0 1.0.1 1.0.2 1.1.0<1.0.0!1.0.1,1.0.2", pinned("c", "1.0.1", "1.1.0"), "1.1.0 <skips 1.0.1 <skips 1.0.2; 1.0.2 <replaces 1.0.1; 1.0.1; 1 version below"},
		{"a range", "1.0.0 1.0.1 1.0.2 1.1.0~>=1.0.0_<1.1.0", pinned("c", "1.0.1", "1.1.0"), "1.1.0 <replaces 1.0.2 <skipRange 1.0.1; 1.0.2 <replaces 1.0.1; 1.0.1; 1 version below"},
		{"from outside of the channel", "1.0.0<0.9.0 1.0.1", pinned("c", "1.0.0", "1.0.1"), "1.0.1 <replaces 1.0.0; 1.0.0; 1 version below"},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := newMarkedGraph(newLantern(t, channel(t, "c", c.channel)), c.marks)
			before, _ := json.Marshal(whole)
			short := whole.Short()
			if after, _ := json.Marshal(whole); !bytes.Equal(before, after) {
				t.Error("Short modified its receiver")
			}
			var got []string
			for _, n := range short.Channels[0].Nodes {
				line := strings.TrimPrefix(n.Bundle, bundleName(""))
				for _, e := range short.Channels[0].Edges {
					if e.To == n.Bundle {
						line += " <" + string(e.Kind) + " " + strings.TrimPrefix(e.From, bundleName(""))
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
	long := graph.New(newLantern(t, channel(t, "c", chain("1.0", 50))), nil, nil).Short()
	if n := len(long.Channels[0].Nodes); n != 30 || !strings.Contains(long.Text(), "20 versions more in channel c: not shown without --all") {
		t.Errorf("%d nodes without a pin:\n%s", n, long.Text())
	}
}

// randomPackage returns a package with several channels. Each entry replaces the previous entry, may skip
// others and may have a skipRange.
func randomPackage(r *rand.Rand) catalog.PackageData {
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

// TestOrder checks that the order of objects in a catalog does not matter.
func TestOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomPackage(r)
		want := printAll(t, p)
		r.Shuffle(len(p.Bundles), func(i, j int) { p.Bundles[i], p.Bundles[j] = p.Bundles[j], p.Bundles[i] })
		r.Shuffle(len(p.Channels), func(i, j int) { p.Channels[i], p.Channels[j] = p.Channels[j], p.Channels[i] })
		for _, ch := range p.Channels {
			r.Shuffle(len(ch.Entries), func(i, j int) { ch.Entries[i], ch.Entries[j] = ch.Entries[j], ch.Entries[i] })
		}
		if got := printAll(t, p); got != want {
			t.Fatalf("seed %d: the output depends on the order", seed)
		}
	}
}

func printAll(t *testing.T, p catalog.PackageData) string {
	t.Helper()
	g := []graph.Graph{graph.New(buildPackage(t, p), nil, nil)}
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

// TestBounds draws graphs beyond the limits.
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
	whole := []graph.Graph{graph.New(newLantern(t, large), nil, nil)}
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
		all    bool
		want   string
	}{
		{"5,000 versions", whole, true, "3001 more rows: too many to draw"},
		{"5,000 versions, short", whole, false, "4970 versions more"},
		{"10,000 channels", []graph.Graph{many}, true, "18000 more rows: too many to draw"},
		{"a cycle", []graph.Graph{circle}, true, "circle"},
		{"nothing", []graph.Graph{{Package: "empty"}}, true, "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, format := range []string{"svg", "html"} {
				text, err := graph.Print(format, c.graphs, c.all)
				if err != nil || !strings.Contains(text, c.want) || len(text) > 1<<21 {
					t.Errorf("%s: %v, %d bytes, without %q", format, err, len(text), c.want)
				}
			}
		})
	}
}

// FuzzNames puts untrusted names into all places for names.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "</text><script>alert(1)</script>", "{{.}}", `"><img src=x onerror=a()>`, `\N"\`, "\u202e\x1b[2J\n::error::x", "x.v1.0.0", strings.Repeat("n", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := graph.Graph{Catalog: s, Package: s, Channels: []graph.Channel{{
			Name: s, Deprecated: true,
			Nodes: []graph.Node{{Bundle: s, Version: s, MinKubeVersion: s, SkipRange: s, Head: true, Deprecated: true}, {Bundle: s + "1", Pinned: true}, {Bundle: s + "2"}, {Bundle: s + "3"}, {Bundle: s + "4", Absent: true}},
			Edges: []graph.Edge{{From: s + "1", To: s, Kind: catalog.EdgeReplaces}, {From: s + "3", To: s + "1", Kind: catalog.EdgeSkips}, {From: s + "4", To: s, Kind: catalog.EdgeSkipRange}},
		}, {Name: s + "2"}}}
		for _, all := range []bool{true, false} {
			svg, err := graph.Print("svg", []graph.Graph{g}, all)
			if err != nil {
				t.Fatal(err)
			}
			if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
				t.Errorf("%v in\n%s", err, svg)
			}
			page, err := graph.Print("html", []graph.Graph{g}, all)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.ToLower(page + svg); strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.Contains(text, "<foreignobject") {
				t.Errorf("%s", page)
			}
		}
	})
}
