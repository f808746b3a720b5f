package yamlnode

import (
	"path"
	"slices"
)

// HasExtension reports whether a file name has an extension of YAML or JSON.
func HasExtension(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}
