package k8s

import (
	_ "embed" // for the go:embed directive
	"encoding/json"
	"sync"
)

// defaultObjects contains the roles and bindings that the API server creates in a new cluster. The
// cluster test TestDefaultRBAC compares the file with a real cluster, and updates it with -update.
//
//go:embed defaults.json
var defaultObjects []byte

// DefaultRBAC returns the roles and bindings that the API server creates in a new cluster, and the
// Kubernetes version that the list is from. An API server restores rules that were removed from
// them, but keeps added ones. The caller must not modify the result.
func DefaultRBAC() (version string, objects []map[string]any) {
	f := parseDefaults()
	return f.Kubernetes, f.Objects
}

type defaultsFile struct {
	Kubernetes string
	Objects    []map[string]any
	roles      map[roleID]*role
}

var parseDefaults = sync.OnceValue(func() (f defaultsFile) { //nolint:gochecknoglobals // parsed on first use
	if err := json.Unmarshal(defaultObjects, &f); err != nil {
		panic(err)
	}
	f.roles = map[roleID]*role{}
	for _, o := range f.Objects {
		if kind := Text(o, "kind"); kind == "Role" || kind == "ClusterRole" {
			f.roles[roleIDOf(o)] = newRole(o)
		}
	}
	return f
})

func defaultRoles() map[roleID]*role { return parseDefaults().roles }
