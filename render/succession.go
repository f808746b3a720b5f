package render

import (
	"errors"
	"fmt"

	"github.com/quayside/quayside/internal/kobj"
)

// Where one operator follows another, the tree changes twice.
//
// First the follower stands beside what is left of the operator before it. It has
// the definitions, and every object that both bring under one name: in the tree
// such an object only moves to another file, and a tool that applies the tree
// changes it and deletes nothing. All the rest of the operator before stays: what
// its workloads run by (accounts, roles, Services, certificates, configuration) is
// needed until the follower has taken these workloads over. But nothing of it
// works any more. Its Deployments have no replicas, and are applied before the
// follower's, since two controllers must not look after the same custom resources.
// Its webhooks may fail, since nobody answers them: they would forbid every write.
// They are changed and not taken out, for many a tool prunes late, or only when
// somebody says so.
//
// Then, once the follower was seen to run, the lock says nothing of it any more,
// and all that is left leaves the tree.

// leftovers makes of each operator that is leaving what is left of it.
func (t *tree) leftovers() error {
	there := map[Key]bool{}
	for _, in := range t.installs {
		for _, o := range in.objects {
			there[o.Key()] = true
		}
	}
	for i := range t.leaving {
		in := &t.leaving[i]
		var own []Object
		for _, o := range in.objects {
			switch {
			case there[o.Key()]:
				in.others = append(in.others, o)
			case !onlyWorks(o):
				there[o.Key()] = true
				own = append(own, stopped(o))
			}
		}
		in.objects = own
	}
	return errors.Join(t.unprovided(), t.unfollowed())
}

// onlyWorks reports whether nothing stays of an object that does not work: it runs
// something without replicas to take away, or sends requests to what runs.
func onlyWorks(o Object) bool {
	return o.Is("apps", "DaemonSet") || o.Is("batch", "Job") || o.Is("batch", "CronJob") || o.Is("", "Pod") ||
		o.Is("autoscaling", "HorizontalPodAutoscaler") || o.Is("apiregistration.k8s.io", "APIService")
}

// works reports whether stopped changes an object.
func works(o Object) bool {
	return o.Is("apps", "Deployment") || o.Is("apps", "StatefulSet") || isWebhook(o)
}

func isWebhook(o Object) bool {
	const group = "admissionregistration.k8s.io"
	return o.Is(group, "ValidatingWebhookConfiguration") || o.Is(group, "MutatingWebhookConfiguration")
}

// stopped returns an object as it is where its operator does not run any more.
func stopped(o Object) Object {
	switch {
	case !works(o):
		return o
	case !isWebhook(o):
		return kobj.With(o, any(int64(0)), "spec", "replicas")
	}
	var webhooks []any
	for _, w := range kobj.Items(o, "webhooks") {
		webhooks = append(webhooks, kobj.With(w, any("Ignore"), "failurePolicy"))
	}
	return kobj.With(o, any(webhooks), "webhooks")
}

// unprovided refuses definitions of which nobody would be left to provide them:
// with such a definition all its objects would go. An engine of pieces prunes none.
func (t *tree) unprovided() error {
	if !t.byCluster() {
		return nil
	}
	provided := map[string]bool{}
	for _, in := range t.installs {
		for _, crd := range in.crds {
			provided[crd.Name()] = true
		}
	}
	var errs []error
	for _, in := range t.leaving {
		for _, crd := range in.crds {
			if !provided[crd.Name()] {
				errs = append(errs, fmt.Errorf("%s follows %s (%s) and does not bring CustomResourceDefinition %s, which would go with all its objects: take spec.replaces out and declare both",
					in.follower, in.name(), in.pin.Bundle, crd.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// unfollowed refuses clusters that got an operator and do not get the one that
// follows it, so that there they would lose its definitions.
func (t *tree) unfollowed() error {
	var errs []error
	for _, c := range t.opt.Clusters {
		for _, in := range t.leaving {
			had, err1 := c.Gets(in.name())
			gets, err2 := c.Gets(in.follower)
			errs = append(errs, err1, err2)
			if had && !gets {
				errs = append(errs, fmt.Errorf("cluster %q got %s and does not get %s, which follows it: its definitions would go there, with all their objects: let spec.clusters have it too",
					c.Name, in.name(), in.follower))
			}
		}
	}
	return errors.Join(errs...)
}

// leavingIn returns what is left over in a cluster.
func (t *tree) leavingIn(c Cluster) ([]*opened, error) {
	var out []*opened
	for i := range t.leaving {
		gets, err := c.Gets(t.leaving[i].name())
		if err != nil {
			return nil, err
		}
		if gets {
			out = append(out, &t.leaving[i])
		}
	}
	return out, nil
}
