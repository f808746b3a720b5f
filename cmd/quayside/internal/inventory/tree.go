package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/page"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/resolve/explain"
)

const (
	maxGroups = 100
	maxDepth  = 8 // deeper operators are not indented further, but get a note with the name of their parent
)

// Forest contains the dependency trees of each group of clusters.
type Forest struct {
	groups []clusterGroup
	notes  []string
}

// clusterGroup is a group of clusters with the same operators.
type clusterGroup struct {
	clusters  []string
	hasOthers bool // whether the environment has other groups, too
	roots     []*treeNode
}

// treeNode is an operator in a tree.
type treeNode struct {
	explain.Node
	missing  bool     // required by another operator, but not installed
	isRoot   bool     // no installed operator requires it
	neededBy []string // operators that require it but are not installed
	children []*treeNode
}

func (n *treeNode) key() string { return n.Namespace + "/" + n.Package }

// NewForest returns the dependency trees for each group of clusters with the same operators. Groups
// are in the order of their first clusters.
func NewForest(trees []explain.Node, clusters []profile.Cluster) (Forest, error) {
	var f Forest
	operators := map[string]bool{}
	for _, t := range trees {
		collectOperators(t, operators)
	}
	indexes := map[string]int{}
	var installed []map[string]bool
	known := map[string]map[string]bool{} // installed operators, by the patterns in spec.clusters
	for _, c := range clusters {
		globs := strings.Join(c.Operators, "\x00")
		if known[globs] == nil {
			installed, err := installedOperators(c, operators)
			if err != nil {
				return Forest{}, err
			}
			known[globs] = installed
		}
		key := strings.Join(slices.Sorted(maps.Keys(known[globs])), "\x00")
		i, ok := indexes[key]
		if !ok {
			i = len(f.groups)
			indexes[key] = i
			f.groups = append(f.groups, clusterGroup{})
			installed = append(installed, known[globs])
		}
		f.groups[i].clusters = append(f.groups[i].clusters, c.Name)
	}
	if n := len(f.groups) - maxGroups; n > 0 {
		f.groups = f.groups[:maxGroups]
		f.notes = append(f.notes, fmt.Sprintf("%d more groups of clusters: too many to show", n))
	}
	for i := range f.groups {
		p := forestBuilder{installed: installed[i], nodes: map[string]*treeNode{}}
		for _, t := range trees {
			p.addTree(t)
		}
		f.groups[i].roots, f.groups[i].hasOthers = p.roots, len(indexes) > 1
	}
	return f, nil
}

// collectOperators adds the operators of a tree to operators, as namespace/package.
func collectOperators(t explain.Node, operators map[string]bool) {
	operators[t.Namespace+"/"+t.Package] = true
	for _, c := range t.Children {
		collectOperators(c, operators)
	}
}

// installedOperators returns the operators that a cluster gets.
func installedOperators(c profile.Cluster, operators map[string]bool) (map[string]bool, error) {
	out := map[string]bool{}
	for key := range operators {
		gets, err := c.Gets(key)
		if err != nil {
			return nil, err
		}
		if gets {
			out[key] = true
		}
	}
	return out, nil
}

// forestBuilder builds the trees of one group of clusters.
type forestBuilder struct {
	installed map[string]bool
	nodes     map[string]*treeNode // by namespace/package
	roots     []*treeNode
}

// addTree adds a dependency tree. If the root is not installed, it adds a tree for each installed dependency of
// the root instead.
func (p *forestBuilder) addTree(t explain.Node) {
	if n := p.addNode(t, false); n != nil {
		n.isRoot = true
		p.roots = append(p.roots, n)
	}
}

