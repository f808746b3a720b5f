package inventory

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/requests"
)

// Resources contains the requests and limits of the pods of operators, for output as JSON.
type Resources struct {
	Operators  []OperatorResources `json:"operators" doc:"sorted by operator, then by clusters; objects that belong to no operator first"`
	Owners     []OwnerResources    `json:"owners,omitempty" doc:"with --by: sums by owner, then by clusters; operators without an owner first"`
	Clusters   []ClusterResources  `json:"clusters" doc:"sums, by clusters"`
	Total      Amounts             `json:"total" doc:"sum over all clusters"`
	Unmeasured string              `json:"unmeasured,omitempty" doc:"why there are pods whose use is unknown, with --context"`

	Workloads []Workload `json:"-"`
	total     PodSum
}

// Workload is a workload whose pods are included in the sums.
type Workload struct {
	Operator, Owner string
	Namespace       string
	Selector        string // label selector of its pods
}

// OperatorResources contains the sums of an operator. Clusters with equal sums share an entry.
type OperatorResources struct {
	Operator string   `json:"operator" doc:"as namespace/package; empty for objects that overlays add"`
	Clusters []string `json:"clusters,omitempty" doc:"sorted; missing if spec.clusters has none"`
	Amounts
}

// OwnerResources contains the sums over all operators of one owner. Clusters with equal sums share an entry.
type OwnerResources struct {
	Owner    string   `json:"owner" doc:"empty for operators without an owner"`
	Clusters []string `json:"clusters,omitempty" doc:"sorted; missing if spec.clusters has none"`
	Amounts
}

// ClusterResources are the sums of all operators in clusters with the same objects.
type ClusterResources struct {
	Clusters []string `json:"clusters,omitempty" doc:"sorted; missing if spec.clusters has none"`
	Amounts
}

// Amounts contains sums over the pods of Deployments, StatefulSets and DaemonSets with their replicas, as the
// scheduler computes them. The sums include no pods that operators create, and no effects of autoscalers.
type Amounts struct {
	Pods       int   `json:"pods" doc:"a DaemonSet counts once"`
	DaemonSets int   `json:"daemonSets,omitempty" doc:"workloads with a pod on each node, which the sums contain once"`
	Unlimited  int   `json:"unlimited,omitempty" doc:"pods with a container that has no memory limit"`
	CPU        Range `json:"cpu" doc:"in cores"`
	Memory     Range `json:"memory" doc:"in bytes, rounded up to mebibytes"`
	Used       *Use  `json:"used,omitempty" doc:"with --context: the present use of the pods that the cluster has"`
}

// Use is the current resource use of running pods.
type Use struct {
	Pods   int    `json:"pods" doc:"pods that metrics.k8s.io has"`
	CPU    string `json:"cpu" doc:"in cores"`
	Memory string `json:"memory" doc:"in bytes, rounded up to mebibytes"`
	list   corev1.ResourceList
}

func (u *Use) add(used corev1.ResourceList) {
	u.Pods++
	u.list = requests.AddTimes(u.list, used, 1)
	u.CPU, u.Memory = u.list.Cpu().String(), inMebibytes(u.list.Memory())
}

// PodSum is a sum over pods. The zero value is the sum over no pods.
type PodSum struct {
	Amounts
	requested, limits corev1.ResourceList
}

// Range contains the sum of the requests for a resource and the sum of the limits, as Kubernetes quantities.
type Range struct {
	Request string `json:"request"`
	Limit   string `json:"limit" doc:"sum of the limits of the containers that have one"`
}

// Add adds the pods of an object. It ignores objects without pods. It returns an error for an invalid pod
// template.
func (a *PodSum) Add(o k8s.Object) error {
	pods, err := requests.OfWorkload(o)
	if err != nil || pods.Pods == 0 {
		return err
	}
	more := &PodSum{Amounts: Amounts{Pods: pods.Pods, Unlimited: pods.Unlimited}, requested: pods.Requests, limits: pods.Limits}
	if pods.DaemonSet {
		more.DaemonSets = 1
	}
	a.AddTimes(more, 1)
	return nil
}

