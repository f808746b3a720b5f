package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/quayside/quayside/internal/k8s"
)

// Resources contains the requests and limits of the pods of operators, for output as JSON.
type Resources struct {
	Operators []OperatorResources `json:"operators" doc:"by operator, then by clusters; objects that belong to no operator first"`
	Clusters  []ClusterResources  `json:"clusters" doc:"sums, by clusters"`
}

// OperatorResources contains the sums of an operator in clusters with the same sums.
type OperatorResources struct {
	Operator string   `json:"operator" doc:"as namespace/package; empty for objects that overlays add"`
	Clusters []string `json:"clusters,omitempty" doc:"sorted; missing if spec.clusters has none"`
	Amounts
}

// ClusterResources are the sums of all operators in clusters with the same objects.
type ClusterResources struct {
	Clusters []string `json:"clusters,omitempty" doc:"sorted; missing if spec.clusters has none"`
	Amounts
}

// Amounts contains sums over the pods of Deployments, StatefulSets and DaemonSets with their replicas, as the
// scheduler computes them. It does not include the effect of autoscalers, or pods that an operator creates.
type Amounts struct {
	Pods       int   `json:"pods" doc:"a DaemonSet counts once"`
	DaemonSets int   `json:"daemonSets,omitempty" doc:"workloads with a pod on each node, which the sums contain once"`
	Unlimited  int   `json:"unlimited,omitempty" doc:"pods with a container that has no memory limit"`
	CPU        Range `json:"cpu" doc:"in cores"`
	Memory     Range `json:"memory" doc:"in bytes, rounded up to mebibytes"`
}

// PodSum is a sum over pods. The zero value is the sum over no pods.
type PodSum struct {
	Amounts
	requests, limits corev1.ResourceList
}

// Range is the sum of the requests and of the limits of a resource, as Kubernetes quantities.
type Range struct {
	Request string `json:"request"`
	Limit   string `json:"limit" doc:"of the containers that have one"`
}

// Add adds the pods of an object. It ignores objects without pods. It returns an error for an invalid pod
// template.
func (a *PodSum) Add(o k8s.Object) error {
	kind := o.Group() + "/" + o.Kind()
	if !slices.Contains([]string{"apps/Deployment", "apps/StatefulSet", "apps/DaemonSet"}, kind) {
		return nil
	}
	replicas, isSet := k8s.At(o, "spec", "replicas").(int64)
	if !isSet || kind == "apps/DaemonSet" {
		replicas = 1
	}
	for _, t := range k8s.PodTemplates(o) {
		data, err := json.Marshal(t.Spec)
		if err != nil {
			return err
		}
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod.Spec); err != nil {
			return fmt.Errorf("%s: %w", o.Key(), err)
		}
		a.addPods(&pod, replicas)
		if kind == "apps/DaemonSet" {
			a.DaemonSets++
		}
	}
	return nil
}

func (a *PodSum) addPods(pod *corev1.Pod, replicas int64) {
	a.Pods += int(replicas)
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Resources.Limits.Memory().IsZero() }) {
		a.Unlimited += int(replicas)
	}
	a.requests = addTimes(a.requests, helper.PodRequests(pod, helper.PodResourcesOptions{}), replicas)
	a.limits = addTimes(a.limits, helper.PodLimits(pod, helper.PodResourcesOptions{}), replicas)
	a.format()
}

// addTimes returns the sum of list and n times more. It modifies list.
func addTimes(list, more corev1.ResourceList, n int64) corev1.ResourceList {
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

// AddGroup adds clusters that get the same objects. pods are the sums of their operators.
func (r *Resources) AddGroup(clusters []string, pods map[string]*PodSum) {
	var all PodSum
	for operator, a := range pods {
		all.Pods, all.DaemonSets, all.Unlimited = all.Pods+a.Pods, all.DaemonSets+a.DaemonSets, all.Unlimited+a.Unlimited
		all.requests, all.limits = addTimes(all.requests, a.requests, 1), addTimes(all.limits, a.limits, 1)
		i := slices.IndexFunc(r.Operators, func(o OperatorResources) bool { return o.Operator == operator && o.Amounts == a.Amounts })
		if i < 0 {
			i, r.Operators = len(r.Operators), append(r.Operators, OperatorResources{Operator: operator, Amounts: a.Amounts})
		}
		r.Operators[i].Clusters = slices.Sorted(slices.Values(append(r.Operators[i].Clusters, clusters...)))
	}
	all.format()
	r.Clusters = append(r.Clusters, ClusterResources{slices.Sorted(slices.Values(clusters)), all.Amounts})
	slices.SortFunc(r.Operators, func(a, b OperatorResources) int {
		return cmp.Or(cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Clusters, b.Clusters))
	})
	slices.SortFunc(r.Clusters, func(a, b ClusterResources) int { return slices.Compare(a.Clusters, b.Clusters) })
}

// format sets the texts of the sums.
func (a *PodSum) format() {
	a.CPU = Range{a.requests.Cpu().String(), a.limits.Cpu().String()}
	a.Memory = Range{inMebibytes(a.requests.Memory()), inMebibytes(a.limits.Memory())}
}

// inMebibytes returns an amount of memory in Mi, rounded up. Without this, the sum of quantities with
// different suffixes would have no suffix.
func inMebibytes(q *resource.Quantity) string {
	const mebibyte = 1 << 20
	return resource.NewQuantity((q.Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI).String()
}
