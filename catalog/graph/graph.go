// Package graph renders the upgrade graph of a package: as text, for Mermaid and Graphviz, as an
// SVG picture and as an HTML page. It can also reduce the graph to its most relevant part.
//
// A skipRange is an edge from every version in the range, so a channel can have an edge for each
// pair of versions. A [Graph] contains all of them. The text output shows the range instead.
//
// The edges come from catalog.Entry. The caller passes the pinned version and its upgrade path.
//
// Start from [New] and [Graph].
//
// There is no compatibility promise yet: exported names may change in any release.
package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Graph is the upgrade graph of a package. It marks the pinned version and its upgrade path.
type Graph struct {
	Catalog  string    `json:"catalog"`
	Package  string    `json:"package"`
	Channels []Channel `json:"channels"` // default first, then by name

	notes []string // descriptions of the parts that Short omitted
}

// Channel is the graph of one channel.
type Channel struct {
	Name       string `json:"name"`
	Default    bool   `json:"default,omitempty"`
	Deprecated bool   `json:"deprecated,omitempty"`
	ByVersion  bool   `json:"byVersion,omitempty"` // whether the edges follow the order of versions, because the author publishes no upgrade graph
	Nodes      []Node `json:"nodes"`               // head first
	Edges      []Edge `json:"edges"`               // in the order of Nodes, then by kind: replaces, skips, skipRange
}

// Node is an entry of a channel, or a bundle outside the channel that an edge refers to.
type Node struct {
	Bundle         string `json:"bundle"`
	Version        string `json:"version,omitempty"`
	MinKubeVersion string `json:"minKubeVersion,omitempty"` // minimum version of Kubernetes; empty if unknown
	Head           bool   `json:"head,omitempty"`
	Skipped        bool   `json:"skipped,omitempty"` // installed only if requested by name
	Absent         bool   `json:"absent,omitempty"`  // an edge refers to it, but it is not in the channel
	SkipRange      string `json:"skipRange,omitempty"`
	Deprecated     bool   `json:"deprecated,omitempty"`
	Pinned         bool   `json:"pinned,omitempty"`
	OnPath         bool   `json:"onPath,omitempty"`
}

// Edge is a possible direct upgrade between two bundles.
type Edge struct {
	From   string       `json:"from"` // name of a bundle
	To     string       `json:"to"`
	Kind   catalog.Edge `json:"kind"`
	OnPath bool         `json:"onPath,omitempty"`
}

// New returns the graph of a package with its upgrade path marked. The path begins with the pinned bundle,
// followed by hops, the bundles on the rest of the path. If pin is nil, nothing is marked.
func New(p *catalog.Package, pin *lockfile.Pin, hops []string) Graph {
	g := Graph{Catalog: p.Catalog().ID().String(), Package: p.Name(), Channels: []Channel{}}
	for _, ch := range p.Channels() {
		g.Channels = append(g.Channels, newChannel(ch, pin, hops))
	}
	return g
}

func newChannel(ch *catalog.Channel, pin *lockfile.Pin, hops []string) Channel {
	out := Channel{Name: ch.Name(), Default: ch.IsDefault(), Deprecated: ch.Deprecation() != "", ByVersion: ch.ByVersion(), Nodes: []Node{}, Edges: []Edge{}}
	var path []string
	if pin != nil && (pin.Channel == "" || pin.Channel == ch.Name()) {
		path = append([]string{pin.Bundle}, hops...)
	}
	mark := func(n Node) Node {
		i := slices.Index(path, n.Bundle)
		n.Pinned, n.OnPath = i == 0, i >= 0
		return n
	}
	entries := ch.Entries()
	for _, e := range entries {
		skipRange, _ := e.SkipRange()
		out.Nodes = append(out.Nodes, mark(Node{
			SkipRange: skipRange.String(), Bundle: e.Name(), Version: e.Bundle().VersionText(), MinKubeVersion: e.Bundle().Metadata().MinKubeVersion,
			Head: e == ch.Head(), Skipped: e.Skipped(), Deprecated: e.Bundle().Deprecated() || e.Bundle().Deprecation() != "",
		}))
	}
	known := map[string]*catalog.Version{}
	var names []string
	for _, e := range entries {
		v := e.Bundle().Version()
		known[e.Name()] = &v
		names = append(names, e.Name())
	}
	for _, e := range entries {
		seen := map[string]bool{e.Name(): true}
		for _, from := range slices.Concat([]string{e.Replaces()}, e.Skips(), names) {
			kind := e.EdgeFrom(from, known[from])
			if kind == catalog.NoEdge || seen[from] {
				continue
			}
			seen[from] = true
			if _, ok := known[from]; !ok {
				known[from] = nil
				out.Nodes = append(out.Nodes, mark(Node{Bundle: from, Absent: true}))
			}
			i := slices.Index(path, from)
			out.Edges = append(out.Edges, Edge{From: from, To: e.Name(), Kind: kind, OnPath: i >= 0 && i+1 < len(path) && path[i+1] == e.Name()})
		}
	}
	return out
}

// Text renders the graph as text: for each channel its entries from the head down, and below each
// entry the versions that can be upgraded to it. ">" marks the upgrade path, "*" the pinned
// version.
func (g Graph) Text() string {
	var b strings.Builder
	linef := func(format string, args ...any) { b.WriteString(sanitize.Line(fmt.Sprintf(format, args...)) + "\n") }
	linef("%s from catalog %s", g.Package, g.Catalog)
	for _, ch := range g.Channels {
		linef("channel %s", ch.title())
		into := map[string][]Edge{}
		for _, e := range ch.printedEdges() {
			into[e.To] = append(into[e.To], e)
		}
		for _, n := range ch.Nodes {
			sign := " "
			if n.Pinned {
				sign = "*"
			} else if n.OnPath {
				sign = ">"
			}
			linef("  %s %s%s", sign, n.Bundle, formatSuffixes(n.states()))
			for _, e := range into[n.Bundle] {
				linef("      %s %s", e.Kind, e.From)
			}
			if n.SkipRange != "" {
				linef("      skipRange %s", n.SkipRange)
			}
		}
	}
	for _, note := range g.notes {
		linef("%s", note)
	}
	return b.String()
}

