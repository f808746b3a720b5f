// Package treeview shows the operators of a lock with their dependencies, by cluster
// and namespace, as a picture and as a page.
//
// Clusters that get the same operators are shown as one. Start from [Of].
package treeview

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/picture"
	"github.com/quayside/quayside/resolve"
)

const (
	maxGroups = 100
	maxDepth  = 8 // from here on a row names the operator that needs it
)

// Cluster is what one cluster gets.
type Cluster struct {
	Name string
	Gets []string // namespace/package of each operator, in the order of the lock
}

// Forest is the trees of each group of clusters.
type Forest struct {
	groups []group
	notes  []string
}

// group is the clusters that get the same.
type group struct {
	clusters []string
	several  bool // there are other clusters
	roots    []*node
}

// node is an operator in a tree.
type node struct {
	resolve.Node
	absent   bool     // the clusters do not get it, though something of theirs needs it
	top      bool     // it is a root here
	neededBy []string // who needs it and is not there
	children []*node
}

func (n *node) key() string { return n.Namespace + "/" + n.Package }

// Of returns the trees of a lock for each group of clusters that get the same, in the
// order of the first of each.
func Of(trees []resolve.Node, clusters []Cluster) Forest {
	var f Forest
	at := map[string]int{}
	var gets [][]string
	for _, c := range clusters {
		key := strings.Join(c.Gets, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(f.groups)
			at[key] = i
			f.groups = append(f.groups, group{})
			gets = append(gets, c.Gets)
		}
		f.groups[i].clusters = append(f.groups[i].clusters, c.Name)
	}
	if n := len(f.groups) - maxGroups; n > 0 {
		f.groups = f.groups[:maxGroups]
		f.notes = append(f.notes, fmt.Sprintf("%d groups of clusters more: too many to be shown", n))
	}
	for i := range f.groups {
		p := planter{gets: map[string]bool{}, taken: map[string]*node{}}
		for _, key := range gets[i] {
			p.gets[key] = true
		}
		for _, t := range trees {
			p.root(t)
		}
		f.groups[i].roots, f.groups[i].several = p.roots, len(at) > 1
	}
	return f
}

// planter takes from trees what some clusters get.
type planter struct {
	gets  map[string]bool
	taken map[string]*node // by namespace/package
	roots []*node
}

// root takes a tree; of one whose root is not there, those below it that are.
func (p *planter) root(t resolve.Node) {
	if n := p.take(t, false); n != nil {
		n.top = true
		p.roots = append(p.roots, n)
	}
}

// take returns an operator with what it needs, nil where it is not there.
func (p *planter) take(t resolve.Node, needed bool) *node {
	n := &node{Node: t}
	if !p.gets[n.key()] {
		if !needed {
			for _, c := range t.Children {
				p.orphaned(c, n.key())
			}
			return nil
		}
		n.absent = true
	}
	if p.taken[n.key()] == nil {
		p.taken[n.key()] = n
	}
	for _, c := range t.Children {
		if n.absent {
			p.orphaned(c, n.key())
			continue
		}
		if child := p.take(c, true); child != nil {
			n.children = append(n.children, child)
		}
	}
	return n
}

// orphaned takes an operator that what is not there needs, unless it stands somewhere
// already.
func (p *planter) orphaned(t resolve.Node, by string) {
	key := t.Namespace + "/" + t.Package
	if p.taken[key] == nil {
		p.root(t)
	}
	if n := p.taken[key]; n != nil {
		n.neededBy = append(n.neededBy, by)
	}
}

// title returns what a group is called; "" for the only cluster that there is.
func (g group) title() string {
	switch n := len(g.clusters); {
	case n == 1 && !g.several:
		return ""
	case n == 1:
		return "Cluster " + g.clusters[0]
	case !g.several:
		return fmt.Sprintf("All %d clusters: %s", n, some(g.clusters))
	default:
		return fmt.Sprintf("%d clusters: %s", n, some(g.clusters))
	}
}

