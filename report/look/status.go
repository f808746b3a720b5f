package look

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Status is what a cluster has of what is expected there, as a document.
type Status struct {
	Context     string           `json:"context"`
	Server      string           `json:"server"`
	Environment string           `json:"environment" doc:"what the workspace is called; empty for one without a name at the top of the repository"`
	Cluster     string           `json:"cluster" doc:"as quayside.yaml names it"`
	ObservedAt  metav1.Time      `json:"observedAt"`
	Well        bool             `json:"well"`
	Operators   []OperatorStatus `json:"operators"`
}

// OperatorStatus is one operator of a Status.
type OperatorStatus struct {
	Operator        string                    `json:"operator"`
	Version         string                    `json:"version,omitempty"` // in the lock
	Pin             string                    `json:"pin,omitempty"`     // its checksum there
	BundleDigest    string                    `json:"bundleDigest,omitempty" doc:"of the bundle that the lock pins"`
	Applied         []string                  `json:"applied"` // versions in the cluster
	State           report.State              `json:"state"`
	Message         string                    `json:"message,omitempty"`
	Upgradeable     string                    `json:"upgradeable,omitempty"` // True, False, Unknown; absent: the operator says nothing
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

// Status returns what was seen in c of what was expected in an environment.
func (got *Seen) Status(environment string, c *cluster.Client, want *Expected) *Status {
	v := &Status{
		Context: c.Context, Server: c.Server, Environment: environment, Cluster: want.Cluster, ObservedAt: metav1.NewTime(got.Summary.At), Well: got.Summary.Well(),
		Operators: []OperatorStatus{},
	}
	for _, st := range got.Summary.Operators {
		key := st.Namespace + "/" + st.Package
		op := OperatorStatus{
			Operator: key, Version: st.Version, Pin: string(st.Pin), Applied: append([]string{}, st.Applied...), State: st.State, Message: st.Message,
			Upgradeable: string(st.Upgradeable), UpgradeMessage: st.UpgradeMessage, Conditions: st.Status.Conditions, Summary: st.Status.Summary,
			StoredVersions: st.StoredVersions,
			Images:         append([]v1alpha1.RunningImage{}, st.Status.Images...), Objects: []v1alpha1.ObjectHealth{}, CustomResources: []CustomKind{},
		}
		if pin, ok := want.Lock.Pin(st.Namespace, st.Package); ok {
			op.BundleDigest = string(pin.BundleDigest())
		}
		if one := got.Operators[key]; one != nil {
			op.Objects = one.Objects
			op.CustomResources = append(op.CustomResources, one.Custom...)
			op.Reporter, op.Notes = one.Reporter, one.Notes
		}
		v.Operators = append(v.Operators, op)
	}
	return v
}
