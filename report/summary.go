package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Operator is what was found of one operator: of a pin of the lock, or of an
// Installation that the lock does not know.
type Operator struct {
	Namespace, Package string
	Spec               *v1alpha1.InstallationSpec  // of the Installation in the cluster; nil where there is none
	Status             v1alpha1.InstallationStatus // judged by what the lock says
	Applied            []string                    // as returned by [Applied]
}

// State says in a word how an operator stands.
type State string

// The states of an operator, the worst first.
const (
	StateFailed      State = "Failed"      // something needs a person
	StateMissing     State = "Missing"     // the lock pins it, the cluster has nothing of it
	StateOutOfStep   State = "OutOfStep"   // the cluster has another version, or another pin of it
	StateUnpinned    State = "Unpinned"    // the cluster has it, the lock does not
	StateProgressing State = "Progressing" // on its way
	StateUnknown     State = "Unknown"     // not everything could be read
	StateReady       State = "Ready"       // all is as the lock says
)

// States returns every state, the worst first.
func States() []State {
	return []State{StateFailed, StateMissing, StateOutOfStep, StateUnpinned, StateProgressing, StateUnknown, StateReady}
}

// Summary holds a lock against a cluster.
type Summary struct {
	At        time.Time  // when the cluster was looked at, in whole seconds, UTC
	Cluster   string     // which one, as quayside.yaml names it; empty: not said
	Operators []Standing // by namespace, then package
}

// Standing is how one operator stands.
type Standing struct {
	Namespace, Package string
	Version            string         // that the lock pins; empty where it does not
	Pin                catalog.Digest // checksum of the pin; likewise
	Applied            []string       // versions that the cluster has, sorted
	State              State
	Message            string                 // why; empty where Ready
	Upgradeable        metav1.ConditionStatus // what the operator says of itself; empty: nothing
	UpgradeMessage     string
	StoredVersions     []v1alpha1.StoredVersions   // of definitions with more than one version, by name
	Status             v1alpha1.InstallationStatus // as judged; not part of the observed file
}

// Well reports whether every operator is Ready.
func (s Summary) Well() bool {
	return !slices.ContainsFunc(s.Operators, func(o Standing) bool { return o.State != StateReady })
}

// Summarize holds every pin of the lock against what was found of it, and
// names what was found without a pin. No argument is modified.
func Summarize(lock *lockfile.File, got []Operator, now time.Time) Summary {
	out := Summary{At: now.UTC().Truncate(time.Second)}
	found := map[[2]string]Operator{}
	for _, o := range got {
		found[[2]string{o.Namespace, o.Package}] = o
	}
	for _, pin := range lock.Pins {
		name := [2]string{pin.Namespace, pin.Package}
		o := found[name]
		delete(found, name)
		o.Namespace, o.Package = pin.Namespace, pin.Package
		out.Operators = append(out.Operators, standing(pin, o))
	}
	for _, o := range found {
		if o.Spec != nil || len(o.Applied) > 0 {
			out.Operators = append(out.Operators, unpinned(o))
		}
	}
	slices.SortFunc(out.Operators, byName)
	return out
}

// byName orders operators by namespace, then package.
func byName(a, b Standing) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

func unpinned(o Operator) Standing {
	s := Standing{Namespace: o.Namespace, Package: o.Package, Applied: applied(o), State: StateUnpinned, Status: o.Status}
	s.Message = "the cluster has " + strings.Join(s.Applied, " and ") + ", the lock does not pin it"
	return s
}

// applied returns the versions that the cluster has: those of the objects, or
// what the Installation says where none was looked at.
func applied(o Operator) []string {
	if len(o.Applied) == 0 && o.Spec != nil {
		return []string{o.Spec.Version}
	}
	return slices.Sorted(slices.Values(o.Applied))
}

func standing(pin lockfile.Pin, o Operator) Standing {
	s := Standing{
		Namespace: pin.Namespace, Package: pin.Package, Version: pin.Version, Pin: pin.Checksum(),
		Applied: applied(o), StoredVersions: o.Status.StoredVersions, Status: o.Status,
	}
	ready := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Ready)
	s.State, s.Message = stateOf(ready, o.Status.Summary)
	if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Upgradeable); c != nil {
		s.Upgradeable, s.UpgradeMessage = c.Status, c.Message
	}
	if step := outOfStep(s, o.Spec); step != "" && s.State != StateFailed && s.State != StateMissing {
		s.State, s.Message = StateOutOfStep, step
	}
	return s
}

func stateOf(ready *metav1.Condition, c v1alpha1.ObjectCounts) (State, string) {
	switch {
	case ready == nil, c.Total > 0 && c.NotFound == c.Total:
		return StateMissing, "the cluster has nothing of it"
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

// outOfStep says how the cluster differs from the lock in version or pin, ""
// where it does not.
func outOfStep(s Standing, spec *v1alpha1.InstallationSpec) string {
	others := slices.DeleteFunc(slices.Clone(s.Applied), func(v string) bool { return v == s.Version })
	switch {
	case len(others) > 0:
		word := "behind"
		if !slices.ContainsFunc(others, func(v string) bool { return olm.CompareVersions(v, s.Version) < 0 }) {
			word = "ahead"
		}
		return fmt.Sprintf("%s: the cluster has %s%s, the lock %s", word, strings.Join(others, " and "), ofPin(spec), s.Version)
	case spec != nil && spec.Pin != "" && spec.Pin != string(s.Pin):
		return fmt.Sprintf("behind: the cluster has another pin of %s%s, the lock %s", s.Version, ofPin(spec), brief(string(s.Pin)))
	default:
		return ""
	}
}

func ofPin(spec *v1alpha1.InstallationSpec) string {
	if spec == nil || spec.Pin == "" {
		return ""
	}
	return " (pin " + brief(spec.Pin) + ")"
}

// brief returns the beginning of a digest.
func brief(digest string) string {
	const keep = len("sha256:") + 12
	digest = short(digest)
	if len(digest) <= keep {
		return digest
	}
	return strings.ToValidUTF8(digest[:keep], "")
}

// Applied returns the versions that an installation's objects say they are of,
// sorted, each once: the exact version where the object says it.
func Applied(spec v1alpha1.InstallationSpec, got []v1alpha1.Observed) []string {
	found := index(got)
	var out []string
	for _, ref := range spec.Objects {
		o := found[keyOf(ref)].Object
		if ref.Version == "" || o == nil {
			continue
		}
		v := cmp.Or(kobj.Text(o, "metadata", "annotations", v1alpha1.LabelVersion), kobj.Text(o, "metadata", "labels", v1alpha1.LabelVersion))
		if v != "" {
			out = append(out, short(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
