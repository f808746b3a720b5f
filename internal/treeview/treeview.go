// Package treeview shows who needs whom: the operators of a lock with what each
// depends on, in which namespaces and in which clusters, as a picture and as a page.
//
// Who needs whom, resolve.Tree says; here it is put in its place. Clusters that get
// the same operators are shown as one. Start from [Of].
package treeview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/picture"
	"github.com/quayside/quayside/resolve"
)

// How much is shown of what would have no end.
const (
	mostGroups = 100
	mostBoxes  = 2000
	deepest    = 5    // how far in a picture moves a box
	width      = 1200 // of a picture that stands alone
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
	if n := len(f.groups) - mostGroups; n > 0 {
		f.groups = f.groups[:mostGroups]
		f.notes = append(f.notes, fmt.Sprintf("%d groups of clusters more: too many to be shown", n))
	}
	left, cut := mostBoxes, false
	for i := range f.groups {
		p := planter{gets: map[string]bool{}, taken: map[string]*node{}, left: left}
		for _, key := range gets[i] {
			p.gets[key] = true
		}
		for _, t := range trees {
			p.root(t)
		}
		left, cut = p.left, cut || p.cut
		f.groups[i].roots, f.groups[i].several = p.roots, len(at) > 1
	}
	if cut {
		f.notes = append(f.notes, fmt.Sprintf("more than %d operators: the others are not shown, 'quayside tree' tells all", mostBoxes))
	}
	return f
}

// planter takes from trees what some clusters get.
type planter struct {
	gets  map[string]bool
	taken map[string]*node // by namespace/package
	roots []*node
	left  int
	cut   bool
}

// root takes a tree; of one whose root is not there, those below it that are.
func (p *planter) root(t resolve.Node) {
	if n := p.take(t, false); n != nil {
		n.top = true
		p.roots = append(p.roots, n)
	}
}

// take returns an operator with what it needs, nil where it is not there, or where
// there is no room.
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
	if p.left == 0 {
		p.cut = true
		return nil
	}
	p.left--
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

// SVG returns the picture, 1,200 pixels wide.
func (f Forest) SVG() []byte { return f.picture().SVG(width) }

func (f Forest) picture() picture.Picture {
	p := picture.Picture{Title: "Operators and what they need", Desc: f.words(), Notes: f.notes, Legend: []picture.Key{
		{Text: "needs", Line: true},
		{Text: "missing, or not needed any more", Look: picture.Faint},
	}}
	for _, g := range f.groups {
		group := picture.Group{Title: g.title()}
		for _, roots := range byNamespace(g.roots) {
			l := picture.Lane{Title: roots[0].Namespace, Stack: true}
			for _, n := range roots {
				n.stack(&l, nil, -1)
			}
			group.Lanes = append(group.Lanes, l)
		}
		if len(g.roots) == 0 {
			group.Title = strings.TrimPrefix(group.Title+": no operators", ": ")
		}
		p.Groups = append(p.Groups, group)
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

// stack puts the operator and what it needs into a lane, below the box of the one
// that needs it.
func (n *node) stack(l *picture.Lane, above *node, parent int) {
	depth := 0
	if parent >= 0 {
		depth = l.Boxes[parent].Depth + 1
		l.Links = append(l.Links, picture.Link{From: parent, To: len(l.Boxes)})
	}
	b := picture.Box{Name: n.key(), Depth: depth, Lines: []picture.Text{{S: n.name(above)}}}
	for _, t := range n.told() {
		b.Lines = append(b.Lines, picture.Text{S: t.S, Warn: t.Warn})
	}
	if depth > deepest {
		b.Lines = append(b.Lines, picture.Text{S: "for " + above.key()})
	}
	if n.absent || n.Orphan {
		b.Look = picture.Faint
	}
	at := len(l.Boxes)
	l.Boxes = append(l.Boxes, b)
	for _, c := range n.children {
		c.stack(l, n, at)
	}
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

// told returns what there is to say of an operator where it stands.
func (n *node) told() []picture.Text {
	var out []picture.Text
	if n.Requirement != "" {
		out = append(out, picture.Text{S: n.Requirement})
	}
	switch {
	case n.absent:
		out = append(out, picture.Text{S: "is not there", Warn: true})
	case n.Orphan:
		out = append(out, picture.Text{S: "nothing asks for it any more", Warn: true})
	case n.Subscription != "":
		out = append(out, picture.Text{S: "subscription " + n.Subscription})
	case n.top && len(n.neededBy) > 0:
		out = append(out, picture.Text{S: "needed by " + some(n.neededBy) + " (not there)"})
	}
	if n.Repeated {
		out = append(out, picture.Text{S: "what it needs is shown above"})
	}
	return slices.Clip(out)
}
