package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/selector"
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
		ns := kobj.Text(p, "metadata", "namespace")
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
		digest := imageref.Split(want.Image).Digest
		switch {
		case digest == "":
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
	for _, c := range kobj.Containers(kobj.PodSpec(o)) {
		out[kobj.Text(c, "name")] = kobj.Text(c, "image")
	}
	return out
}

// digests returns the digests that the workload's pods report, sorted, by
// container.
func (im *images) digests(ref v1alpha1.ObjectReference, o map[string]any) map[string][]string {
	out := map[string][]string{}
	for _, p := range im.pods[ref.Namespace] {
		if !selects(o, p) {
			continue
		}
		for _, s := range slices.Concat(kobj.Items(p, "status", "initContainerStatuses"), kobj.Items(p, "status", "containerStatuses")) {
			// An imageID such as "docker-pullable://quay.io/x/y@sha256:…" names a
			// manifest. A digest alone is that of the image's configuration, which
			// the lock does not know.
			name, digest := kobj.Text(s, "name"), imageref.Split(kobj.Text(s, "imageID")).Digest
			if imageref.IsDigest(digest) && !slices.Contains(out[name], digest) {
				out[name] = append(out[name], digest)
			}
		}
	}
	for name, some := range out {
		slices.Sort(some)
		out[name] = some[:min(len(some), maxDigests)]
	}
	return out
}

// selects reports whether a pod belongs to the workload: by its selector, or
// because it is the pod itself. Pods that are being deleted belong to nobody.
func selects(o, pod map[string]any) bool {
	if kobj.Text(pod, "metadata", "deletionTimestamp") != "" {
		return false
	}
	if kobj.Text(o, "kind") == "Pod" {
		return kobj.Text(o, "metadata", "name") == kobj.Text(pod, "metadata", "name")
	}
	own, ok := selector.OfPods(o)
	return ok && own.Matches(labels.Set(kobj.TextMap(pod, "metadata", "labels")))
}
