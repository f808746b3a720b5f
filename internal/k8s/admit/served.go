package admit

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServedAPIs returns the stable APIs of Kubernetes 1.minor, sorted: each as "group/version" and as
// "group/version/Kind". Clusters serve no newer beta APIs by default.
func ServedAPIs(minor int) []string {
	out := map[string]bool{}
	for kind, introduced := range served() {
		if introduced <= minor {
			out[path.Dir(kind)], out[kind] = true, true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// served returns the minor version of Kubernetes that introduced each kind, by apiVersion/kind. A
// scheme of all APIs takes 25 ms of CPU time.
var served = sync.OnceValue(func() map[string]int { //nolint:gochecknoglobals // built once
	out := map[string]int{}
	for apiVersion, add := range apiVersions() {
		s := runtime.NewScheme()
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil || add(s) != nil {
			panic("admit: " + apiVersion) // the table is wrong
		}
		for kind, t := range s.KnownTypes(gv) {
			if !strings.HasSuffix(kind, "List") && !strings.HasSuffix(kind, "Options") && kind != "WatchEvent" {
				out[apiVersion+"/"+kind] = introducedIn(t)
			}
		}
	}
	return out
})

// introducedIn returns the minor version of Kubernetes that introduced a type. It returns 0 if the type does
// not declare it, because every supported version then has the type.
func introducedIn(t reflect.Type) int {
	if v, ok := reflect.New(t).Interface().(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		_, minor := v.APILifecycleIntroduced()
		return minor
	}
	return 0
}
