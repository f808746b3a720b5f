package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/internal/k8s"
)

// Values of RemovedClusters; "" means Keep.
const (
	Keep   = "keep"
	Delete = "delete"
)

// Fault is an invalid setting of a profile.
type Fault struct {
	Field   string // of quayside.yaml's spec: "gitops.repoURL", "clusters[1].server"
	Message string // "missing: …"
}

// fieldMap returns a value as an object's fields; v is a pointer to a struct.
func fieldMap(v any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(fmt.Sprintf("profile: %T: %v", v, err)) // the types above all convert
	}
	return out
}

// object returns one of the tool's own objects.
func (g GitOps) object(apiVersion, kind, name string) k8s.Object {
	return k8s.Label(k8s.New(apiVersion, kind, g.Namespace, name), g.Labels)
}

// named returns the name of a part for all clusters, within the length limit of a label value.
func (g GitOps) named(part string) string {
	return k8s.Fit(g.Name+"-"+part, k8s.MaxLabel)
}

// namedOf returns the name of a part for one cluster, within the length limit of a label
// value. Names are unique on a hub: environment names have no dot, and part names no dash. So
// the first dot, or without dots the first dash, ends the environment's name, and the
// last dash precedes the part's name.
func (g GitOps) namedOf(cluster, part string) string {
	return k8s.Fit(g.Name+g.joint(strings.Contains(cluster, "."))+cluster+"-"+part, k8s.MaxLabel)
}

// joint returns the separator between the names of the environment and of a cluster. The
// parameter dotted reports whether the cluster's name has a dot.
func (g GitOps) joint(dotted bool) string {
	if dotted || strings.Contains(g.Name, "-") {
		return "."
	}
	return "-"
}

// missingFaults returns a fault for each field without a value.
func missingFaults(by Name, what string, values map[string]string) []Fault {
	var out []Fault
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if values[field] == "" {
			out = append(out, Fault{"gitops." + field, fmt.Sprintf("missing: the %s profile needs it to render %s", by, what)})
		}
	}
	return out
}

// duplicateFaults returns a fault for each cluster with the place of an earlier cluster. It
// ignores clusters without a place.
func duplicateFaults(clusters []Cluster, where func(Cluster) (field, place string)) []Fault {
	var out []Fault
	first := map[string]string{}
	for i, c := range clusters {
		field, place := where(c)
		switch before, seen := first[place]; {
		case place == "":
		case seen:
			out = append(out, Fault{
				fmt.Sprintf("clusters[%d].%s", i, field),
				fmt.Sprintf("clusters %q and %[3]q have the same address %[2]s: each would prune the other's objects", c.Name, place, before),
			})
		default:
			first[place] = c.Name
		}
	}
	return out
}
