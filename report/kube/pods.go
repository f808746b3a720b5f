package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quayside/quayside/internal/selector"
	"github.com/quayside/quayside/report/v1alpha1"
)

// podReader lists the pods of workloads, and only when a workload has turned:
// a pod that is replaced, started or stopped turns its workload's status.
type podReader struct {
	list func(ctx context.Context, namespace string, selector labels.Selector) ([]map[string]any, error)
}

// podsSeen is what was listed last for one Installation.
type podsSeen struct {
	of   string // what the workloads were like then
	pods []map[string]any
}

// read returns the pods of the workloads among got whose images are judged.
// Not being permitted to list pods gives none: nothing can be said of what
// they run, and everything else is judged.
func (p podReader) read(ctx context.Context, seen podsSeen, got []v1alpha1.Observed) (podsSeen, error) {
	var workloads []v1alpha1.Observed
	for _, o := range got {
		if len(o.Ref.Images) > 0 && o.Object != nil {
			workloads = append(workloads, o)
		}
	}
	of, err := fingerprint(workloads)
	if err != nil || of == seen.of {
		return seen, err
	}
	var all []map[string]any
	for _, w := range workloads {
		own, ok := selector.OfPods(w.Object)
		if !ok {
			continue
		}
		pods, err := p.list(ctx, w.Ref.Namespace, own)
		if apierrors.IsForbidden(err) {
			return podsSeen{of: of}, nil
		}
		if err != nil {
			return seen, fmt.Errorf("listing the pods of %s %s/%s: %w", w.Ref.Kind, w.Ref.Namespace, w.Ref.Name, err)
		}
		all = append(all, pods...)
	}
	return podsSeen{of: of, pods: all}, nil
}

// fingerprint returns a text that turns with the workloads.
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

// maxPods bounds the pods that are read of one workload: those of a DaemonSet
// on a large cluster all run the same.
const maxPods = 500

// listPods returns a list function that asks the API server.
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

// stripPod returns of a pod whose it is and what its containers run, as the
// API server shows it.
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
