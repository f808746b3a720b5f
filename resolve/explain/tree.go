package explain

import (
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Node is one pin in a tree of operators and their dependencies.
type Node struct {
	Namespace    string `json:"namespace"`
	Package      string `json:"package"`
	Version      string `json:"version"`
	Subscription string `json:"subscription,omitempty"` // declaration of a root; generated subscription of an orphan
	Orphan       bool   `json:"orphan,omitempty"`       // a dependency that is no longer required
	Requirement  string `json:"requirement,omitempty"`  // requirement of the parent that it meets; several are joined by commas
	Repeated     bool   `json:"repeated,omitempty"`     // its children are omitted, because they are listed at its first occurrence
	Children     []Node `json:"children"`
}

// Tree returns the pins of a lock as trees. The roots are the declared pins, and dependencies that
// are no longer required. They are sorted by namespace and package.
func Tree(lock *lockfile.File) []Node {
	children := childrenOf(lock)
	shown := map[string]bool{}
	var node func(p lockfile.Pin) Node
	node = func(p lockfile.Pin) Node {
		n := Node{Namespace: p.Namespace, Package: p.Package, Version: p.VersionText(), Children: []Node{}}
		if shown[p.Key()] {
			n.Repeated = len(children[p.Key()]) > 0
			return n
		}
		shown[p.Key()] = true
		for _, c := range children[p.Key()] {
			child := node(c.pin)
			child.Requirement = strings.Join(c.why, ", ")
			n.Children = append(n.Children, child)
		}
		return n
	}
	roots := []Node{}
	for _, p := range lock.Pins {
		if p.Generated() && len(lock.RequiredBy(p)) > 0 {
			continue
		}
		n := node(p)
		n.Subscription, n.Orphan = p.Subscription(), p.Generated()
		roots = append(roots, n)
	}
	for _, p := range lock.Pins { // a cycle of pins that only require each other
		if !shown[p.Key()] {
			n := node(p)
			n.Subscription, n.Orphan = p.Subscription(), true
			roots = append(roots, n)
		}
	}
	return roots
}

// requiredPin is a pin with the requirement that it meets.
type requiredPin struct {
	pin lockfile.Pin
	why []string
}

// childrenOf returns the pins that each pin requires, by the key of the pin.
func childrenOf(lock *lockfile.File) map[string][]requiredPin {
	out := map[string][]requiredPin{}
	for _, by := range lock.Pins {
		why := map[string][]string{}
		for _, r := range by.Requires {
			why[r.Pin] = append(why[r.Pin], r.Requirement)
		}
		for _, p := range lock.Pins {
			if requirements := why[p.Key()]; len(requirements) > 0 {
				out[by.Key()] = append(out[by.Key()], requiredPin{p, requirements})
			}
		}
	}
	return out
}

// TreeText formats trees, one pin per line, indented by tabs.
func TreeText(nodes []Node) string {
	var b strings.Builder
	var show func(n Node, depth int)
	show = func(n Node, depth int) {
		line := n.Namespace + "/" + n.Package + " " + n.Version
		switch {
		case n.Orphan:
			line += " (no longer requested)"
		case n.Subscription != "":
			line += " (subscription " + n.Subscription + ")"
		case n.Requirement != "":
			line += " (" + n.Requirement + ")"
		}
		if n.Repeated {
			line += " …"
		}
		b.WriteString(strings.Repeat("\t", depth) + sanitize.Line(line) + "\n")
		for _, c := range n.Children {
			show(c, depth+1)
		}
	}
	for _, n := range nodes {
		show(n, 0)
	}
	return b.String()
}
