package render

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// ClusterOperator is an operator with its objects in one cluster.
type ClusterOperator struct {
	Pin        lockfile.Pin
	NativeAPIs []catalog.GVK // APIs that its ClusterServiceVersion expects in every cluster
	Objects    []Object      // without CRDs, and without changes by the user's overlays
}

// ClusterObjects returns the operators that a cluster gets. shared contains the CRDs and Namespaces of the
// cluster. The objects include changes by the cluster's config, but not changes by the user's overlays.
func (r *Result) ClusterObjects(name string) (operators []ClusterOperator, shared []Object, err error) {
	v, err := r.tree.view(name)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := v.config()
	if err != nil {
		return nil, nil, err
	}
	for _, in := range v.here {
		o := ClusterOperator{Pin: in.pin, NativeAPIs: in.b.CSV.NativeAPIs}
		for _, object := range slices.Concat(in.objects, in.sharedObjects) {
			o.Objects = append(o.Objects, cfg.applyToCopy(object))
		}
		operators = append(operators, o)
	}
	gets, namespaces := v.crdFilter(), v.neededNamespaces()
	for _, o := range v.objects {
		if k8s.IsCRD(o.Object) && gets(o.Object) || o.Object.Is("", "Namespace") && slices.Contains(namespaces, o.Object.Name()) {
			shared = append(shared, o.Object)
		}
	}
	return operators, shared, nil
}

// RunsOLM reports whether OLM runs in the clusters, because operators are being adopted from it.
// The tree then does not contain the CRD of OperatorCondition, which OLM provides.
func (r *Result) RunsOLM() bool { return runsOLM(r.tree.installs) }
