package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
)

// OperatorObservation is the observation of one operator: of a pin of the lock, or of an
// Installation without a pin.
type OperatorObservation struct {
	Namespace, Package string
	Spec               *v1alpha1.InstallationSpec  // of the Installation in the cluster; nil if there is none
	Status             v1alpha1.InstallationStatus // judged by the lock
	Applied            []string                    // as returned by [ObservedVersions]
}

// State is the overall state of an operator.
type State string

// The states of an operator, the worst first.
const (
	StateFailed      State = "Failed"      // needs manual action
	StateMissing     State = "Missing"     // pinned by the lock, absent from the cluster
	StateOutOfDate   State = "OutOfSync"   // the cluster has another version or another pin
	StateUnpinned    State = "Unpinned"    // in the cluster, but not in the lock
	StateProgressing State = "Progressing" // being rolled out
	StateUnknown     State = "Unknown"     // some objects could not be read
	StateReady       State = "Ready"       // up to date with the lock and healthy
)

// States returns every state, the worst first.
func States() []State {
	return []State{StateFailed, StateMissing, StateOutOfDate, StateUnpinned, StateProgressing, StateUnknown, StateReady}
}

// Summary compares the operators of a lock with those of a cluster. An observed file
// keeps it for later: quayside status saves it, and resolve --observed reads it.
type Summary struct {
	At        time.Time        // time of the observation, in whole seconds, UTC
	Cluster   string           // name of the cluster in quayside.yaml; may be empty
	Operators []OperatorHealth // by namespace, then package
}

// OperatorHealth is the result for one operator.
type OperatorHealth struct {
	Namespace, Package string
	Version            string       // pinned version; empty if unpinned
	Pin                model.Digest // checksum of the pin; empty if unpinned
	Applied            []string     // versions in the cluster, sorted
	State              State
	Message            string                 // reason for the state; empty if Ready
	Upgradeable        metav1.ConditionStatus // as reported by the operator; may be empty
	UpgradeMessage     string
	StoredVersions     []v1alpha1.StoredVersions   // of CRDs with more than one version, by name
	Status             v1alpha1.InstallationStatus // as judged; not part of the observed file
	Pos                diag.Pos                    // in the observed file
}

// Operator returns the health of an operator.
func (s *Summary) Operator(namespace, pkg string) (OperatorHealth, bool) {
	for _, o := range s.Operators {
		if o.Namespace == namespace && o.Package == pkg {
			return o, true
		}
	}
	return OperatorHealth{}, false
}

// IsHealthy reports whether every operator is Ready.
func (s Summary) IsHealthy() bool {
	return !slices.ContainsFunc(s.Operators, func(o OperatorHealth) bool { return o.State != StateReady })
}

// Summarize compares every pin of the lock with its observation, and adds the
// operators that were observed without a pin. Arguments are not modified.
func Summarize(lock *lockfile.File, got []OperatorObservation, now time.Time) Summary {
	out := Summary{At: now.UTC().Truncate(time.Second)}
	found := map[[2]string]OperatorObservation{}
	for _, o := range got {
		found[[2]string{o.Namespace, o.Package}] = o
	}
	for _, pin := range lock.Pins {
		name := [2]string{pin.Namespace, pin.Package}
		o := found[name]
		delete(found, name)
		o.Namespace, o.Package = pin.Namespace, pin.Package
		out.Operators = append(out.Operators, newPinHealth(pin, o))
	}
	for _, o := range found {
		if o.Spec != nil || len(o.Applied) > 0 {
			out.Operators = append(out.Operators, newUnpinnedHealth(o))
		}
	}
	slices.SortFunc(out.Operators, byName)
	return out
}

// byName orders operators by namespace, then package.
func byName(a, b OperatorHealth) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

