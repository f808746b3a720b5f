package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
)

// fewest is how many versions are worth being told as one.
const fewest = 3

// Short returns what a person wants to see of the graph: with a pin, its channel from
// the pin to the head; without, every channel. Versions that follow each other and
// of which there is the same to say become one node. What is left out is said in a
// note. The graph itself is not changed.
func (g Graph) Short() Graph {
	out := Graph{Catalog: g.Catalog, Package: g.Package, Channels: []Channel{}}
	var others []string
	for _, ch := range g.Channels {
		if slices.ContainsFunc(ch.Nodes, func(n Node) bool { return n.Pinned }) {
			var older int
			ch, older = ch.fromPin()
			if older > 0 {
				out.notes = append(out.notes, fmt.Sprintf("%s below the pin in channel %s: not shown without --all", diag.Count(older, "version"), ch.Name))
			}
			out.Channels = append(out.Channels, ch)
		} else {
			others = append(others, ch.Name)
		}
	}
	if len(out.Channels) == 0 {
		out.Channels = slices.Clone(g.Channels)
	} else if len(others) > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%s without the pin (%s): not shown without --all", diag.Count(len(others), "channel"), some(others, 8)))
	}
	for i, ch := range out.Channels {
		out.Channels[i] = ch.folded()
	}
	return out
}

// some returns names, at most n of them.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// fromPin returns the channel with what is as new as the pin or newer, and how many
// versions are left out. What is not in the channel stays where it is the pin, or on
// the way.
func (c Channel) fromPin() (Channel, int) {
	out := Channel{Name: c.Name, Default: c.Default, Deprecated: c.Deprecated}
	kept, below, older := map[string]bool{}, false, 0
	for _, n := range c.ordered() {
		keep := n.OnPath || !n.Absent && !below
		if keep {
			kept[n.Bundle] = true
			out.Nodes = append(out.Nodes, n)
		} else if !n.Absent {
			older++
		}
		below = below || n.Pinned
	}
	for _, e := range c.Edges {
		if kept[e.From] && kept[e.To] {
			out.Edges = append(out.Edges, e)
		}
	}
	return out, older
}

// ordered returns the nodes with the newest first: those that can be chosen in the
// order of the channel, each that is skipped above the first of them that is older,
// and what is not in the channel below the oldest that names it.
func (c Channel) ordered() []Node {
	var out, absent []Node
	var versions []*catalog.Version // of out
	for _, n := range c.Nodes {
		v := n.parsed()
		switch {
		case n.Absent:
			absent = append(absent, n)
			continue
		case n.Skipped && v != nil:
			at := slices.IndexFunc(versions, func(o *catalog.Version) bool { return o != nil && o.Compare(*v) < 0 })
			if at < 0 {
				at = len(out)
			}
			out, versions = slices.Insert(out, at, n), slices.Insert(versions, at, v)
			continue
		}
		out, versions = append(out, n), append(versions, v)
	}
	if len(absent) == 0 {
		return out
	}
	at := map[string]int{}
	for i, n := range out {
		at[n.Bundle] = i
	}
	below := map[int][]Node{}
	lowest := map[string]int{}
	for _, e := range c.Edges {
		lowest[e.From] = max(lowest[e.From], at[e.To])
	}
	slices.SortStableFunc(absent, func(a, b Node) int {
		v, w := a.parsed(), b.parsed()
		switch {
		case v == nil && w == nil:
			return strings.Compare(a.Bundle, b.Bundle)
		case v == nil:
			return 1
		case w == nil:
			return -1
		}
		return w.Compare(*v)
	})
	for _, n := range absent {
		below[lowest[n.Bundle]] = append(below[lowest[n.Bundle]], n)
	}
	all := make([]Node, 0, len(c.Nodes))
	for i, n := range out {
		all = append(append(all, n), below[i]...)
	}
	if len(out) == 0 {
		all = absent
	}
	return all
}

// parsed returns the version of the node, or the one that the name of its bundle ends
// with; nil where there is none.
func (n Node) parsed() *catalog.Version {
	if v, err := olm.ParseVersion(strings.TrimPrefix(n.name(), "v")); err == nil {
		return &v
	}
	return nil
}

// link is an edge as one of its ends sees it.
type link struct {
	other int
	kind  catalog.Edge
}

// folding is a channel while runs of its nodes are found, newest first.
type folding struct {
	nodes   []Node
	out, in [][]link // by node; sorted
}

// folded returns the channel with one node in place of every run of them that stand in
// the same row of upgrades, or that all lead to the same: from the outside, nothing
// but where the run begins and ends tells one from another.
func (c Channel) folded() Channel {
	f := folding{nodes: c.ordered()}
	f.link(c.Edges)
	var runs [][2]int // from, to
	for i := 0; i < len(f.nodes); {
		end := i + 1
		for end < len(f.nodes) && f.joins(i, end) {
			end++
		}
		if end-i < fewest {
			end = i + 1
		}
		runs = append(runs, [2]int{i, end})
		i = end
	}
	return f.joined(c, runs)
}

