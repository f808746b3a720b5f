package reporter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// podReader lists the pods of workloads. It lists them only when a workload has changed, because every start,
// stop or replacement of a pod changes the status of its workload.
type podReader struct {
	list func(ctx context.Context, namespace string, selector labels.Selector) ([]map[string]any, error)
}

// podCache contains the pods of an Installation, as they were listed most recently.
type podCache struct {
	fingerprint string // fingerprint of the workloads at that time
	pods        []map[string]any
}

// read returns the pods of those workloads in got that have expected images. If none of these workloads has
// changed, it returns cached. If listing pods is forbidden, it returns no pods and no error.
func (p podReader) read(ctx context.Context, cached podCache, got []v1alpha1.Observed) (podCache, error) {
	var workloads []v1alpha1.Observed
	for _, o := range got {
		if len(o.Ref.Images) > 0 && o.Object != nil {
			workloads = append(workloads, o)
		}
	}
	of, err := fingerprint(workloads)
	if err != nil || of == cached.fingerprint {
		return cached, err
	}
	var all []map[string]any
	for _, w := range workloads {
		own, ok := k8s.PodSelectorOf(w.Object)
		if !ok {
			continue
		}
		pods, err := p.list(ctx, w.Ref.Namespace, own)
		if apierrors.IsForbidden(err) {
			return podCache{fingerprint: of}, nil
		}
		if err != nil {
			return cached, fmt.Errorf("listing the pods of %s %s/%s: %w", w.Ref.Kind, w.Ref.Namespace, w.Ref.Name, err)
		}
		all = append(all, pods...)
	}
	return podCache{fingerprint: of, pods: all}, nil
}

// fingerprint returns a string that changes when the spec or status of a workload changes.
func fingerprint(workloads []v1alpha1.Observed) (string, error) {
	var b strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&b, "%s %s/%s ", w.Ref.Kind, w.Ref.Namespace, w.Ref.Name)
		if err := json.NewEncoder(&b).Encode([]any{w.Object["spec"], w.Object["status"]}); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// maxPods is the maximum number of pods to list for one workload. More pods are not needed: the pods of a large
// DaemonSet all run the same images.
const maxPods = 500

// listPods returns a function that lists pods from the API server.
func listPods(reader client.Reader) func(context.Context, string, labels.Selector) ([]map[string]any, error) {
	return func(ctx context.Context, namespace string, selector labels.Selector) ([]map[string]any, error) {
		var list corev1.PodList
		err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
		if err != nil {
			return nil, err
		}
		out := make([]map[string]any, 0, len(list.Items))
		for i := range list.Items {
			out = append(out, stripPod(&list.Items[i]))
		}
		return out, nil
	}
}

// stripPod returns a pod with only the metadata, phase and container statuses that are needed, in
// the format of the Kubernetes API.
func stripPod(p *corev1.Pod) map[string]any {
	text := map[string]any{}
	for k, v := range p.Labels {
		text[k] = v
	}
	meta := map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": text}
	if p.DeletionTimestamp != nil {
		meta["deletionTimestamp"] = p.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z")
	}
	status := map[string]any{"phase": string(p.Status.Phase)}
	for name, list := range map[string][]corev1.ContainerStatus{
		"initContainerStatuses": p.Status.InitContainerStatuses, "containerStatuses": p.Status.ContainerStatuses,
	} {
		var containers []any
		for _, c := range list {
			containers = append(containers, map[string]any{"name": c.Name, "image": c.Image, "imageID": c.ImageID})
		}
		if containers != nil {
			status[name] = containers
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status}
}
