package status

import (
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
)

// Limits for the custom resources of each kind.
const (
	maxCustomResources = 100 // read from the cluster
	maxListedResources = 10  // listed in the status
)

// countCustomResources adds the custom resources of the operators' CRDs to a status. objects holds the observed
// objects of all Installations, in the order of l.want.Installations. If several operators have the same CRD,
// its custom resources count for the operator that renders the CRD. If namespace is not empty,
// countCustomResources ignores custom resources in other namespaces.
func (l *observer) countCustomResources(ctx context.Context, out *Status, objects []v1alpha1.Observed, namespace string) error {
	var lists []cluster.ListOptions
	owners := map[int][]string{} // operators by index in lists
	for _, in := range l.want.Installations {
		own := objects[:len(in.Spec.Objects)]
		objects = objects[len(in.Spec.Objects):]
		for _, o := range own {
			if o.Ref.Kind != "CustomResourceDefinition" || o.Ref.Version == "" || o.Object == nil {
				continue // the CRD is missing, or belongs to another operator
			}
			opt, ok := newListOptions(o.Object)
			if !ok {
				continue
			}
			opt.Namespace = namespace
			i := slices.Index(lists, opt)
			if i < 0 {
				i = len(lists)
				lists = append(lists, opt)
			}
			owners[i] = append(owners[i], in.Namespace+"/"+in.Spec.Package)
		}
	}
	found, err := l.c.ListAll(ctx, lists)
	if err != nil {
		return err
	}
	now := time.Now()
	for i, f := range found {
		k := health.CustomKind{APIVersion: lists[i].APIVersion, Kind: lists[i].Kind, Message: f.Message, Count: len(f.Objects), AtLeast: f.More > 0}
		k.Resources, k.NotReady = judgeResources(f.Objects, now)
		for j := range out.Operators {
			if op := &out.Operators[j]; slices.Contains(owners[i], op.Key()) {
				op.Details.CustomResources = append(op.Details.CustomResources, k)
			}
		}
	}
	return nil
}

// newListOptions returns the options to list the custom resources of a CRD. It uses the storage version or, if
// that is not served, the first served version. It returns false if no version is served.
func newListOptions(definition map[string]any) (cluster.ListOptions, bool) {
	d := k8s.ParseCRD(definition)
	opt := cluster.ListOptions{Limit: maxCustomResources, Kind: d.Kind}
	for _, v := range d.Versions {
		if v.Served && (opt.APIVersion == "" || v.Storage) {
			opt.APIVersion = d.Group + "/" + v.Name
		}
	}
	return opt, opt.Kind != "" && opt.APIVersion != ""
}

// judgeResources returns the health of at most maxListedResources objects, with objects that are not ready
// first, and the total number of objects that are not ready.
func judgeResources(objects []map[string]any, now time.Time) ([]v1alpha1.ObjectHealth, int) {
	bad, good := []v1alpha1.ObjectHealth{}, []v1alpha1.ObjectHealth{}
	for _, o := range objects {
		h := health.Compute(o, now)
		r := v1alpha1.ObjectHealth{
			APIVersion: k8s.Text(o, "apiVersion"), Kind: k8s.Text(o, "kind"),
			Namespace: k8s.Text(o, "metadata", "namespace"), Name: k8s.Text(o, "metadata", "name"),
			Health: h.Status, Message: h.Message,
		}
		if h.Status == v1alpha1.Current {
			good = append(good, r)
		} else {
			bad = append(bad, r)
		}
	}
	all := append(bad, good...)
	return all[:min(len(all), maxListedResources)], len(bad)
}