func (f *folding) link(edges []Edge) {
	at := map[string]int{}
	for i, n := range f.nodes {
		at[n.Bundle] = i
	}
	f.out, f.in = make([][]link, len(f.nodes)), make([][]link, len(f.nodes))
	for _, e := range edges {
		from, to := at[e.From], at[e.To]
		f.out[from] = append(f.out[from], link{to, e.Kind})
		f.in[to] = append(f.in[to], link{from, e.Kind})
	}
	order := func(a, b link) int {
		if a.other != b.other {
			return a.other - b.other
		}
		return strings.Compare(string(a.kind), string(b.kind))
	}
	for i := range f.nodes {
		slices.SortFunc(f.out[i], order)
		slices.SortFunc(f.in[i], order)
	}
}

// joins reports whether node n goes with those from first up to the one before
// it, which go together already. They are newer than n.
func (f *folding) joins(first, n int) bool {
	a, b := f.nodes[n-1], f.nodes[n]
	alike := a.Absent == b.Absent && a.Skipped == b.Skipped && a.Deprecated == b.Deprecated && a.OnPath == b.OnPath
	if !alike || a.Pinned || b.Pinned || a.Head || b.Head {
		return false
	}
	chained := func(l link) bool { return l.kind == catalog.EdgeReplaces }
	row := slices.Contains(f.out[n], link{n - 1, catalog.EdgeReplaces})
	within := func(l link) bool { return l.other >= first && l.other <= n }
	// What n leads to beyond the run is what the one above it leads to; but in a row,
	// n may lead in another way, or not, to what replaces the newest of the run.
	var replaced, replaces []int
	for _, l := range f.out[n-1] {
		if row && n-1 == first && chained(l) {
			replaced = append(replaced, l.other)
		}
	}
	if !same(f.out[n-1], f.out[n], func(l link) bool { return within(l) || slices.Contains(replaced, l.other) }) {
		return false
	}
	// Likewise with what leads to them, and what the oldest replaces.
	for _, l := range f.in[n] {
		if row && chained(l) {
			replaces = append(replaces, l.other)
		}
	}
	return same(f.in[n-1], f.in[n], func(l link) bool { return within(l) || slices.Contains(replaces, l.other) })
}

// same reports whether two sorted lists hold the same links but for some.
func same(a, b []link, but func(link) bool) bool {
	i, j := 0, 0
	for {
		for i < len(a) && but(a[i]) {
			i++
		}
		for j < len(b) && but(b[j]) {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		i, j = i+1, j+1
	}
}

// joined returns the channel with a node for each run.
func (f *folding) joined(c Channel, runs [][2]int) Channel {
	out := Channel{Name: c.Name, Default: c.Default, Deprecated: c.Deprecated, Nodes: []Node{}, Edges: []Edge{}}
	of, taken := map[string]string{}, map[string]bool{}
	for _, n := range f.nodes {
		taken[n.Bundle] = true
	}
	for _, run := range runs {
		n := fold(f.nodes[run[0]:run[1]])
		for n.members != nil && taken[n.Bundle] {
			n.Bundle += "′"
		}
		taken[n.Bundle] = true
		for _, m := range f.nodes[run[0]:run[1]] {
			of[m.Bundle] = n.Bundle
		}
		out.Nodes = append(out.Nodes, n)
	}
	seen := map[Edge]int{}
	for _, e := range c.Edges {
		e.From, e.To = of[e.From], of[e.To]
		key := Edge{From: e.From, To: e.To, Kind: e.Kind}
		i, ok := seen[key]
		switch {
		case e.From == e.To:
		case ok:
			out.Edges[i].OnPath = out.Edges[i].OnPath || e.OnPath
		default:
			seen[key] = len(out.Edges)
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// fold returns one node for some, newest first, of which there is the same to say.
func fold(nodes []Node) Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	n := nodes[0]
	newest, oldest := n.name(), nodes[len(nodes)-1].name()
	n.Bundle = fmt.Sprintf("%d versions, %s to %s", len(nodes), oldest, newest)
	if newest == oldest {
		n.Bundle = fmt.Sprintf("%d versions, %s", len(nodes), oldest)
	}
	n.Version, n.MinKubeVersion, n.members = "", "", nodes
	for i, m := range nodes {
		if i > 0 && m.MinKubeVersion != nodes[0].MinKubeVersion {
			return n
		}
	}
	n.MinKubeVersion = nodes[0].MinKubeVersion
	return n
}

// name returns the version of the node; where it has none, the name of its bundle,
// from the version on that nearly all of them end with.
func (n Node) name() string {
	if n.Version != "" {
		return n.Version
	}
	if i := strings.LastIndex(n.Bundle, ".v"); i > 0 && n.members == nil {
		if _, err := olm.ParseVersion(n.Bundle[i+2:]); err == nil {
			return n.Bundle[i+1:]
		}
	}
	return n.Bundle
}