// title returns the name of the channel and its attributes, such as "(default)".
func (c Channel) title() string {
	return c.Name + formatSuffixes(filterWords([]string{"default", "deprecated", "by version order"}, c.Default, c.Deprecated, c.ByVersion))
}

// states returns the attributes of a node as words.
func (n Node) states() []string {
	return filterWords([]string{"head", "skipped", "deprecated", "not in the channel"}, n.Head, n.Skipped, n.Deprecated, n.Absent)
}

// label returns the name and the skipRange of the node.
func (n Node) label() string {
	if n.SkipRange == "" {
		return n.Bundle
	}
	return n.Bundle + ", skipRange " + n.SkipRange
}

// printedEdges returns the edges to print. skipRange edges are printed only on the upgrade path of
// the pin.
func (c Channel) printedEdges() []Edge {
	return slices.DeleteFunc(slices.Clone(c.Edges), func(e Edge) bool { return e.Kind == catalog.EdgeSkipRange && !e.OnPath })
}

// filterWords returns the words all[i] for which holds[i] is true.
func filterWords(all []string, holds ...bool) []string {
	var out []string
	for i, word := range all {
		if holds[i] {
			out = append(out, word)
		}
	}
	return out
}

// formatSuffixes formats words as " (word) (word)".
func formatSuffixes(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ") (") + ")"
}

// Mermaid renders the graph as a Mermaid flowchart, one subgraph per channel.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	var pinned, path []string
	edge, onPath := 0, []string{}
	for c, ch := range g.Channels {
		at := map[string]int{}
		for i, n := range ch.Nodes {
			at[n.Bundle] = i
		}
		id := func(name string) string { return fmt.Sprintf("c%dn%d", c, at[name]) }
		fmt.Fprintf(&b, "  subgraph c%d [%s]\n", c, mermaidText(ch.Name))
		for _, n := range ch.Nodes {
			fmt.Fprintf(&b, "    %s[%s]\n", id(n.Bundle), mermaidText(n.label()))
			switch {
			case n.Pinned:
				pinned = append(pinned, id(n.Bundle))
			case n.OnPath:
				path = append(path, id(n.Bundle))
			}
		}
		for _, e := range ch.printedEdges() {
			arrow := "-.->|" + string(e.Kind) + "|"
			if e.Kind == catalog.EdgeReplaces {
				arrow = "-->"
			}
			fmt.Fprintf(&b, "    %s %s %s\n", id(e.From), arrow, id(e.To))
			if e.OnPath {
				onPath = append(onPath, fmt.Sprint(edge))
			}
			edge++
		}
		b.WriteString("  end\n")
	}
	for i, note := range g.notes {
		fmt.Fprintf(&b, "  note%d[%s]\n", i, mermaidText(note))
	}
	if len(pinned) > 0 {
		fmt.Fprintf(&b, "  classDef pinned stroke-width:4px\n  class %s pinned\n", strings.Join(pinned, ","))
	}
	if len(path) > 0 {
		fmt.Fprintf(&b, "  classDef way stroke-width:2px\n  class %s way\n", strings.Join(path, ","))
	}
	if len(onPath) > 0 {
		fmt.Fprintf(&b, "  linkStyle %s stroke-width:4px\n", strings.Join(onPath, ","))
	}
	return b.String()
}

// mermaidText returns s as a label. It encodes all characters that Mermaid might interpret as a
// directive, markup or a character code.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range sanitize.Line(s) {
		if r < utf8.RuneSelf && !isWord(r) && !strings.ContainsRune(" .-+/:,", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// quoteDOT returns s as a quoted DOT string. It escapes "&", because Graphviz decodes HTML entities
// in labels.
func quoteDOT(s string) string {
	return strconv.Quote(strings.ReplaceAll(sanitize.Line(s), "&", "&amp;"))
}

// DOT renders the graph for Graphviz, one cluster per channel.
func (g Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quoteDOT(g.Package))
	for c, ch := range g.Channels {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", c, quoteDOT(ch.Name))
		for _, n := range ch.Nodes {
			style := ""
			switch {
			case n.Pinned:
				style = ", style=filled, penwidth=3"
			case n.OnPath:
				style = ", penwidth=3"
			case n.Skipped || n.Absent:
				style = ", style=dashed"
			}
			fmt.Fprintf(&b, "    %s [label=%s%s];\n", quoteDOT(ch.Name+"/"+n.Bundle), quoteDOT(n.label()), style)
		}
		for _, e := range ch.printedEdges() {
			style := ""
			if e.Kind != catalog.EdgeReplaces {
				style = fmt.Sprintf(", style=dashed, label=%q", e.Kind)
			}
			if e.OnPath {
				style += ", penwidth=3"
			}
			fmt.Fprintf(&b, "    %s -> %s [%s];\n", quoteDOT(ch.Name+"/"+e.From), quoteDOT(ch.Name+"/"+e.To), strings.TrimPrefix(style, ", "))
		}
		b.WriteString("  }\n")
	}
	if len(g.notes) > 0 {
		fmt.Fprintf(&b, "  label=%s;\n  labelloc=b;\n", quoteDOT(strings.Join(g.notes, "; ")))
	}
	b.WriteString("}\n")
	return b.String()
}
