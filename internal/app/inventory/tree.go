package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/page"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/resolve/explain"
)

const (
	maxGroups = 100
	maxDepth  = 8 // deeper rows have a note with the parent operator
)

// Forest is the dependency trees of each group of clusters.
type Forest struct {
	groups []clusterGroup
	notes  []string
}

// clusterGroup is a group of clusters with the same operators.
type clusterGroup struct {
	clusters []string
	several  bool // there are other clusters
	roots    []*treeNode
}

// treeNode is an operator in a tree.
type treeNode struct {
	explain.Node
	absent   bool     // needed by another operator, but not installed on the clusters
	top      bool     // a root of the group
	neededBy []string // missing operators that need it
	children []*treeNode
}

func (n *treeNode) key() string { return n.Namespace + "/" + n.Package }

// NewForest returns the trees of a lock for each group of clusters with the same
// operators, in the order of the first cluster of each group.
func NewForest(trees []explain.Node, clusters []profile.Cluster) (Forest, error) {
	var f Forest
	operators := map[string]bool{}
	for _, t := range trees {
		collectOperators(t, operators)
	}
	at := map[string]int{}
	var gets []map[string]bool
	known := map[string]map[string]bool{} // by globs
	for _, c := range clusters {
		globs := strings.Join(c.Operators, "\x00")
		if known[globs] == nil {
			here, err := installedOperators(c, operators)
			if err != nil {
				return Forest{}, err
			}
			known[globs] = here
		}
		key := strings.Join(slices.Sorted(maps.Keys(known[globs])), "\x00")
		i, ok := at[key]
		if !ok {
			i = len(f.groups)
			at[key] = i
			f.groups = append(f.groups, clusterGroup{})
			gets = append(gets, known[globs])
		}
		f.groups[i].clusters = append(f.groups[i].clusters, c.Name)
	}
	if n := len(f.groups) - maxGroups; n > 0 {
		f.groups = f.groups[:maxGroups]
		f.notes = append(f.notes, fmt.Sprintf("%d more groups of clusters: too many to show", n))
	}
	for i := range f.groups {
		p := forestBuilder{gets: gets[i], taken: map[string]*treeNode{}}
		for _, t := range trees {
			p.addTree(t)
		}
		f.groups[i].roots, f.groups[i].several = p.roots, len(at) > 1
	}
	return f, nil
}

// collectOperators adds the operators of a tree, as namespace/package.
func collectOperators(t explain.Node, operators map[string]bool) {
	operators[t.Namespace+"/"+t.Package] = true
	for _, c := range t.Children {
		collectOperators(c, operators)
	}
}

// installedOperators returns the operators that a cluster gets.
func installedOperators(c profile.Cluster, operators map[string]bool) (map[string]bool, error) {
	here := map[string]bool{}
	for key := range operators {
		gets, err := c.Gets(key)
		if err != nil {
			return nil, err
		}
		if gets {
			here[key] = true
		}
	}
	return here, nil
}

// forestBuilder selects the operators of one group of clusters from the trees.
type forestBuilder struct {
	gets  map[string]bool
	taken map[string]*treeNode // by namespace/package
	roots []*treeNode
}

// addTree adds a tree. If its root is not installed, it adds the installed operators below.
func (p *forestBuilder) addTree(t explain.Node) {
	if n := p.addNode(t, false); n != nil {
		n.top = true
		p.roots = append(p.roots, n)
	}
}

