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

// DefaultRBAC returns the roles and bindings that API servers create in a new cluster, and the
// Kubernetes version of this list. API servers restore removed rules and keep added ones. The
// caller must not modify the result.
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
