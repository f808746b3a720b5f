package yamlnode

import (
	"bytes"
	"fmt"

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