// addNode returns the operator t with its dependencies. If t is needed but not installed, the
// result is marked as missing. If t is neither needed nor installed, the result is nil.
func (p *forestBuilder) addNode(t explain.Node, needed bool) *treeNode {
	n := &treeNode{Node: t}
	if !p.installed[n.key()] {
		if !needed {
			for _, c := range t.Children {
				p.addOrphan(c, n.key())
			}
			return nil
		}
		n.missing = true
	}
	if p.nodes[n.key()] == nil {
		p.nodes[n.key()] = n
	}
	for _, c := range t.Children {
		if n.missing {
			p.addOrphan(c, n.key())
			continue
		}
		if child := p.addNode(c, true); child != nil {
			n.children = append(n.children, child)
		}
	}
	return n
}

// addOrphan adds the operator t as a tree of its own, unless a tree already contains the operator. t is a
// dependency of parent, which is not installed.
func (p *forestBuilder) addOrphan(t explain.Node, parent string) {
	key := t.Namespace + "/" + t.Package
	if p.nodes[key] == nil {
		p.addTree(t)
	}
	if n := p.nodes[key]; n != nil {
		n.neededBy = append(n.neededBy, parent)
	}
}

// title returns the heading of a group, or "" if the environment has only one cluster.
func (g clusterGroup) title() string {
	switch n := len(g.clusters); {
	case n == 1 && !g.hasOthers:
		return ""
	case n == 1:
		return "Cluster " + g.clusters[0]
	case !g.hasOthers:
		return fmt.Sprintf("All %d clusters: %s", n, diag.Some(g.clusters, maxNames))
	default:
		return fmt.Sprintf("%d clusters: %s", n, diag.Some(g.clusters, maxNames))
	}
}

// maxNames is the maximum number of names shown from a list.
const maxNames = 12

// Print returns the trees as "svg" or "html". For other formats it returns nil.
func (f Forest) Print(format string) ([]byte, error) {
	p := f.newPicture()
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

func (f Forest) newPicture() page.Picture {
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

// groupByNamespace groups roots by namespace. Groups and roots keep their order.
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

// summary returns a sentence with the number of operators and namespaces for each group.
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

// draw adds a row for the operator, followed by rows for its dependencies. drawn has the row numbers of
// operators by key. If the operator already has a row, draw only adds a link from its parent to that row.
func (n *treeNode) draw(p *page.Picture, drawn map[string]int, parent *treeNode, depth int) {
	notes, warn := n.notes()
	if row, ok := drawn[n.key()]; ok {
		r := &p.Rows[row]
		if parent != nil {
			p.Links = append(p.Links, page.Link{From: drawn[parent.key()], To: row})
			notes = []string{"also required by " + parent.name(n) + ": " + n.Requirement}
		}
		r.Note = strings.TrimPrefix(r.Note+", "+strings.Join(notes, ", "), ", ")
		return
	}
	if depth > maxDepth {
		notes = append(notes, "for "+parent.key())
	}
	r := page.Row{Text: n.name(parent), Note: strings.Join(notes, ", "), Warn: warn, Depth: depth}
	if warn {
		r.Style = page.Faint
	}
	drawn[n.key()] = len(p.Rows)
	p.Rows = append(p.Rows, r)
	for _, c := range n.children {
		c.draw(p, drawn, n, depth+1)
	}
}

// name returns the package and version. If the namespace differs from the namespace of the parent, the result
// begins with the namespace.
func (n *treeNode) name(parent *treeNode) string {
	name := n.Package + " " + n.Version
	if parent != nil && parent.Namespace != n.Namespace {
		return n.Namespace + "/" + name
	}
	return name
}

// notes returns the notes on an operator. warn reports whether any note is a warning.
func (n *treeNode) notes() (out []string, warn bool) {
	if n.Requirement != "" {
		out = append(out, n.Requirement)
	}
	switch {
	case n.missing:
		out = append(out, "missing")
	case n.Orphan:
		out = append(out, "no longer needed")
	case n.Subscription != "":
		out = append(out, "subscription "+n.Subscription)
	case n.isRoot && len(n.neededBy) > 0:
		out = append(out, "needed by "+diag.Some(n.neededBy, maxNames)+" (missing)")
	}
	return out, n.missing || n.Orphan
}