// some returns names, a few of many.
func some(names []string) string {
	const few = 12
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// Print returns the trees as "svg" or "html"; "" in any other format, such as JSON.
func (f Forest) Print(format string) ([]byte, error) {
	p := f.picture()
	switch format {
	case "svg":
		return p.SVG(), nil
	case "html":
		var text strings.Builder
		for _, r := range p.Rows {
			fmt.Fprintf(&text, "%s%s %s\n", strings.Repeat("  ", r.Depth), r.Text, r.Note)
		}
		return p.Page(text.String() + strings.Join(p.Notes, "\n"))
	}
	return nil, nil
}

func (f Forest) picture() picture.Picture {
	p := picture.Picture{Title: "Operators and what they need", Desc: f.words(), Notes: f.notes}
	for _, g := range f.groups {
		title := g.title()
		if len(g.roots) == 0 {
			title = strings.TrimPrefix(title+": no operators", ": ")
		}
		if title != "" {
			p.Rows = append(p.Rows, picture.Row{Look: picture.Heading, Text: title})
		}
		for _, roots := range byNamespace(g.roots) {
			p.Rows = append(p.Rows, picture.Row{Look: picture.Heading, Text: "Namespace " + roots[0].Namespace})
			for _, n := range roots {
				p.Rows = n.rows(p.Rows, nil, 0)
			}
		}
	}
	return p
}

// byNamespace returns roots by their namespaces, in their order.
func byNamespace(roots []*node) [][]*node {
	var out [][]*node
	at := map[string]int{}
	for _, n := range roots {
		i, ok := at[n.Namespace]
		if !ok {
			i = len(out)
			at[n.Namespace], out = i, append(out, nil)
		}
		out[i] = append(out[i], n)
	}
	return out
}

// words returns in a few sentences what there is to see.
func (f Forest) words() string {
	var out []string
	for _, g := range f.groups {
		operators, namespaces := map[string]bool{}, map[string]bool{}
		var count func(n *node)
		count = func(n *node) {
			operators[n.key()], namespaces[n.Namespace] = true, true
			for _, c := range n.children {
				count(c)
			}
		}
		for _, n := range g.roots {
			count(n)
		}
		text := fmt.Sprintf("%s in %s.", diag.Count(len(operators), "operator"), diag.Count(len(namespaces), "namespace"))
		if title := g.title(); title != "" {
			text = title + ": " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// rows appends a row for the operator, and below it those for what it needs.
func (n *node) rows(out []picture.Row, above *node, depth int) []picture.Row {
	notes, warn := n.notes()
	if depth > maxDepth {
		notes = append(notes, "for "+above.key())
	}
	r := picture.Row{Text: n.name(above), Note: strings.Join(notes, ", "), Warn: warn, Depth: depth}
	if warn {
		r.Look = picture.Faint
	}
	out = append(out, r)
	for _, c := range n.children {
		out = c.rows(out, n, depth+1)
	}
	return out
}

// name returns the package and version, with the namespace where it is another one than
// that of the operator above.
func (n *node) name(above *node) string {
	name := n.Package + " " + n.Version
	if above != nil && above.Namespace != n.Namespace {
		return n.Namespace + "/" + name
	}
	return name
}

// notes returns remarks on an operator where it stands, and whether one is a warning.
func (n *node) notes() (out []string, warn bool) {
	if n.Requirement != "" {
		out = append(out, n.Requirement)
	}
	switch {
	case n.absent:
		out = append(out, "missing")
	case n.Orphan:
		out = append(out, "not needed any more")
	case n.Subscription != "":
		out = append(out, "subscription "+n.Subscription)
	case n.top && len(n.neededBy) > 0:
		out = append(out, "needed by "+some(n.neededBy)+" (missing)")
	}
	if n.Repeated {
		out = append(out, "dependencies shown above")
	}
	return out, n.absent || n.Orphan
}
