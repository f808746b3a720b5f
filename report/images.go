package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/report/v1alpha1"
)

const maxDigests = 8 // of one container

// images gathers what workloads run.
type images struct {
	pods    map[string][]map[string]any // by namespace
	list    []v1alpha1.RunningImage
	differ  []string // what runs another digest
	waiting int      // containers of which nothing can be said yet
	same    int      // containers that run the lock's digest
}

func newImages(pods []map[string]any) *images {
	out := &images{pods: map[string][]map[string]any{}}
	for _, p := range pods {
		ns := text(p, "metadata", "namespace")
		out.pods[ns] = append(out.pods[ns], p)
	}
	return out
}

// add looks at the containers of one workload. Digests are held against the
// lock only once the workload is Current: until then old pods still run.
func (im *images) add(ref v1alpha1.ObjectReference, o map[string]any, h v1alpha1.HealthStatus) {
	if len(ref.Images) == 0 {
		return
	}
	have := templateImages(o)
	running := im.digests(ref, o)
	for _, want := range ref.Images {
		r := v1alpha1.RunningImage{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Container: want.Container, Want: want.Image}
		if image := have[want.Container]; image != want.Image {
			r.Have = short(image)
		}
		r.Digests = running[want.Container]
		im.list = append(im.list, r)
		_, digest, pinned := strings.Cut(want.Image, "@")
		switch {
		case !pinned:
		case h != v1alpha1.Current || len(r.Digests) == 0:
			im.waiting++
		case len(r.Digests) == 1 && r.Digests[0] == digest:
			im.same++
		default:
			im.differ = append(im.differ, fmt.Sprintf("%s runs %s, the lock says %s",
				short(fmt.Sprintf("container %q of %s %s/%s", want.Container, ref.Kind, ref.Namespace, ref.Name)),
				strings.Join(r.Digests, " and "), short(digest)))
		}
	}
}

// condition returns ImagesMatch, false where the lock names no digest.
func (im *images) condition() (metav1.Condition, bool) {
	c := metav1.Condition{Type: v1alpha1.ImagesMatch}
	switch {
	case len(im.differ) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Different", im.differ[0]
		if more := len(im.differ) - 1; more > 0 {
			c.Message += fmt.Sprintf("; and %d more", more)
		}
	case im.waiting > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotReported", fmt.Sprintf("%d of %d containers cannot be compared yet", im.waiting, im.waiting+im.same)
	case im.same > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Same", "pods run the digests of the lock"
	default:
		return c, false
	}
	return c, true
}

// templateImages returns the images in the pod template of a workload, by
// container.
func templateImages(o map[string]any) map[string]string {
	out := map[string]string{}
	spec := podSpec(o)
	for _, c := range slices.Concat(items(spec, "initContainers"), items(spec, "containers")) {
		out[text(c, "name")] = text(c, "image")
	}
	return out
}

func podSpec(o map[string]any) map[string]any {
	switch text(o, "kind") {
	case "Pod":
		return object(o, "spec")
	case "CronJob":
		return object(o, "spec", "jobTemplate", "spec", "template", "spec")
	default:
		return object(o, "spec", "template", "spec")
	}
}

// digests returns the digests that the workload's pods report, sorted, by
// container.
func (im *images) digests(ref v1alpha1.ObjectReference, o map[string]any) map[string][]string {
	seen := map[string]map[string]bool{}
	for _, p := range im.pods[ref.Namespace] {
		if !selects(o, p) {
			continue
		}
		for _, s := range slices.Concat(items(p, "status", "initContainerStatuses"), items(p, "status", "containerStatuses")) {
			name, digest := text(s, "name"), digestOf(text(s, "imageID"))
			if digest == "" {
				continue
			}
			if seen[name] == nil {
				seen[name] = map[string]bool{}
			}
			seen[name][digest] = true
		}
	}
	out := map[string][]string{}
	for name, set := range seen {
		sorted := slices.Sorted(maps.Keys(set))
		out[name] = sorted[:min(len(sorted), maxDigests)]
	}
	return out
}

// digestOf returns the digest of an imageID that names a manifest:
// "docker-pullable://quay.io/x/y@sha256:…". A digest alone is that of the
// image's configuration, which the lock does not know.
func digestOf(imageID string) string {
	_, digest, ok := strings.Cut(imageID, "@")
	if !ok || !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 || strings.Trim(digest[7:], "0123456789abcdef") != "" {
		return ""
	}
	return digest
}

// selects reports whether a pod belongs to the workload: by its selector, or
// because it is the pod itself. Pods that are being deleted belong to nobody.
func selects(o, pod map[string]any) bool {
	if text(pod, "metadata", "deletionTimestamp") != "" {
		return false
	}
	if text(o, "kind") == "Pod" {
		return text(o, "metadata", "name") == text(pod, "metadata", "name")
	}
	selector := object(o, "spec", "selector")
	labels := object(pod, "metadata", "labels")
	match, expressions := object(selector, "matchLabels"), items(selector, "matchExpressions")
	if len(match)+len(expressions) == 0 {
		return false
	}
	for k, v := range match {
		want, isText := v.(string)
		if have, ok := labels[k].(string); !ok || !isText || have != want {
			return false
		}
	}
	return !slices.ContainsFunc(expressions, func(e map[string]any) bool { return !expression(e, labels) })
}

// expression reports whether labels meet one of a selector's matchExpressions.
func expression(e, labels map[string]any) bool {
	value, has := labels[text(e, "key")]
	values, _ := e["values"].([]any)
	among := has && slices.ContainsFunc(values, func(v any) bool { s, ok := v.(string); return ok && s == value })
	switch text(e, "operator") {
	case "In":
		return among
	case "NotIn":
		return !among
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	default:
		return false
	}
}
