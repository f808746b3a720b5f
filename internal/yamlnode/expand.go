package yamlnode

import (
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
)

// extent is the size of a node after expanding its aliases.
type extent struct{ nodes, height int }

// expander replaces aliases and merge keys by their targets. The nodes are shared, so expansion needs no
// additional memory. Each use of a node counts as a copy, so that an alias bomb exceeds the limit.
type expander struct {
	file   string
	lim    Limits
	total  int
	full   bool // a limit was exceeded, and the fault was added
	size   map[*yaml.Node]extent
	active map[*yaml.Node]bool
	errs   diag.List
}

// document returns the root mapping of a document node. It returns nil if the document is empty or
// has a fault.
func (e *expander) document(doc *yaml.Node) *yaml.Node {
	root := doc
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) == 0 {
			return nil
		}
		root = doc.Content[0]
	}
	if root.Kind == 0 || IsNull(root) {
		return nil
	}
	n, _ := e.expand(root, 1)
	if n != nil && n.Kind != yaml.MappingNode {
		e.errs.Addf(At(e.file, root), "expected a mapping, got %s", describeNode(root))
		return nil
	}
	return n
}

func (e *expander) expand(n *yaml.Node, depth int) (*yaml.Node, extent) {
	if e.full {
		return nil, extent{}
	}
	if depth > e.lim.Depth {
		return e.stop(n, "nested deeper than %d levels", e.lim.Depth)
	}
	if n.Kind == yaml.AliasNode {
		return e.alias(n, depth)
	}
	if e.total++; e.total > e.lim.Nodes {
		return e.stop(n, "more than %d values, counting each use of an alias", e.lim.Nodes)
	}
	if n.Kind == yaml.ScalarNode {
		return n, extent{nodes: 1, height: 1}
	}
	e.active[n] = true
	before, height := e.total, 0
	for i, c := range n.Content {
		child, ext := e.expand(c, depth+1)
		if child == nil {
			return nil, extent{}
		}
		n.Content[i] = child
		height = max(height, ext.height)
	}
	if n.Kind == yaml.MappingNode {
		e.merge(n)
	}
	if len(e.errs) > MaxFaults {
		e.errs = e.errs[:MaxFaults]
		return e.stop(n, "more than %d faults: the rest is omitted", MaxFaults)
	}
	delete(e.active, n)
	ext := extent{nodes: e.total - before + 1, height: height + 1}
	if n.Anchor != "" {
		e.size[n] = ext
	}
	return n, ext
}

func (e *expander) stop(n *yaml.Node, format string, args ...any) (*yaml.Node, extent) {
	e.errs.Addf(At(e.file, n), format, args...)
	e.full = true
	return nil, extent{}
}

func (e *expander) alias(n *yaml.Node, depth int) (*yaml.Node, extent) {
	target := n.Alias
	if e.active[target] {
		return e.stop(n, "anchor %q contains itself", n.Value)
	}
	ext, known := e.size[target]
	if !known { // the target is a scalar
		ext = extent{nodes: 1, height: 1}
	}
	e.total += ext.nodes
	if e.total > e.lim.Nodes {
		return e.stop(n, "more than %d values, counting each use of an alias", e.lim.Nodes)
	}
	if depth+ext.height-1 > e.lim.Depth {
		return e.stop(n, "nested deeper than %d levels", e.lim.Depth)
	}
	return target, ext
}

// merge checks the keys of a mapping and adds the fields of its merge keys. For equal keys, the
// mapping itself takes precedence, then the merged mappings in order.
func (e *expander) merge(n *yaml.Node) {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	indexOf := map[string]int{} // key → its index in own, to find repeated keys
	var own, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if isMerge(k) {
			merged = append(merged, e.mergeSources(k, v)...)
			continue
		}
		text, err := keyText(k)
		if err != nil {
			e.errs.Add(At(e.file, k), err)
			continue
		}
		if prev, dup := first[text]; dup && e.lim.Repeated {
			own[indexOf[text]], own[indexOf[text]+1] = k, v
			continue
		} else if dup {
			e.errs.Addf(At(e.file, k), "key %q appears twice, first on line %d", text, prev.Line)
			continue
		}
		first[text] = k
		if e.lim.Repeated {
			indexOf[text] = len(own)
		}
		own = append(own, k, v)
	}
	for _, m := range merged {
		for i := 0; i+1 < len(m.Content); i += 2 {
			text, err := keyText(m.Content[i])
			if err != nil || first[text] != nil {
				continue
			}
			first[text] = m.Content[i]
			own = append(own, m.Content[i], m.Content[i+1])
		}
	}
	n.Content = own
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0
}

// mergeSources returns the mappings that a merge key refers to.
func (e *expander) mergeSources(k, v *yaml.Node) []*yaml.Node {
	switch v.Kind {
	case yaml.MappingNode:
		return []*yaml.Node{v}
	case yaml.SequenceNode:
		for _, c := range v.Content {
			if c.Kind != yaml.MappingNode {
				e.errs.Addf(At(e.file, k), "a merge key needs mappings, got %s", describeNode(c))
				return nil
			}
		}
		return v.Content
	default:
		e.errs.Addf(At(e.file, k), "a merge key needs a mapping, got %s", describeNode(v))
		return nil
	}
}
