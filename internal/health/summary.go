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
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// OperatorObservation is the observation of an operator that has a pin in the lock or an
// Installation in the cluster.
type OperatorObservation struct {
	Namespace, Package string
	Spec               *v1alpha1.InstallationSpec  // spec of the Installation; nil if there is no Installation
	Status             v1alpha1.InstallationStatus // result of Judge for the pin
	Applied            []string                    // versions in the cluster, from ObservedVersions
}

// State is the state of an operator in a cluster.
type State string

// The states of an operator, from the worst to the best.
const (
	StateFailed      State = "Failed"      // manual action is required
	StateMissing     State = "Missing"     // pinned in the lock, but missing in the cluster
	StateOutOfDate   State = "OutOfSync"   // the cluster has another version or pin
	StateUnpinned    State = "Unpinned"    // in the cluster, but not pinned in the lock
	StateProgressing State = "Progressing" // a rollout is in progress
	StateUnknown     State = "Unknown"     // some objects could not be read
	StateReady       State = "Ready"       // up to date with the lock and healthy
)

// States returns all states, from the worst to the best.
func States() []State {
	return []State{StateFailed, StateMissing, StateOutOfDate, StateUnpinned, StateProgressing, StateUnknown, StateReady}
}

// Summary compares the operators in a cluster with the operators in a lock. It is the only format of
// observations: quayside status prints and saves it as JSON, and the flag --observed of all commands reads it.
type Summary struct {
	APIVersion  string           `json:"apiVersion" form:"const=quayside.dev/v1alpha1"`
	Kind        string           `json:"kind" form:"const=Observed"`
	At          time.Time        `json:"observedAt,omitzero" form:"format=date-time"` // UTC, in whole seconds; zero if unknown
	Environment string           `json:"environment,omitempty" doc:"name of the workspace; absent for an unnamed one at the top of the repository"`
	Cluster     string           `json:"cluster,omitempty" doc:"as quayside.yaml names it"`
	ClusterUID  string           `json:"clusterUID,omitempty" doc:"UID of the Namespace kube-system; absent without permission to get it"`
	APIs        []string         `json:"apis,omitempty" doc:"group and version of the served APIs, sorted"`
	Classes     []string         `json:"classes,omitempty" doc:"StorageClasses, PriorityClasses and RuntimeClasses, in the format of spec.provides.objects"`
	Operators   []OperatorHealth `json:"operators" doc:"sorted by namespace, then package"`
	Combined    bool             `json:"-"` // merged from several observations: each operator has its own time, and At is the latest

	File     *SavedFile `json:"-"` // file that the summary was read from; may be nil
	Unsigned string     `json:"-"` // reason why File is not signed as required, or ""
	Problem  string     `json:"-"` // reason why the summary is not accepted as an observation, or ""
}

// SavedFile is the content of a file with observations, and of the sigstore bundle next to it.
type SavedFile struct{ Data, Signature []byte }

// OperatorHealth compares an operator in the cluster with its pin in the lock.
type OperatorHealth struct {
	Namespace      string                    `json:"namespace"`
	Package        string                    `json:"package"`
	Version        string                    `json:"version,omitempty" doc:"in the lock; absent if unpinned"`
	Pin            catalog.Digest            `json:"pin,omitempty" doc:"checksum of the pin; absent if unpinned"`
	Bundle         catalog.Digest            `json:"bundleDigest,omitempty" doc:"of the bundle that the lock pins"`
	Applied        []string                  `json:"applied,omitempty" doc:"versions in the cluster, sorted"`
	State          State                     `json:"state"`
	Message        string                    `json:"message,omitempty" doc:"reason for the state"`
	ReadySince     time.Time                 `json:"readySince,omitzero" form:"format=date-time" doc:"Ready without interruption since then, according to the reporter"`
	Upgradeable    metav1.ConditionStatus    `json:"upgradeable,omitempty" doc:"True, False or Unknown, as the operator reports; absent if not reported"`
	UpgradeMessage string                    `json:"upgradeMessage,omitempty"`
	StoredVersions []v1alpha1.StoredVersions `json:"storedVersions,omitempty" doc:"CRDs with more than one version, and the versions in which objects may be stored"`
	Details        *Details                  `json:"details,omitempty" doc:"details; not in a saved file, and ignored by --observed"`

	At     time.Time                   `json:"-"` // time of the observation, if Summary.Combined; zero if unknown
	Status v1alpha1.InstallationStatus `json:"-"` // result of Judge
	Pos    diag.Pos                    `json:"-"` // position in the file with observations
}

