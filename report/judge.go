package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// How much of a status is listed; the rest is counted.
const (
	maxObjects = 100
	maxImages  = 100
)

// Judge returns the status of an installation: spec and generation are what is
// expected, got is what was read of the expected objects in any order, pods
// those of the namespaces that they lie in, in any order. prev is the status
// that the installation has; times are kept where nothing changed, so that the
// same observation gives the same status, but for the one that says when the
// reporter looked, which is renewed after a while. No argument is
// modified.
func Judge(spec v1alpha1.InstallationSpec, generation int64, prev v1alpha1.InstallationStatus, got []v1alpha1.Observed, pods []map[string]any, now time.Time) v1alpha1.InstallationStatus {
	found := index(got)
	out := v1alpha1.InstallationStatus{ObservedGeneration: generation, Pin: spec.Pin, Version: spec.Version}
	var bad []v1alpha1.ObjectHealth
	states := map[v1alpha1.HealthStatus]int32{}
	im := newImages(pods)
	for _, ref := range spec.Objects {
		o, read := found[keyOf(ref)]
		h := judgeObject(ref, o, read, now)
		states[h.Status]++
		if h.Status != v1alpha1.Current {
			bad = append(bad, listed(ref, h))
		}
		im.add(ref, o.Object, h.Status)
	}
	worstFirst(bad)
	out.Summary = counted(states)
	out.Conditions = conditions(out.Summary, bad)
	if c, ok := upgradeable(spec, found); ok {
		out.Conditions = append(out.Conditions, c)
	}
	if c, ok := im.condition(); ok {
		out.Conditions = append(out.Conditions, c)
	}
	stamp(out.Conditions, prev.Conditions, generation, now)
	out.Objects, out.MoreObjects = atMost(bad, maxObjects)
	out.Images, out.MoreImages = atMost(im.list, maxImages)
	out.StoredVersions = stored(spec, found)
	out.BundleDigest, out.ReadySince = spec.BundleDigest, readySince(spec, prev, out, now)
	out.ObservedAt = observedAt(prev, out, now)
	return out
}

// readySince returns since when the bundle is Ready without a break, nil where it
// is not. It does not ask when the condition turned: that of one bundle may have
// stayed True while the next one took its place.
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
	return second(now)
}

// heartbeat is how old the time in a status grows where nothing else in it
// changes: less than the time after which the reporter judges everything again.
const heartbeat = 30 * time.Minute

// observedAt returns when a status was found, as that of before where it says the
// same and is not old.
func observedAt(prev, status v1alpha1.InstallationStatus, now time.Time) *metav1.Time {
	status.ObservedAt = prev.ObservedAt
	if at := prev.ObservedAt; at != nil && now.Sub(at.Time) < heartbeat && !now.Before(at.Time) && equality.Semantic.DeepEqual(prev, status) {
		return at
	}
	return second(now)
}

// second returns a time as a status holds it.
func second(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &out
}

func listed(ref v1alpha1.ObjectReference, h Health) v1alpha1.ObjectHealth {
	return v1alpha1.ObjectHealth{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Health: h.Status, Message: h.Message,
	}
}

func worstFirst(list []v1alpha1.ObjectHealth) {
	slices.SortStableFunc(list, func(a, b v1alpha1.ObjectHealth) int {
		return cmp.Or(cmp.Compare(rank(a.Health), rank(b.Health)), compareNames(a, b))
	})
}

// atMost returns the first limit items and how many more there are.
func atMost[T any](list []T, limit int) ([]T, int32) {
	if len(list) <= limit {
		return list, 0
	}
	return list[:limit], int32(min(len(list)-limit, 1<<30))
}

// key is what an object is known by, whatever the version it was read in.
type key struct{ group, kind, namespace, name string }

func keyOf(ref v1alpha1.ObjectReference) key {
	return key{groupOf(ref.APIVersion), ref.Kind, ref.Namespace, ref.Name}
}

