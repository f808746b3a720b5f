package health

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
)

const maxDigests = 8 // maximum number of digests of a container in a status

// imageComparison compares the images that workloads run with the images in the lock.
type imageComparison struct {
	pods      map[string][]map[string]any // namespace → pods in it
	list      []v1alpha1.RunningImage
	different []string // messages about containers that run another digest
	waiting   int      // number of containers that cannot be compared yet
	same      int      // number of containers that run the digest in the lock
}

func newImageComparison(pods []map[string]any) *imageComparison {
	out := &imageComparison{pods: map[string][]map[string]any{}}
	for _, p := range pods {
		ns := k8s.Text(p, "metadata", "namespace")
		out.pods[ns] = append(out.pods[ns], p)
	}
	return out
}

// add compares the containers of a workload. It compares digests only if the workload is Current,
// because otherwise pods of the old version may still run.
func (im *imageComparison) add(ref v1alpha1.ObjectReference, o map[string]any, h v1alpha1.HealthStatus) {
	if len(ref.Images) == 0 {
		return
	}
	have := templateImages(o)
	running := im.digests(ref, o)
	for _, want := range ref.Images {
		r := v1alpha1.RunningImage{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Container: want.Container, Want: want.Image}
		if image := have[want.Container]; image != want.Image {
			r.Have = clipMessage(image)
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
			im.different = append(im.different, fmt.Sprintf("%s runs %s, but the lock contains %s",
				clipMessage(fmt.Sprintf("container %q of %s %s/%s", want.Container, ref.Kind, ref.Namespace, ref.Name)),
				strings.Join(r.Digests, " and "), clipMessage(digest)))
		}
	}
}

// condition returns the ImagesMatch condition. It returns false if the lock has no digests.
func (im *imageComparison) condition() (metav1.Condition, bool) {
	c := metav1.Condition{Type: v1alpha1.ImagesMatch}
	switch {
	case len(im.different) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Different", im.different[0]
		if more := len(im.different) - 1; more > 0 {
			c.Message += fmt.Sprintf("; and %d more", more)
		}
	case im.waiting > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotReported", fmt.Sprintf("%d of %d containers cannot be compared yet", im.waiting, im.waiting+im.same)
	case im.same > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Same", "pods run the locked digests"
	default:
		return c, false
	}
	return c, true
}

// templateImages returns the images in the pod template of a workload, by container.
func templateImages(o map[string]any) map[string]string {
	out := map[string]string{}
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		out[k8s.Text(c, "name")] = k8s.Text(c, "image")
	}
	return out
}

// digests returns the digests that the pods of a workload report, by container. The digests of a container are sorted.
func (im *imageComparison) digests(ref v1alpha1.ObjectReference, o map[string]any) map[string][]string {
	out := map[string][]string{}
	for _, p := range im.pods[ref.Namespace] {
		if !ownsPod(o, p) {
			continue
		}
		for _, s := range slices.Concat(k8s.Items(p, "status", "initContainerStatuses"), k8s.Items(p, "status", "containerStatuses")) {
			// An imageID such as "docker-pullable://quay.io/x/y@sha256:…" contains the digest of a manifest.
			// An imageID that is only a digest is the digest of the image configuration, which is not in the
			// lock.
			name, digest := k8s.Text(s, "name"), imageref.Split(k8s.Text(s, "imageID")).Digest
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

// ownsPod reports whether a pod belongs to workload o: o selects the pod, or o is the pod itself. It returns
// false for a pod that is being deleted.
func ownsPod(o, pod map[string]any) bool {
	if k8s.Text(pod, "metadata", "deletionTimestamp") != "" {
		return false
	}
	if k8s.Text(o, "kind") == "Pod" {
		return k8s.Text(o, "metadata", "name") == k8s.Text(pod, "metadata", "name")
	}
	own, ok := k8s.PodSelectorOf(o)
	return ok && own.Matches(labels.Set(k8s.TextMap(pod, "metadata", "labels")))
}
