package render

import (
	"errors"
	"fmt"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// If one operator replaces another, the tree changes in two steps.
//
// In the first step, the tree contains the successor and the leftover objects of its predecessor. The CRDs, and
// every object that both operators ship under the same name, are rendered for the successor. Such an object
// only moves to another file: the GitOps tool updates it, and does not delete it. All other objects of the
// predecessor remain (accounts, roles, Services, certificates, configuration). The workloads that the
// predecessor created need these objects until the successor manages the workloads. The predecessor itself is
// stopped, because two controllers must not manage the same custom resources. Its Deployments have no replicas,
// and are applied before the successor's Deployments. Its webhooks get failurePolicy Ignore, because without a
// server they would reject every write. The Deployments and webhooks are not removed, because many tools prune
// late or only on request.
//
// In the second step, after the successor was observed running, the lock no longer has the
// predecessor, and its leftover objects are removed from the tree.

// reduceLeftovers removes all objects of replaced operators that are not leftover objects.
func (t *tree) reduceLeftovers() error {
	rendered := map[Key]bool{}
	for _, in := range t.installs {
		for _, o := range in.objects {
			rendered[o.Key()] = true
		}
	}
	for i := range t.replaced {
		in := &t.replaced[i]
		var own []Object
		for _, o := range in.objects {
			switch {
			case rendered[o.Key()]:
				in.sharedObjects = append(in.sharedObjects, o)
			case !mustBeRemoved(o):
				rendered[o.Key()] = true
				own = append(own, stopObject(o))
			}
		}
		in.objects = own
	}
	return errors.Join(t.checkProvided(), checkSuccessors(t.opt.Clusters, t.replaced))
}

// mustBeRemoved reports whether an object of a replaced operator must be removed, because stopObject cannot
// stop it. Such an object runs pods without a number of replicas, scales a workload, or sends requests to a
// workload.
func mustBeRemoved(o Object) bool {
	return o.Is("apps", "DaemonSet") || o.Is("batch", "Job") || o.Is("batch", "CronJob") || o.Is("", "Pod") ||
		o.Is("autoscaling", "HorizontalPodAutoscaler") || o.Is("apiregistration.k8s.io", "APIService")
}

// isStoppable reports whether stopObject changes an object.
func isStoppable(o Object) bool {
	return o.Is("apps", "Deployment") || o.Is("apps", "StatefulSet") || o.Key().IsWebhookConfig()
}

// stopObject returns the stopped form of an object: a workload with 0 replicas, or a webhook whose
// failure is ignored. It returns other objects unchanged.
func stopObject(o Object) Object {
	switch {
	case !isStoppable(o):
		return o
	case !o.Key().IsWebhookConfig():
		return k8s.With(o, any(int64(0)), "spec", "replicas")
	}
	var webhooks []any
	for _, w := range k8s.Items(o, "webhooks") {
		webhooks = append(webhooks, k8s.With(w, any("Ignore"), "failurePolicy"))
	}
	return k8s.With(o, any(webhooks), "webhooks")
}

// checkProvided returns an error if no remaining operator provides a CRD of a replaced operator. The tool would
// prune the CRD, and the cluster would then delete all custom resources of that CRD. If pieces are applied
// separately, engines do not prune CRDs, so checkProvided checks nothing.
func (t *tree) checkProvided() error {
	if !t.opt.byCluster() {
		return nil
	}
	provided := map[string]bool{}
	for _, in := range t.installs {
		for _, crd := range in.crds {
			provided[crd.Name()] = true
		}
	}
	var errs []error
	for _, in := range t.replaced {
		for _, crd := range in.crds {
			if !provided[crd.Name()] {
				errs = append(errs, fmt.Errorf("%s replaces %s (%s) but does not contain CustomResourceDefinition %s, so the CRD and all its custom resources would be deleted: remove spec.replaces and declare both operators",
					in.successor, in.name(), in.pin.Bundle, crd.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// checkSuccessors returns an error if a cluster gets a replaced operator without its successor, because the
// cluster would lose the CRDs.
func checkSuccessors(clusters []profile.Cluster, replaced []operator) error {
	var errs []error
	for _, c := range clusters {
		for _, in := range replaced {
			had, err1 := c.Gets(in.name())
			gets, err2 := c.Gets(in.successor)
			errs = append(errs, err1, err2)
			if had && !gets {
				errs = append(errs, fmt.Errorf("cluster %q would lose the CRDs of %s and all their custom resources, because spec.clusters does not give it the successor %s: add the successor in spec.clusters",
					c.Name, in.name(), in.successor))
			}
		}
	}
	return errors.Join(errs...)
}