// AddGroup adds clusters that get the same objects. operators and owners are their sums by operator and by
// owner. If owners is nil, there are no sums by owner.
func (r *Resources) AddGroup(clusters []string, operators, owners map[string]*PodSum) {
	clusters = slices.Sorted(slices.Values(clusters))
	var all PodSum
	all.format() // of no pods
	for operator, a := range operators {
		all.AddTimes(a, 1)
		i := slices.IndexFunc(r.Operators, func(o OperatorResources) bool { return o.Operator == operator && o.Amounts == a.Amounts })
		if i < 0 {
			i, r.Operators = len(r.Operators), append(r.Operators, OperatorResources{Operator: operator, Amounts: a.Amounts})
		}
		r.Operators[i].Clusters = slices.Sorted(slices.Values(append(r.Operators[i].Clusters, clusters...)))
	}
	for owner, a := range owners {
		i := slices.IndexFunc(r.Owners, func(o OwnerResources) bool { return o.Owner == owner && o.Amounts == a.Amounts })
		if i < 0 {
			i, r.Owners = len(r.Owners), append(r.Owners, OwnerResources{Owner: owner, Amounts: a.Amounts})
		}
		r.Owners[i].Clusters = slices.Sorted(slices.Values(append(r.Owners[i].Clusters, clusters...)))
	}
	r.Clusters = append(r.Clusters, ClusterResources{clusters, all.Amounts})
	r.total.AddTimes(&all, max(len(clusters), 1))
	r.Total = r.total.Amounts
	slices.SortFunc(r.Operators, func(a, b OperatorResources) int {
		return cmp.Or(cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Clusters, b.Clusters))
	})
	slices.SortFunc(r.Owners, func(a, b OwnerResources) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), slices.Compare(a.Clusters, b.Clusters))
	})
	slices.SortFunc(r.Clusters, func(a, b ClusterResources) int { return slices.Compare(a.Clusters, b.Clusters) })
}

// AddTimes adds the sum in more to a, multiplied by n.
func (a *PodSum) AddTimes(more *PodSum, n int) {
	a.Pods, a.DaemonSets, a.Unlimited = a.Pods+n*more.Pods, a.DaemonSets+n*more.DaemonSets, a.Unlimited+n*more.Unlimited
	a.requested, a.limits = requests.AddTimes(a.requested, more.requested, int64(n)), requests.AddTimes(a.limits, more.limits, int64(n))
	a.format()
}

// SetUse sets the measured use. For each element of Workloads, pods has the measured resources of
// its pods, by namespace/name. A pod that belongs to two workloads counts only for the first.
func (r *Resources) SetUse(pods []map[string]corev1.ResourceList) {
	operators, owners, seen := map[string]*Use{}, map[string]*Use{}, map[string]bool{}
	total := &Use{CPU: "0", Memory: "0"}
	for i, w := range r.Workloads {
		for _, u := range []*Use{entry(operators, w.Operator), entry(owners, w.Owner), total} {
			for name, used := range pods[i] {
				if !seen[name] {
					u.add(used)
				}
			}
		}
		for name := range pods[i] {
			seen[name] = true
		}
	}
	for i := range r.Operators {
		r.Operators[i].Used = operators[r.Operators[i].Operator]
	}
	for i := range r.Owners {
		r.Owners[i].Used = owners[r.Owners[i].Owner]
	}
	for i := range r.Clusters {
		r.Clusters[i].Used = total
	}
	r.Total.Used = total
}

func entry(uses map[string]*Use, name string) *Use {
	if uses[name] == nil {
		uses[name] = &Use{CPU: "0", Memory: "0"}
	}
	return uses[name]
}

// format sets the texts of the sums.
func (a *PodSum) format() {
	a.CPU = Range{a.requested.Cpu().String(), a.limits.Cpu().String()}
	a.Memory = Range{inMebibytes(a.requested.Memory()), inMebibytes(a.limits.Memory())}
}

// inMebibytes returns an amount of memory in Mi, rounded up. The sum of quantities with different suffixes
// would otherwise have no suffix.
func inMebibytes(q *resource.Quantity) string {
	const mebibyte = 1 << 20
	return resource.NewQuantity((q.Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI).String()
}
