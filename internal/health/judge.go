package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// Maximum lengths of lists in a status. Further items are only counted.
const (
	maxObjects = 100
	maxImages  = 100
)

// Judge returns the status of an installation. spec and generation are its desired state. got holds the
// observations of the expected objects, and pods holds the pods in the namespaces of these objects, both in any
// order.
//
// prev is the previous status. If nothing has changed, Judge keeps the transition times and renews ObservedAt
// only after the heartbeat, so that the status does not change with every call. Judge does not modify its
// arguments.
func Judge(spec v1alpha1.InstallationSpec, generation int64, prev v1alpha1.InstallationStatus, got []v1alpha1.Observed, pods []map[string]any, now time.Time) v1alpha1.InstallationStatus {
	found := indexObserved(got)
	out := v1alpha1.InstallationStatus{ObservedGeneration: generation, Pin: spec.Pin, Version: spec.Version}
	var bad []v1alpha1.ObjectHealth
	states := map[v1alpha1.HealthStatus]int32{}
	im := newImageComparison(pods)
	for _, ref := range spec.Objects {
		o, read := found[keyOf(ref)]
		h := judgeObject(ref, o, read, now)
		states[h.Status]++
		if h.Status != v1alpha1.Current {
			bad = append(bad, newObjectHealth(ref, h))
		}
		im.add(ref, o.Object, h.Status)
	}
	sortWorstFirst(bad)
	out.Summary = countObjects(states)
	out.Conditions = newConditions(out.Summary, bad)
	if c, ok := upgradeableCondition(spec, found); ok {
		out.Conditions = append(out.Conditions, c)
	}
	if c, ok := im.condition(); ok {
		out.Conditions = append(out.Conditions, c)
	}
	setTransitionTimes(out.Conditions, prev.Conditions, generation, now)
	out.Objects, out.MoreObjects = truncateList(bad, maxObjects)
	out.Images, out.MoreImages = truncateList(im.list, maxImages)
	out.StoredVersions = listStoredVersions(spec, found)
	out.BundleDigest, out.ReadySince = spec.BundleDigest, readySince(spec, prev, out, now)
	out.PreviousVersion, out.ReplacedAt = prev.PreviousVersion, prev.ReplacedAt
	if prev.Version != "" && prev.Version != spec.Version {
		out.PreviousVersion, out.ReplacedAt = prev.Version, truncateToSecond(now)
	}
	out.ObservedAt = observedAt(prev, out, now)
	return out
}

// readySince returns the time since which the bundle has been Ready without interruption, or nil if it is not
// Ready. The transition time of the condition is not enough, because Ready may stay True while the bundle is
// replaced.
func readySince(spec v1alpha1.InstallationSpec, prev, status v1alpha1.InstallationStatus, now time.Time) *metav1.Time {
	ready := func(s v1alpha1.InstallationStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.Ready)
	}
	same := prev.BundleDigest == spec.BundleDigest && (spec.BundleDigest != "" || prev.Pin == spec.Pin)
	switch {
	case !ready(status):
		return nil
	case same && ready(prev) && prev.ReadySince != nil:
		return prev.ReadySince
	}
	return truncateToSecond(now)
}

// heartbeat is the maximum age of ObservedAt in an unchanged status. It is shorter than the resync
// interval of the reporter.
const heartbeat = 30 * time.Minute

// observedAt returns the time of observation for a status. If the status has not changed and the time in prev
// is recent, it returns the time in prev. Otherwise it returns now.
func observedAt(prev, status v1alpha1.InstallationStatus, now time.Time) *metav1.Time {
	status.ObservedAt = prev.ObservedAt
	if at := prev.ObservedAt; at != nil && now.Sub(at.Time) < heartbeat && !now.Before(at.Time) && equality.Semantic.DeepEqual(prev, status) {
		return at
	}
	return truncateToSecond(now)
}

// truncateToSecond returns t in UTC and in whole seconds, the precision of a status.
func truncateToSecond(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &out
}

func newObjectHealth(ref v1alpha1.ObjectReference, h Health) v1alpha1.ObjectHealth {
	return v1alpha1.ObjectHealth{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Health: h.Status, Message: h.Message,
	}
}

func sortWorstFirst(list []v1alpha1.ObjectHealth) {
	slices.SortStableFunc(list, func(a, b v1alpha1.ObjectHealth) int {
		return cmp.Or(cmp.Compare(severityRank(a.Health), severityRank(b.Health)), compareNames(a, b))
	})
}

// truncateList returns the first limit items of a list, and the number of omitted items.
func truncateList[T any](list []T, limit int) ([]T, int32) {
	if len(list) <= limit {
		return list, 0
	}
	return list[:limit], int32(min(len(list)-limit, 1<<30))
}

