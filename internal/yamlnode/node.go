package yamlnode

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Node is a node of a parsed document. Other packages use this name, so that only this package
// depends on the YAML library.
type Node = yaml.Node

// The kinds of nodes.
const (
	DocumentNode = yaml.DocumentNode
	MappingNode  = yaml.MappingNode
	SequenceNode = yaml.SequenceNode
	ScalarNode   = yaml.ScalarNode
)

// DoubleQuotedStyle is the style of a scalar in double quotes.
const DoubleQuotedStyle = yaml.DoubleQuotedStyle

// EncodeNode returns a node as YAML. It keeps comments and styles.
func EncodeNode(n *Node) []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		panic(fmt.Sprintf("yamlnode: encoding a tree: %v", err))
	}
	return b.Bytes()
}

// IsNull reports whether the API server decodes n as null.
func IsNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	s, err := resolve(n)
	return err == nil && s.kind == kindNull
}

// Key returns a key of a mapping as the API server decodes it. It returns the source text of an
// invalid key.
func Key(n *yaml.Node) string {
	if k, err := keyText(n); err == nil {
		return k
	}
	return n.Value
}

// HasExtension reports whether a file name has an extension of YAML or JSON.
func HasExtension(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

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