// index returns observations by what they are of. Of several of one object the
// worst counts, so that their order says nothing.
func index(got []v1alpha1.Observed) map[key]v1alpha1.Observed {
	out := make(map[key]v1alpha1.Observed, len(got))
	for _, o := range got {
		k := keyOf(o.Ref)
		if have, ok := out[k]; !ok || compareObserved(o, have) < 0 {
			out[k] = o
		}
	}
	return out
}

// compareObserved puts what could not be read first, then what is not there.
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

// judgeObject holds what was read against what is expected: first whether it
// is there, then whether it is of the version, then what it runs, then how it
// does.
func judgeObject(ref v1alpha1.ObjectReference, o v1alpha1.Observed, read bool, now time.Time) Health {
	switch {
	case !read:
		return Health{v1alpha1.Unknown, "it was not looked at"}
	case o.Reason == v1alpha1.ReasonForbidden:
		return Health{v1alpha1.Forbidden, cmp.Or(short(o.Message), "not permitted to read it")}
	case o.Reason == v1alpha1.ReasonNoKind:
		return Health{v1alpha1.NotFound, cmp.Or(short(o.Message), fmt.Sprintf("the API server does not serve %s of %s", ref.Kind, ref.APIVersion))}
	case o.Reason != "":
		return Health{v1alpha1.Unknown, cmp.Or(short(o.Message), "it could not be read")}
	}
	h := Compute(o.Object, now)
	switch {
	case o.Object == nil:
		return Health{h.Status, cmp.Or(short(o.Message), h.Message)}
	case h.Status == v1alpha1.Terminating:
		return h
	}
	if have := kobj.Text(o.Object, "metadata", "labels", v1alpha1.LabelVersion); ref.Version != "" && have != ref.Version {
		return Health{v1alpha1.InProgress, short(cmp.Or(have, "no version") + " is applied, " + ref.Version + " expected")}
	}
	if wrong := wrongImages(ref, o.Object); wrong != "" {
		return Health{v1alpha1.Failed, short(wrong)}
	}
	return h
}

// wrongImages says which containers do not have the image of the lock.
func wrongImages(ref v1alpha1.ObjectReference, o map[string]any) string {
	if len(ref.Images) == 0 {
		return ""
	}
	have := templateImages(o)
	var wrong []string
	for _, want := range ref.Images {
		image, ok := have[want.Container]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("there is no container %q", want.Container))
		case image != want.Image:
			wrong = append(wrong, fmt.Sprintf("container %q runs image %q, the lock says %q", want.Container, image, want.Image))
		}
	}
	return strings.Join(wrong, "; ")
}

func counted(n map[v1alpha1.HealthStatus]int32) v1alpha1.ObjectCounts {
	c := v1alpha1.ObjectCounts{
		Current: n[v1alpha1.Current], InProgress: n[v1alpha1.InProgress], NotFound: n[v1alpha1.NotFound], Failed: n[v1alpha1.Failed],
		Terminating: n[v1alpha1.Terminating], Forbidden: n[v1alpha1.Forbidden], Unknown: n[v1alpha1.Unknown],
	}
	for _, some := range n {
		c.Total += some
	}
	return c
}

// rank orders states, the worst first.
func rank(h v1alpha1.HealthStatus) int {
	return slices.Index([]v1alpha1.HealthStatus{
		v1alpha1.Failed, v1alpha1.Terminating, v1alpha1.NotFound, v1alpha1.InProgress, v1alpha1.Forbidden, v1alpha1.Unknown, v1alpha1.Current,
	}, h)
}

func compareNames(a, b v1alpha1.ObjectHealth) int {
	return cmp.Or(strings.Compare(groupOf(a.APIVersion), groupOf(b.APIVersion)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// stamp sets generation and times: prev's where the status of a condition is
// the same.
func stamp(conditions, prev []metav1.Condition, generation int64, now time.Time) {
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration = generation
		c.LastTransitionTime = *second(now)
		for _, p := range prev {
			if p.Type == c.Type && p.Status == c.Status && !p.LastTransitionTime.IsZero() {
				c.LastTransitionTime = p.LastTransitionTime
			}
		}
	}
}
