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
	NativeAPIs []catalog.GVK // APIs that its ClusterServiceVersion requires from the cluster
	Objects    []Object      // without CRDs and without the user's overlays
}

// ClusterObjects returns the operators that a cluster gets, and its CRDs and Namespaces in shared. The
// objects include the changes of the cluster's config, but not those of the user's overlays.
func (r *Result) ClusterObjects(name string) (operators []ClusterOperator, shared []Object, err error) {
	t := r.tree
	c, err := t.cluster(name)
	if err != nil {
		return nil, nil, err
	}
	here, err := t.operatorsIn(c)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := t.config(c)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range here {
		o := ClusterOperator{Pin: in.pin, NativeAPIs: in.b.CSV.NativeAPIs}
		for _, object := range slices.Concat(in.objects, in.sharedObjects) {
			o.Objects = append(o.Objects, t.withClusterConfig(cfg, object))
		}
		operators = append(operators, o)
	}
	gets, err := t.crdFilter(c)
	if err != nil {
		return nil, nil, err
	}
	namespaces := t.neededNamespaces(here)
	for _, o := range r.Objects {
		if k8s.IsCRD(o.Object) && gets(o.Object) || o.Object.Is("", "Namespace") && slices.Contains(namespaces, o.Object.Name()) {
			shared = append(shared, o.Object)
		}
	}
	return operators, shared, nil
}

// RunsOLM reports whether the clusters run OLM, because operators are being adopted from OLM. The tree
// then lacks the CRD of OperatorCondition.
func (r *Result) RunsOLM() bool { return r.tree.runsOLM() }