// addNode returns an operator with its dependencies, nil if it is neither installed nor
// needed.
func (p *forestBuilder) addNode(t explain.Node, needed bool) *treeNode {
	n := &treeNode{Node: t}
	if !p.gets[n.key()] {
		if !needed {
			for _, c := range t.Children {
				p.addOrphan(c, n.key())
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
			p.addOrphan(c, n.key())
			continue
		}
		if child := p.addNode(c, true); child != nil {
			n.children = append(n.children, child)
		}
	}
	return n
}

// addOrphan adds operator t, required by a missing operator, unless it is already in a tree.
func (p *forestBuilder) addOrphan(t explain.Node, by string) {
	key := t.Namespace + "/" + t.Package
	if p.taken[key] == nil {
		p.addTree(t)
	}
	if n := p.taken[key]; n != nil {
		n.neededBy = append(n.neededBy, by)
	}
}

// title returns the heading of a group; "" for the only cluster of an environment.
func (g clusterGroup) title() string {
	switch n := len(g.clusters); {
	case n == 1 && !g.several:
		return ""
	case n == 1:
		return "Cluster " + g.clusters[0]
	case !g.several:
		return fmt.Sprintf("All %d clusters: %s", n, diag.Some(g.clusters, maxNames))
	default:
		return fmt.Sprintf("%d clusters: %s", n, diag.Some(g.clusters, maxNames))
	}
}

// maxNames is the number of names shown of a long list.
const maxNames = 12

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

func (f Forest) picture() page.Picture {
	p := page.Picture{Title: "Operators and their dependencies", Desc: f.summary(), Notes: f.notes}
	for _, g := range f.groups {
		title := g.title()
		if len(g.roots) == 0 {
			title = strings.TrimPrefix(title+": no operators", ": ")
		}
		if title != "" {
			p.Rows = append(p.Rows, page.Row{Style: page.Heading, Text: title})
		}
		drawn := map[string]int{}
		for _, roots := range groupByNamespace(g.roots) {
			p.Rows = append(p.Rows, page.Row{Style: page.Heading, Text: "Namespace " + roots[0].Namespace})
			for _, n := range roots {
				n.draw(&p, drawn, nil, 0)
			}
		}
	}
	return p
}

// groupByNamespace groups roots by namespace, in their order.
func groupByNamespace(roots []*treeNode) [][]*treeNode {
	var out [][]*treeNode
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

// summary describes the picture in a few sentences.
func (f Forest) summary() string {
	var out []string
	for _, g := range f.groups {
		operators, namespaces := map[string]bool{}, map[string]bool{}
		var count func(n *treeNode)
		count = func(n *treeNode) {
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

// draw adds a row for the operator, and below it rows for its dependencies. An operator
// that has a row, by its key in drawn, gets a line from the operator above to that row.
func (n *treeNode) draw(p *page.Picture, drawn map[string]int, above *treeNode, depth int) {
	notes, warn := n.notes()
	if row, ok := drawn[n.key()]; ok {
		r := &p.Rows[row]
		if above != nil {
			p.Links = append(p.Links, page.Link{From: drawn[above.key()], To: row})
			notes = []string{"also required by " + above.name(n) + ": " + n.Requirement}
		}
		r.Note = strings.TrimPrefix(r.Note+", "+strings.Join(notes, ", "), ", ")
		return
	}
	if depth > maxDepth {
		notes = append(notes, "for "+above.key())
	}
	r := page.Row{Text: n.name(above), Note: strings.Join(notes, ", "), Warn: warn, Depth: depth}
	if warn {
		r.Style = page.Faint
	}
	drawn[n.key()] = len(p.Rows)
	p.Rows = append(p.Rows, r)
	for _, c := range n.children {
		c.draw(p, drawn, n, depth+1)
	}
}

// name returns the package and version, with the namespace if the parent operator is in
// another one.
func (n *treeNode) name(above *treeNode) string {
	name := n.Package + " " + n.Version
	if above != nil && above.Namespace != n.Namespace {
		return n.Namespace + "/" + name
	}
	return name
}

// notes returns the notes on an operator, and whether one of them is a warning.
func (n *treeNode) notes() (out []string, warn bool) {
	if n.Requirement != "" {
		out = append(out, n.Requirement)
	}
	switch {
	case n.absent:
		out = append(out, "missing")
	case n.Orphan:
		out = append(out, "no longer needed")
	case n.Subscription != "":
		out = append(out, "subscription "+n.Subscription)
	case n.top && len(n.neededBy) > 0:
		out = append(out, "needed by "+diag.Some(n.neededBy, maxNames)+" (missing)")
	}
	return out, n.absent || n.Orphan
}
