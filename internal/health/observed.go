package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// apiVersion and kind of a file with observations.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "Observed"
)

// SystemNamespace is the Namespace whose UID identifies a cluster.
const SystemNamespace = "kube-system"

// FormatObserved encodes a summary as a file with observations. The file has the fields of the output of
// quayside status, except the details.
func FormatObserved(s Summary) []byte {
	s.APIVersion, s.Kind, s.Operators = APIVersion, Kind, append([]OperatorHealth{}, s.Operators...)
	for i := range s.Operators {
		s.Operators[i].Details = nil
	}
	data, err := yamlnode.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("health: observed file: %v", err)) // impossible: all values can be encoded as JSON
	}
	return append([]byte("# Written by quayside status, for --observed.\n"), data...)
}

type wireFile struct {
	APIVersion  string           `json:"apiVersion"`
	Kind        string           `json:"kind"`
	ObservedAt  string           `json:"observedAt"`
	Environment string           `json:"environment"`
	Cluster     string           `json:"cluster"`
	ClusterUID  string           `json:"clusterUID"`
	APIs        []string         `json:"apis"`
	Classes     []string         `json:"classes"`
	Operators   []*yamlnode.Node `json:"operators"`

	// Ignored: only the output of quayside status has these fields.
	Context *yamlnode.Node `json:"context"`
	Server  *yamlnode.Node `json:"server"`
	Healthy *yamlnode.Node `json:"healthy"`
}

type wireOperator struct {
	Namespace      string         `json:"namespace"`
	Package        string         `json:"package"`
	Version        string         `json:"version"`
	Pin            string         `json:"pin"`
	BundleDigest   string         `json:"bundleDigest"`
	State          string         `json:"state"`
	Message        string         `json:"message"`
	ReadySince     string         `json:"readySince"`
	Upgradeable    string         `json:"upgradeable"`
	UpgradeMessage string         `json:"upgradeMessage"`
	Applied        []string       `json:"applied"`
	StoredVersions []wireStored   `json:"storedVersions"`
	Details        *yamlnode.Node `json:"details"` // ignored: only the output of quayside status has this field
}

type wireStored struct {
	Definition string   `json:"crd"`
	Versions   []string `json:"versions"`
}

// parseObserved parses a file with observations or the output of quayside status. It returns nil if the
// document cannot be decoded.
func (r *reader) parseObserved(n *yamlnode.Node) *Summary {
	var w wireFile
	before := len(r.errs)
	if yamlnode.CheckHeader(r.file, n, APIVersion, Kind, &r.errs) {
		r.errs.Add(diag.Pos{File: r.file}, yamlnode.Decode(r.file, n, &w))
	}
	if len(r.errs) > before {
		return nil
	}
	out := &Summary{At: r.parseOptionalTime(n, "observedAt", w.ObservedAt), Environment: clipMessage(w.Environment), Cluster: clipMessage(w.Cluster), ClusterUID: clipMessage(w.ClusterUID), APIs: w.APIs, Classes: w.Classes}
	r.checkClasses(n, w.Classes)
	for _, n := range w.Operators {
		var w wireOperator
		r.errs.Add(yamlnode.At(r.file, n), yamlnode.Decode(r.file, n, &w))
		out.Operators = append(out.Operators, r.newOperator(n, w))
	}
	return out
}

// checkClasses adds a fault for each class that does not have the format of an entry in spec.provides.objects.
func (p *parser) checkClasses(n *yamlnode.Node, classes []string) {
	for _, class := range classes {
		if _, err := provided.ParseObject(class); err != nil {
			p.errs.Addf(p.position(n, "classes"), "classes: %w", err)
		}
	}
}

type parser struct {
	file string
	errs diag.List
}

// position returns the position of a field of n. If the field is missing, it returns the position
// of n.
func (p *parser) position(n *yamlnode.Node, field string) diag.Pos {
	if _, v := yamlnode.Field(n, field); v != nil {
		return yamlnode.At(p.file, v)
	}
	return yamlnode.At(p.file, n)
}

func (p *parser) parseTime(n *yamlnode.Node, field, s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		p.errs.Addf(p.position(n, field), "%s: %q is not a time such as 2026-01-31T12:00:00Z", field, s)
	}
	return at.UTC()
}

// newOperator returns the health of an operator. It adds a fault for each invalid field.
func (p *parser) newOperator(n *yamlnode.Node, w wireOperator) OperatorHealth {
	for _, f := range [][2]string{{"namespace", w.Namespace}, {"package", w.Package}, {"state", w.State}} {
		if f[1] == "" {
			p.errs.Addf(yamlnode.At(p.file, n), "operator %q: no %s", w.Namespace+"/"+w.Package, f[0])
		}
	}
	if w.State != "" && !slices.Contains(States(), State(w.State)) {
		p.errs.Addf(p.position(n, "state"), "state: %q: must be one of %s", w.State, joinStrings(States()))
	}
	if w.Upgradeable != "" && !slices.Contains(conditionStatuses(), metav1.ConditionStatus(w.Upgradeable)) {
		p.errs.Addf(p.position(n, "upgradeable"), "upgradeable: %q: must be one of %s", w.Upgradeable, joinStrings(conditionStatuses()))
	}
	if w.Pin != "" && !imageref.IsDigest(w.Pin) {
		p.errs.Addf(p.position(n, "pin"), "pin: %q is not a checksum", w.Pin)
	}
	if w.BundleDigest != "" && !imageref.IsDigest(w.BundleDigest) {
		p.errs.Addf(p.position(n, "bundleDigest"), "bundleDigest: %q is not a digest", w.BundleDigest)
	}
	for i, v := range w.Applied {
		w.Applied[i] = clipMessage(v)
	}
	return OperatorHealth{
		Namespace: w.Namespace, Package: w.Package, Version: clipMessage(w.Version), Pin: catalog.Digest(w.Pin), Applied: w.Applied,
		Bundle: catalog.Digest(w.BundleDigest), State: State(w.State), Message: sanitize.Line(w.Message), ReadySince: p.parseOptionalTime(n, "readySince", w.ReadySince),
		Upgradeable: metav1.ConditionStatus(w.Upgradeable), UpgradeMessage: sanitize.Line(w.UpgradeMessage),
		StoredVersions: p.parseStoredVersions(n, w.StoredVersions), Pos: yamlnode.At(p.file, n),
	}
}

// parseStoredVersions returns the stored versions in list, sorted. It adds a fault for an entry
// without versions, because every CRD has at least one.
func (p *parser) parseStoredVersions(n *yamlnode.Node, list []wireStored) []v1alpha1.StoredVersions {
	var out []v1alpha1.StoredVersions
	for _, s := range list {
		if s.Definition == "" || len(s.Versions) == 0 || slices.Contains(s.Versions, "") {
			p.errs.Addf(p.position(n, "storedVersions"), "storedVersions: must be a CRD and its versions, such as {crd: widgets.example.com, versions: [v1]}")
			continue
		}
		one := v1alpha1.StoredVersions{Definition: clipMessage(s.Definition)}
		for _, v := range s.Versions {
			one.Versions = append(one.Versions, clipMessage(v))
		}
		slices.Sort(one.Versions)
		one.Versions = slices.Compact(one.Versions)
		out = append(out, one)
	}
	slices.SortStableFunc(out, compareStored)
	return out
}

func conditionStatuses() []metav1.ConditionStatus {
	return []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
}

func joinStrings[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
