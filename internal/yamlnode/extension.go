package yamlnode

import (
	"path"
	"slices"
)

// HasExtension reports whether the name of a file ends like one with YAML or JSON.
func HasExtension(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
