// Package requests computes the sums of the CPU and memory requests and limits of the pods of workloads.
//
// Start from [OfWorkload].
package requests

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"

	"github.com/quayside/quayside/internal/k8s"
)

// Sum is the sum over the pods of a workload.
type Sum struct {
	Pods             int
	Unlimited        int  // pods with a container that has no memory limit
	DaemonSet        bool // a pod on each node, of which the sum contains one
	Requests, Limits corev1.ResourceList
}

// OfWorkload returns the sum that the scheduler computes: over all replicas of a Deployment or StatefulSet, or
// over one pod of a DaemonSet. For other kinds, it returns an empty sum. It returns an error for an invalid pod
// template.
func OfWorkload(o k8s.Object) (Sum, error) {
	out := Sum{DaemonSet: o.Is("apps", "DaemonSet")}
	if !out.DaemonSet && !o.Is("apps", "Deployment") && !o.Is("apps", "StatefulSet") {
		return out, nil
	}
	replicas, isSet := k8s.At(o, "spec", "replicas").(int64)
	if !isSet || out.DaemonSet {
		replicas = 1
	}
	for _, t := range k8s.PodTemplates(o) {
		data, err := json.Marshal(t.Spec)
		if err != nil {
			return out, err
		}
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod.Spec); err != nil {
			return out, fmt.Errorf("%s: %w", o.Key(), err)
		}
		out.Pods += int(replicas)
		for _, c := range pod.Spec.Containers {
			if c.Resources.Limits.Memory().IsZero() {
				out.Unlimited += int(replicas)
				break
			}
		}
		out.Requests = AddTimes(out.Requests, helper.PodRequests(&pod, helper.PodResourcesOptions{}), replicas)
		out.Limits = AddTimes(out.Limits, helper.PodLimits(&pod, helper.PodResourcesOptions{}), replicas)
	}
	return out, nil
}

// AddTimes adds each quantity in more, multiplied by n, to list. It modifies and returns list.
func AddTimes(list, more corev1.ResourceList, n int64) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	for name, q := range more {
		q = q.DeepCopy() // Mul would change a decimal that both quantities share
		q.Mul(n)
		q.Add(list[name])
		list[name] = q
	}
	return list
}
