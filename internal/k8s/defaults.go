package k8s

import (
	_ "embed" // for the go:embed directive
	"encoding/json"
	"sync"
)

// defaultObjects are the roles and bindings that a new API server creates. The cluster test
// TestDefaultRBAC compares the file with a real one, and writes it with -update.
//
//go:embed defaults.json
var defaultObjects []byte

// DefaultRBAC returns the ClusterRoles, Roles and bindings of a new cluster, and the version of
// Kubernetes that they are of. API servers restore them, with what others add to them. They must
// not be modified.
func DefaultRBAC() (version string, objects []map[string]any) {
	f := parseDefaults()
	return f.Kubernetes, f.Objects
}

type defaultsFile struct {
	Kubernetes string
	Objects    []map[string]any
	roles      map[roleID]*role
}

var parseDefaults = sync.OnceValue(func() (f defaultsFile) { //nolint:gochecknoglobals // parsed once, and only where permissions are compared
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
