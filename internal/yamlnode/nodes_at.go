package yamlnode

import "strings"

// NodesAt returns the nodes at a field path such as "spec.sources.[].path", in which [] stands for
// all items of a list.
func NodesAt(n *Node, where string) []*Node {
	nodes := []*Node{n}
	for step := range strings.SplitSeq(where, ".") {
		var next []*Node
		for _, n := range nodes {
			if step != "[]" {
				if _, v := Field(n, step); v != nil {
					next = append(next, v)
				}
			} else if n.Kind == SequenceNode {
				next = append(next, n.Content...)
			}
		}
		nodes = next
	}
	return nodes
}
