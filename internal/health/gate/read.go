package gate

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/imageref"
	"github.com/quayside/quayside/internal/base/yamlnode"
)

// limits returns the limits for one file. Complete status documents of 300 operators need a tenth
// of them.
func limits() yamlnode.Limits {
	return yamlnode.Limits{Bytes: 64 << 20, Depth: 50, Nodes: 3_000_000}
}

// Read parses the output of 'quayside status' as JSON or YAML, with or without --all, or
// Installations as printed by kubectl, in one or more documents. Observations from Installations
// have no cluster name. The error is a diag.List of all faults.
func Read(file string, data []byte) ([]Observation, error) {
	docs, err := yamlnode.Documents(file, data, limits())
	if err != nil {
		return nil, err
	}
	r := reader{file: file}
	for _, n := range docs {
		r.readDocument(n)
	}
	if len(docs) == 0 {
		r.errs.Addf(diag.Pos{File: file}, "empty: "+supportedInput)
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return r.out, nil
}

const supportedInput = "want the output of 'quayside status -o json' or 'kubectl get installations.quayside.dev -A -o yaml'"

type reader struct {
	file string
	out  []Observation
	errs diag.List
}

// readDocument reads a document of any supported kind.
func (r *reader) readDocument(n *yaml.Node) {
	kind := r.textField(n, "kind")
	switch {
	case kind == v1alpha1.Kind:
		r.readInstallation(n)
	case kind == v1alpha1.ListKind || kind == "List":
		for _, item := range r.listField(n, "items") {
			if got := r.textField(item, "kind"); got != v1alpha1.Kind && (kind == "List" || got != "") {
				r.errs.Addf(yamlnode.At(r.file, item), "kind %q among Installations: "+supportedInput, got)
				continue
			}
			r.readInstallation(item)
		}
	case kind != "":
		r.errs.Addf(yamlnode.At(r.file, n), "kind %q: "+supportedInput, kind)
	case hasField(n, "environments"):
		for _, e := range r.listField(n, "environments") {
			if _, doc := yamlnode.Field(e, "document"); doc != nil && hasField(doc, "operators") {
				r.readStatus(doc)
			}
		}
	case hasField(n, "operators") && hasField(n, "cluster"):
		r.readStatus(n)
	case hasField(n, "errors") && hasField(n, "conflicts"):
		// quayside status prints this document for an unreachable cluster
	default:
		r.errs.Addf(yamlnode.At(r.file, n), "unknown document: "+supportedInput)
	}
}

func hasField(n *yaml.Node, field string) bool {
	_, v := yamlnode.Field(n, field)
	return v != nil
}

// textField returns the string in a field, or "" if there is none.
func (r *reader) textField(n *yaml.Node, field string) string {
	_, v := yamlnode.Field(n, field)
	if v == nil {
		return ""
	}
	s, _ := yamlnode.Text(v)
	return s
}

// listField returns the items of a list field. It adds a fault if the field is not a list.
func (r *reader) listField(n *yaml.Node, field string) []*yaml.Node {
	_, v := yamlnode.Field(n, field)
	switch {
	case v == nil || v.Tag == "!!null":
		return nil
	case v.Kind != yaml.SequenceNode:
		r.errs.Addf(yamlnode.At(r.file, v), "%s: want a list", field)
		return nil
	}
	return v.Content
}

// wireStatus has the decoded fields of a status document.
type wireStatus struct {
	Environment string       `json:"environment"`
	Cluster     string       `json:"cluster"`
	ObservedAt  string       `json:"observedAt"`
	Operators   []*yaml.Node `json:"operators"`
}

type wireOperator struct {
	Operator       string `json:"operator"`
	Version        string `json:"version"`
	Pin            string `json:"pin"`
	BundleDigest   string `json:"bundleDigest"`
	State          string `json:"state"`
	Message        string `json:"message"`
	Upgradeable    string `json:"upgradeable"`
	UpgradeMessage string `json:"upgradeMessage"`
	Reporter       struct {
		State      string `json:"state"`
		ReadySince string `json:"readySince"`
	} `json:"reporter"`
}

// decodeOpen decodes a node into a struct and ignores unknown fields. It returns false if it added
// a fault.
func (r *reader) decodeOpen(n *yaml.Node, into any) bool {
	before := len(r.errs)
	r.errs.Add(yamlnode.At(r.file, n), yamlnode.DecodeOpen(r.file, n, into))
	return len(r.errs) == before
}

func (r *reader) readStatus(n *yaml.Node) {
	var w wireStatus
	if !r.decodeOpen(n, &w) {
		return
	}
	at := r.parseTime(n, "observedAt", w.ObservedAt)
	if w.Cluster == "" {
		r.errs.Addf(yamlnode.At(r.file, n), "no cluster: "+supportedInput)
	}
	for _, node := range w.Operators {
		var op wireOperator
		if !r.decodeOpen(node, &op) {
			continue
		}
		o := Observation{
			Environment: w.Environment, Cluster: w.Cluster, Operator: op.Operator, At: at, Version: op.Version,
			Bundle: r.parseDigest(node, "bundleDigest", op.BundleDigest), Checksum: r.parseDigest(node, "pin", op.Pin),
			Healthy: op.State == "Ready", Message: strings.TrimSuffix(op.State+": "+op.Message, ": "),
			Upgradeable: r.parseCondition(node, op.Upgradeable), UpgradeMessage: op.UpgradeMessage,
		}
		if o.Healthy && op.Reporter.State == "current" && op.Reporter.ReadySince != "" {
			_, reporter := yamlnode.Field(node, "reporter")
			o.Since = r.parseTime(reporter, "readySince", op.Reporter.ReadySince)
		}
		r.add(node, o)
	}
}

// wireInstallation has the decoded fields of an Installation.
type wireInstallation struct {
	Metadata struct {
		Namespace  string `json:"namespace"`
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Package      string `json:"package"`
		Version      string `json:"version"`
		Pin          string `json:"pin"`
		BundleDigest string `json:"bundleDigest"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64           `json:"observedGeneration"`
		Pin                string          `json:"pin"`
		ObservedAt         string          `json:"observedAt"`
		ReadySince         string          `json:"readySince"`
		Conditions         []wireCondition `json:"conditions"`
	} `json:"status"`
}

type wireCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

func (r *reader) readInstallation(n *yaml.Node) {
	var w wireInstallation
	if api := r.textField(n, "apiVersion"); api != "" && !strings.HasPrefix(api, v1alpha1.Group+"/") {
		r.errs.Addf(r.position(n, "apiVersion"), "an Installation of %q does not belong to quayside: use installations.%s", api, v1alpha1.Group)
		return
	}
	if !r.decodeOpen(n, &w) {
		return
	}
	_, spec := yamlnode.Field(n, "spec")
	_, status := yamlnode.Field(n, "status")
	o := Observation{
		Operator: w.Metadata.Namespace + "/" + w.Spec.Package, At: r.parseTime(status, "observedAt", w.Status.ObservedAt), Version: w.Spec.Version,
		Bundle: r.parseDigest(spec, "bundleDigest", w.Spec.BundleDigest), Checksum: r.parseDigest(spec, "pin", w.Spec.Pin),
		Message: "its reporter has not reported yet",
	}
	if w.Status.ReadySince != "" {
		o.Since = r.parseTime(status, "readySince", w.Status.ReadySince)
	}
	for _, c := range w.Status.Conditions {
		switch c.Type {
		case v1alpha1.Ready:
			o.Healthy, o.Message = c.Status == string(metav1.ConditionTrue), c.Message
		case v1alpha1.Upgradeable:
			o.Upgradeable, o.UpgradeMessage = r.parseCondition(status, c.Status), c.Message
		}
	}
	if w.Status.Pin != w.Spec.Pin || w.Status.ObservedGeneration != w.Metadata.Generation && w.Metadata.Generation != 0 {
		o.Healthy, o.Since, o.Message = false, time.Time{}, "its reporter has not reported this pin yet"
	}
	r.add(n, o)
}

// add appends an observation, or adds a fault if its operator is not namespace/package.
func (r *reader) add(n *yaml.Node, o Observation) {
	namespace, pkg, ok := strings.Cut(o.Operator, "/")
	if !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") {
		r.errs.Addf(yamlnode.At(r.file, n), "operator %q: want namespace/package", o.Operator)
		return
	}
	r.out = append(r.out, o)
}

// position returns the position of a field of n, or the position of n if the field is missing.
func (r *reader) position(n *yaml.Node, field string) diag.Pos {
	if n == nil {
		return diag.Pos{File: r.file}
	}
	if _, v := yamlnode.Field(n, field); v != nil {
		return yamlnode.At(r.file, v)
	}
	return yamlnode.At(r.file, n)
}

// parseTime parses a time. It returns the zero time for "".
func (r *reader) parseTime(n *yaml.Node, field, s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		r.errs.Addf(r.position(n, field), "%s: %q is not a time such as 2026-01-31T12:00:00Z", field, s)
	}
	return at.UTC()
}

// parseDigest returns s, and adds a fault if it is neither a digest nor empty.
func (r *reader) parseDigest(n *yaml.Node, field, s string) string {
	if s != "" && !imageref.IsDigest(s) {
		r.errs.Addf(r.position(n, field), "%s: %q is not a digest", field, s)
	}
	return s
}

// parseCondition returns s, and adds a fault if it is neither a condition status nor empty.
func (r *reader) parseCondition(n *yaml.Node, s string) string {
	switch metav1.ConditionStatus(s) {
	case "", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		r.errs.Addf(r.position(n, "upgradeable"), "upgradeable: %q is not one of True, False, Unknown", s)
	}
	return s
}