// Details is information about an operator that quayside status prints but does not save.
type Details struct {
	Conditions      []metav1.Condition      `json:"conditions"`
	Summary         v1alpha1.ObjectCounts   `json:"summary"`
	Objects         []v1alpha1.ObjectHealth `json:"objects"`
	Images          []v1alpha1.RunningImage `json:"images"`
	CustomResources []CustomKind            `json:"customResources"`
	Reporter        *Reporter               `json:"reporter,omitempty"`
	Notes           []string                `json:"notes,omitempty"`
}

// CustomKind is a kind that an operator defines, with the number and health of its custom
// resources.
type CustomKind struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Count      int                     `json:"count"`
	AtLeast    bool                    `json:"atLeast,omitempty"` // Count is a lower bound
	NotReady   int                     `json:"notReady"`
	Resources  []v1alpha1.ObjectHealth `json:"resources"`         // the first few resources; those that are not ready come first
	Message    string                  `json:"message,omitempty"` // error of listing the resources
}

// Reporter is the state of an operator as published by the in-cluster reporter.
type Reporter struct {
	State      string    `json:"state"` // "absent", "pending", "stale" or "current"
	Ready      string    `json:"ready,omitempty"`
	Message    string    `json:"message,omitempty"`
	ReadySince time.Time `json:"-"` // since when the pinned bundle has been ready; zero if unknown
}

// Key returns "namespace/package".
func (o OperatorHealth) Key() string { return o.Namespace + "/" + o.Package }

// Operator returns the health of an operator, and whether the summary contains the operator.
func (s *Summary) Operator(namespace, pkg string) (OperatorHealth, bool) {
	for _, o := range s.Operators {
		if o.Namespace == namespace && o.Package == pkg {
			return o, true
		}
	}
	return OperatorHealth{}, false
}

// HasPin reports whether the operator was observed with the bundle of pin. If a digest is unknown, HasPin
// compares the checksum of pin with the observed one.
func (o OperatorHealth) HasPin(pin lockfile.Pin) bool {
	if digest := pin.BundleDigest(); o.Bundle != "" && digest != "" {
		return o.Bundle == digest
	}
	return o.Pin == pin.Checksum()
}

// IsHealthy reports whether the state of every operator is Ready.
func (s Summary) IsHealthy() bool {
	return !slices.ContainsFunc(s.Operators, func(o OperatorHealth) bool { return o.State != StateReady })
}

// Summarize compares each pin of the lock with its observation. It also adds observed operators
// that have no pin. It does not modify its arguments.
func Summarize(lock *lockfile.File, got []OperatorObservation, now time.Time) Summary {
	out := Summary{APIVersion: APIVersion, Kind: Kind, At: now.UTC().Truncate(time.Second), Operators: []OperatorHealth{}}
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
	slices.SortFunc(out.Operators, compareOperators)
	return out
}

// compareOperators orders operators by namespace, then by package.
func compareOperators(a, b OperatorHealth) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

func newUnpinnedHealth(o OperatorObservation) OperatorHealth {
	s := OperatorHealth{Namespace: o.Namespace, Package: o.Package, Applied: appliedVersions(o), State: StateUnpinned, Status: o.Status}
	s.Message = "the cluster has " + strings.Join(s.Applied, " and ") + ", not pinned in the lock"
	return s
}

// appliedVersions returns the versions of an operator according to its objects in the cluster. If no object was
// read, it returns the version in the Installation.
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
		return StateMissing, "none of its objects exists in the cluster"
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

// describeVersionDifference describes how the version or pin in the cluster differs from the lock. It returns
// "" if there is no difference.
func describeVersionDifference(s OperatorHealth, spec *v1alpha1.InstallationSpec) string {
	others := slices.DeleteFunc(slices.Clone(s.Applied), func(v string) bool { return v == s.Version })
	switch {
	case len(others) > 0:
		word := "behind"
		if !slices.ContainsFunc(others, func(v string) bool { return catalog.CompareVersions(v, s.Version) < 0 }) {
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

// shortDigest returns a digest shortened to 12 hexadecimal digits.
func shortDigest(digest string) string {
	const keep = len("sha256:") + 12
	digest = clipMessage(digest)
	if len(digest) <= keep {
		return digest
	}
	return strings.ToValidUTF8(digest[:keep], "")
}

// ObservedVersions returns the versions of the objects of an installation, sorted and without duplicates.
// The version of an object is in an annotation or, if the annotation is missing, in a label.
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
