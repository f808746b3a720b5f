package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/internal/k8s"
)

// Values of GitOps.RemovedClusters. An empty value means Keep.
const (
	Keep   = "keep"
	Delete = "delete"
)

// Fault is an invalid setting.
type Fault struct {
	Field   string // field path below spec in quayside.yaml: "gitops.repoURL", "clusters[1].server"
	Message string // message without the field, such as "missing: …"
}

// fieldMap returns a struct as a map of its JSON fields. v is a pointer to the struct.
func fieldMap(v any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(fmt.Sprintf("profile: %T: %v", v, err)) // impossible: all types of this package can be encoded as JSON
	}
	return out
}

// newObject returns an object for the tool, with the configured namespace and labels.
func (g GitOps) newObject(apiVersion, kind, name string) k8s.Object {
	return k8s.Label(k8s.New(apiVersion, kind, g.Namespace, name), g.Labels)
}

// partName returns the name of the object for one part of the tree in all clusters. It is a valid
// label value.
func (g GitOps) partName(part string) string {
	return k8s.Fit(g.Name+"-"+part, k8s.MaxLabel)
}

// clusterPartName returns the name of the object for one part of the tree in one cluster. It is a valid label
// value. Names are unique on a hub, because the parts of a name can be told apart:
//   - The name of the environment contains no dot. It ends at the first dot, or at the first dash if there is
//     no dot.
//   - The name of the part contains no dash. It begins after the last dash.
func (g GitOps) clusterPartName(cluster, part string) string {
	return k8s.Fit(g.Name+g.clusterSeparator(strings.Contains(cluster, "."))+cluster+"-"+part, k8s.MaxLabel)
}

// clusterSeparator returns the separator between the name of the environment and the name of a cluster.
// dotted means that the name of the cluster contains a dot.
func (g GitOps) clusterSeparator(dotted bool) string {
	if dotted || strings.Contains(g.Name, "-") {
		return "."
	}
	return "-"
}

// missingFaults returns a fault for each field in values that is empty. object is the object that needs
// these fields, such as "an Application".
func missingFaults(profile Name, object string, values map[string]string) []Fault {
	var out []Fault
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if values[field] == "" {
			out = append(out, Fault{"gitops." + field, fmt.Sprintf("missing: the %s profile needs it to render %s", profile, object)})
		}
	}
	return out
}

// duplicateFaults returns a fault for each cluster with the same address as an earlier cluster. address
// returns the field that contains the address of a cluster, and the address, which may be empty.
func duplicateFaults(clusters []Cluster, address func(Cluster) (field, addr string)) []Fault {
	var out []Fault
	first := map[string]string{}
	for i, c := range clusters {
		field, addr := address(c)
		switch before, seen := first[addr]; {
		case addr == "":
		case seen:
			out = append(out, Fault{
				fmt.Sprintf("clusters[%d].%s", i, field),
				fmt.Sprintf("clusters %q and %q have the same address %s, so each would prune the other's objects: set %s of each cluster", c.Name, before, addr, field),
			})
		default:
			first[addr] = c.Name
		}
	}
	return out
}
