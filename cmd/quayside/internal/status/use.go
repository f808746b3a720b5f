package status

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// MeasureUse sets the current resource use of the workloads' pods, as returned by the metrics.k8s.io API of the
// cluster. If the cluster does not return the metrics of a workload, r.Unmeasured has the reason.
func MeasureUse(ctx context.Context, c *cluster.Client, r *inventory.Resources) error {
	lists := make([]cluster.ListOptions, len(r.Workloads))
	for i, w := range r.Workloads {
		lists[i] = cluster.ListOptions{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics", Namespace: w.Namespace, Labels: w.Selector}
	}
	found, err := c.ListAll(ctx, lists)
	if err != nil {
		return err
	}
	pods := make([]map[string]corev1.ResourceList, len(found))
	answered := len(found) == 0
	for i, f := range found {
		if f.Reason == "" {
			answered = true
		} else if r.Unmeasured == "" {
			r.Unmeasured = f.Message
		}
		pods[i] = map[string]corev1.ResourceList{}
		for _, o := range f.Objects {
			pods[i][k8s.Text(o, "metadata", "namespace")+"/"+k8s.Text(o, "metadata", "name")] = sumContainers(o)
		}
	}
	if answered {
		r.SetUse(pods)
	}
	return nil
}

// sumContainers returns the resource use of all containers of a pod. It ignores values that are not quantities.
func sumContainers(podMetrics map[string]any) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, c := range k8s.Items(podMetrics, "containers") {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			used, err := resource.ParseQuantity(k8s.Text(c, "usage", string(name)))
			if err == nil {
				used.Add(out[name])
				out[name] = used
			}
		}
	}
	return out
}
