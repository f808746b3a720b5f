package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/health"
)

// Status is the observation of a cluster as a document.
type Status struct {
	Context     string           `json:"context"`
	Server      string           `json:"server"`
	Environment string           `json:"environment" doc:"name of the workspace; empty for an unnamed one at the top of the repository"`
	Cluster     string           `json:"cluster" doc:"as quayside.yaml names it"`
	ClusterUID  string           `json:"clusterUID,omitempty" doc:"UID of the Namespace kube-system; absent without permission to get it"`
	ObservedAt  metav1.Time      `json:"observedAt"`
	Healthy     bool             `json:"healthy"`
	APIs        []string         `json:"apis,omitempty" doc:"group and version of the served APIs; not in text output"`
	Classes     []string         `json:"classes,omitempty" doc:"StorageClasses, PriorityClasses and RuntimeClasses; likewise"`
	Operators   []OperatorStatus `json:"operators"`

	Summary health.Summary `json:"-"` // content of an observation file
}

// OperatorStatus is one operator of a Status.
type OperatorStatus struct {
	Operator        string                    `json:"operator"`
	Version         string                    `json:"version,omitempty"` // in the lock
	Pin             string                    `json:"pin,omitempty"`     // checksum of the pin in the lock
	BundleDigest    string                    `json:"bundleDigest,omitempty" doc:"of the bundle that the lock pins"`
	Applied         []string                  `json:"applied"` // versions in the cluster
	State           health.State              `json:"state"`
	Message         string                    `json:"message,omitempty"`
	Upgradeable     string                    `json:"upgradeable,omitempty"` // True, False, Unknown; absent if not reported
	UpgradeMessage  string                    `json:"upgradeMessage,omitempty"`
	Conditions      []metav1.Condition        `json:"conditions"`
	Summary         v1alpha1.ObjectCounts     `json:"summary"`
	Objects         []v1alpha1.ObjectHealth   `json:"objects"`
	Images          []v1alpha1.RunningImage   `json:"images"`
	StoredVersions  []v1alpha1.StoredVersions `json:"storedVersions,omitempty" doc:"definitions with more than one version, and the versions that objects may be stored in"`
	CustomResources []CustomKind              `json:"customResources"`
	Reporter        *Reporter                 `json:"reporter,omitempty"`
	Notes           []string                  `json:"notes,omitempty"`
}

// newStatus returns the status for a summary. details has the objects, reporter results and notes
// of the operators, by namespace/package.
func (l *observer) newStatus(summary health.Summary, details map[string]OperatorStatus) *Status {
	v := &Status{
		Context: l.c.Context, Server: l.c.Server, Environment: l.want.Environment, Cluster: l.want.Cluster, ClusterUID: summary.ClusterUID,
		ObservedAt: metav1.NewTime(summary.At), Healthy: summary.IsHealthy(), Operators: []OperatorStatus{}, Summary: summary,
	}
	for i, st := range summary.Operators {
		key := st.Namespace + "/" + st.Package
		op := OperatorStatus{
			Operator: key, Version: st.Version, Pin: string(st.Pin), Applied: append([]string{}, st.Applied...), State: st.State, Message: st.Message,
			Upgradeable: string(st.Upgradeable), UpgradeMessage: st.UpgradeMessage, Conditions: st.Status.Conditions, Summary: st.Status.Summary,
			StoredVersions: st.StoredVersions,
			Images:         append([]v1alpha1.RunningImage{}, st.Status.Images...), Objects: []v1alpha1.ObjectHealth{}, CustomResources: []CustomKind{},
		}
		if pin, ok := l.want.Lock.Pin(st.Namespace, st.Package); ok {
			summary.Operators[i].Bundle = pin.BundleDigest()
			op.BundleDigest = string(pin.BundleDigest())
		}
		if known, ok := details[key]; ok {
			op.Objects, op.Reporter, op.Notes = known.Objects, known.Reporter, known.Notes
			if r := op.Reporter; r != nil && r.State == "current" {
				summary.Operators[i].ReadySince = r.ReadySince.Time
			}
		}
		v.Operators = append(v.Operators, op)
	}
	return v
}
