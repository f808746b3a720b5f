package diff

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/requests"
)

// ResourceChange is a change of the sums of requests and limits of pods. There are no totals, because only
// changed objects are compared.
type ResourceChange struct {
	CPURequest    int64 `json:"cpuRequest,omitempty" doc:"in millicores"`
	CPULimit      int64 `json:"cpuLimit,omitempty" doc:"in millicores, of the containers that have one"`
	MemoryRequest int64 `json:"memoryRequest,omitempty" doc:"in bytes"`
	MemoryLimit   int64 `json:"memoryLimit,omitempty" doc:"in bytes, of the containers that have one"`
}

// resourceChange returns the requests and limits after the change minus those before. Objects that are
// not workloads, and pod templates that the API server refuses, count as zero.
func (p pair) resourceChange() ResourceChange {
	return resourcesOf(p.after).plus(resourcesOf(p.before), -1)
}

func resourcesOf(o *Object) ResourceChange {
	if o == nil {
		return ResourceChange{}
	}
	sum, err := requests.OfWorkload(k8s.Object(o.Content))
	if err != nil {
		return ResourceChange{}
	}
	get := func(list corev1.ResourceList, name corev1.ResourceName) resource.Quantity { return list[name] }
	cpu, cpuLimit := get(sum.Requests, corev1.ResourceCPU), get(sum.Limits, corev1.ResourceCPU)
	memory, memoryLimit := get(sum.Requests, corev1.ResourceMemory), get(sum.Limits, corev1.ResourceMemory)
	return ResourceChange{cpu.MilliValue(), cpuLimit.MilliValue(), memory.Value(), memoryLimit.Value()}
}

// plus returns the sum of c and n times d.
func (c ResourceChange) plus(d ResourceChange, n int64) ResourceChange {
	return ResourceChange{c.CPURequest + n*d.CPURequest, c.CPULimit + n*d.CPULimit, c.MemoryRequest + n*d.MemoryRequest, c.MemoryLimit + n*d.MemoryLimit}
}

// String returns the change as a text such as "requests: CPU +100m, memory +64Mi; limits: memory -1Gi", or
// "" if there is none.
func (c ResourceChange) String() string {
	var out []string
	for _, kind := range []struct {
		name        string
		cpu, memory int64
	}{{"requests", c.CPURequest, c.MemoryRequest}, {"limits", c.CPULimit, c.MemoryLimit}} {
		var parts []string
		if kind.cpu != 0 {
			parts = append(parts, "CPU "+signed(resource.NewMilliQuantity(kind.cpu, resource.DecimalSI)))
		}
		if kind.memory != 0 {
			parts = append(parts, "memory "+signed(resource.NewQuantity(kind.memory, resource.BinarySI)))
		}
		if len(parts) > 0 {
			out = append(out, kind.name+": "+strings.Join(parts, ", "))
		}
	}
	return strings.Join(out, "; ")
}

func signed(q *resource.Quantity) string {
	if q.Sign() > 0 {
		return "+" + q.String()
	}
	return q.String()
}

// ResourceChange returns the change in all clusters together.
func (r *Report) ResourceChange() ResourceChange {
	var out ResourceChange
	for _, op := range r.Operators {
		n := len(op.Clusters)
		if n == 0 {
			n = max(len(r.Clusters), 1)
		}
		out = out.plus(op.Resources, int64(n))
	}
	return out
}

// resourceLine returns a line about the change in all clusters together, or "" if there is no change. It also returns
// "" if only one operator in only one cluster changes, because the report has a line about this operator.
func (r *Report) resourceLine() string {
	total := r.ResourceChange()
	changed := 0
	for _, op := range r.Operators {
		if op.Resources != (ResourceChange{}) {
			changed++
		}
	}
	switch {
	case total == ResourceChange{} || changed < 2 && len(r.Clusters) < 2:
		return ""
	case len(r.Clusters) > 1:
		return fmt.Sprintf("sum over %d clusters: %s", len(r.Clusters), total)
	}
	return "in total: " + total.String()
}