func keyOf(ref v1alpha1.ObjectReference) k8s.Key {
	return k8s.Key{Group: k8s.Group(ref.APIVersion), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// indexObserved returns the observations by object. Of several observations of one object, it keeps the worst.
func indexObserved(got []v1alpha1.Observed) map[k8s.Key]v1alpha1.Observed {
	out := make(map[k8s.Key]v1alpha1.Observed, len(got))
	for _, o := range got {
		k := keyOf(o.Ref)
		if have, ok := out[k]; !ok || compareObserved(o, have) < 0 {
			out[k] = o
		}
	}
	return out
}

// compareObserved orders observations: errors first, then missing objects, then others.
func compareObserved(a, b v1alpha1.Observed) int {
	there := func(o v1alpha1.Observed) int {
		switch {
		case o.Reason != "":
			return 0
		case o.Object == nil:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(there(a), there(b)), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message),
		strings.Compare(fmt.Sprint(a.Object), fmt.Sprint(b.Object)))
}

// judgeObject returns the health of the expected object ref: whether the object exists, has the expected
// version and images, and is healthy. read is false if there is no observation of the object.
func judgeObject(ref v1alpha1.ObjectReference, o v1alpha1.Observed, read bool, now time.Time) Health {
	switch {
	case !read:
		return Health{v1alpha1.Unknown, "no observation"}
	case o.Reason == v1alpha1.ReasonForbidden:
		return Health{v1alpha1.Forbidden, cmp.Or(clipMessage(o.Message), "not permitted to read it")}
	case o.Reason == v1alpha1.ReasonNoKind:
		return Health{v1alpha1.NotFound, cmp.Or(clipMessage(o.Message), fmt.Sprintf("the API server does not serve %s of %s", ref.Kind, ref.APIVersion))}
	case o.Reason != "":
		return Health{v1alpha1.Unknown, cmp.Or(clipMessage(o.Message), "reading it failed")}
	}
	h := Compute(o.Object, now)
	switch {
	case o.Object == nil:
		return Health{h.Status, cmp.Or(clipMessage(o.Message), h.Message)}
	case h.Status == v1alpha1.Terminating:
		return h
	}
	if have := k8s.Text(o.Object, "metadata", "labels", v1alpha1.LabelVersion); ref.Version != "" && have != ref.Version {
		return Health{v1alpha1.InProgress, clipMessage("applied version " + cmp.Or(have, "none") + ", expected " + ref.Version)}
	}
	if wrong := describeWrongImages(ref, o.Object); wrong != "" {
		return Health{v1alpha1.Failed, clipMessage(wrong)}
	}
	return h
}

// describeWrongImages describes the containers whose image differs from the lock. It returns "" if
// there are none.
func describeWrongImages(ref v1alpha1.ObjectReference, o map[string]any) string {
	if len(ref.Images) == 0 {
		return ""
	}
	have := templateImages(o)
	var wrong []string
	for _, want := range ref.Images {
		image, ok := have[want.Container]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("container %q is missing", want.Container))
		case image != want.Image:
			wrong = append(wrong, fmt.Sprintf("container %q runs image %q, but the lock contains %q", want.Container, image, want.Image))
		}
	}
	return strings.Join(wrong, "; ")
}

func countObjects(n map[v1alpha1.HealthStatus]int32) v1alpha1.ObjectCounts {
	c := v1alpha1.ObjectCounts{
		Current: n[v1alpha1.Current], InProgress: n[v1alpha1.InProgress], NotFound: n[v1alpha1.NotFound], Failed: n[v1alpha1.Failed],
		Terminating: n[v1alpha1.Terminating], Forbidden: n[v1alpha1.Forbidden], Unknown: n[v1alpha1.Unknown],
	}
	for _, some := range n {
		c.Total += some
	}
	return c
}

// severityRank returns the sort rank of a health status. The worst status has rank 0.
func severityRank(h v1alpha1.HealthStatus) int {
	return slices.Index([]v1alpha1.HealthStatus{
		v1alpha1.Failed, v1alpha1.Terminating, v1alpha1.NotFound, v1alpha1.InProgress, v1alpha1.Forbidden, v1alpha1.Unknown, v1alpha1.Current,
	}, h)
}

func compareNames(a, b v1alpha1.ObjectHealth) int {
	return cmp.Or(strings.Compare(k8s.Group(a.APIVersion), k8s.Group(b.APIVersion)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// setTransitionTimes sets the generation and the transition times of conditions. A condition with the same
// status as in prev keeps its transition time.
func setTransitionTimes(conditions, prev []metav1.Condition, generation int64, now time.Time) {
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration = generation
		c.LastTransitionTime = *truncateToSecond(now)
		for _, p := range prev {
			if p.Type == c.Type && p.Status == c.Status && !p.LastTransitionTime.IsZero() {
				c.LastTransitionTime = p.LastTransitionTime
			}
		}
	}
}

// groupKind returns "group/Kind", or "/Kind" for the core group.
func groupKind(o map[string]any) string {
	return k8s.Group(k8s.Text(o, "apiVersion")) + "/" + k8s.Text(o, "kind")
}

const maxMessage = 400 // maximum bytes of a message

// clipMessage returns s as one line, cut to maxMessage bytes.
func clipMessage(s string) string { return sanitize.TruncateLine(s, maxMessage) }