func newUnpinnedHealth(o OperatorObservation) OperatorHealth {
	s := OperatorHealth{Namespace: o.Namespace, Package: o.Package, Applied: appliedVersions(o), State: StateUnpinned, Status: o.Status}
	s.Message = "the cluster has " + strings.Join(s.Applied, " and ") + ", not pinned in the lock"
	return s
}

// appliedVersions returns the versions in the cluster: those of the objects, or
// that of the Installation if no object was read.
func appliedVersions(o OperatorObservation) []string {
	if len(o.Applied) == 0 && o.Spec != nil {
		return []string{o.Spec.Version}
	}
	return slices.Sorted(slices.Values(o.Applied))
}

func newPinHealth(pin lockfile.Pin, o OperatorObservation) OperatorHealth {
	s := OperatorHealth{
		Namespace: pin.Namespace, Package: pin.Package, Version: pin.Version, Pin: pin.Checksum(),
		Applied: appliedVersions(o), StoredVersions: o.Status.StoredVersions, Status: o.Status,
	}
	ready := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Ready)
	s.State, s.Message = stateOf(ready, o.Status.Summary)
	if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Upgradeable); c != nil {
		s.Upgradeable, s.UpgradeMessage = c.Status, c.Message
	}
	if step := describeVersionDifference(s, o.Spec); step != "" && s.State != StateFailed && s.State != StateMissing {
		s.State, s.Message = StateOutOfDate, step
	}
	return s
}

func stateOf(ready *metav1.Condition, c v1alpha1.ObjectCounts) (State, string) {
	switch {
	case ready == nil, c.Total > 0 && c.NotFound == c.Total:
		return StateMissing, "the cluster has none of its objects"
	case c.Failed > 0:
		return StateFailed, ready.Message
	case ready.Status == metav1.ConditionTrue:
		return StateReady, ""
	case ready.Status == metav1.ConditionFalse:
		return StateProgressing, ready.Message
	default:
		return StateUnknown, ready.Message
	}
}

// describeVersionDifference describes how the cluster differs from the lock in
// version or pin. It returns "" if they are equal.
func describeVersionDifference(s OperatorHealth, spec *v1alpha1.InstallationSpec) string {
	others := slices.DeleteFunc(slices.Clone(s.Applied), func(v string) bool { return v == s.Version })
	switch {
	case len(others) > 0:
		word := "behind"
		if !slices.ContainsFunc(others, func(v string) bool { return model.CompareVersions(v, s.Version) < 0 }) {
			word = "ahead"
		}
		return fmt.Sprintf("%s: the cluster has %s%s, the lock %s", word, strings.Join(others, " and "), formatPin(spec), s.Version)
	case spec != nil && spec.Pin != "" && spec.Pin != string(s.Pin):
		return fmt.Sprintf("behind: the cluster has another pin of %s%s, the lock %s", s.Version, formatPin(spec), shortDigest(string(s.Pin)))
	default:
		return ""
	}
}

func formatPin(spec *v1alpha1.InstallationSpec) string {
	if spec == nil || spec.Pin == "" {
		return ""
	}
	return " (pin " + shortDigest(spec.Pin) + ")"
}

// shortDigest returns the beginning of a digest.
func shortDigest(digest string) string {
	const keep = len("sha256:") + 12
	digest = clipMessage(digest)
	if len(digest) <= keep {
		return digest
	}
	return strings.ToValidUTF8(digest[:keep], "")
}

// ObservedVersions returns the versions of an installation's objects, sorted and unique.
// The annotation with the exact version wins over the label.
func ObservedVersions(spec v1alpha1.InstallationSpec, got []v1alpha1.Observed) []string {
	found := indexObserved(got)
	var out []string
	for _, ref := range spec.Objects {
		o := found[keyOf(ref)].Object
		if ref.Version == "" || o == nil {
			continue
		}
		v := cmp.Or(k8s.Text(o, "metadata", "annotations", v1alpha1.LabelVersion), k8s.Text(o, "metadata", "labels", v1alpha1.LabelVersion))
		if v != "" {
			out = append(out, clipMessage(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
