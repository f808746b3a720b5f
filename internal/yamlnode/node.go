package yamlnode

import "go.yaml.in/yaml/v3"

// IsNull reports whether the API server parses n as null.
func IsNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	s, err := resolve(n)
	return err == nil && s.kind == kindNull
}

// Key returns the key of a mapping as the API server parses it, or its source text if the key is
// invalid.
func Key(n *yaml.Node) string {
	if k, err := keyText(n); err == nil {
		return k
	}
	return n.Value
}
