package gate

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/report/v1alpha1"
)

// limits bound one file: a cluster with 300 operators that list their objects
// takes a tenth of that.
func limits() yamlnode.Limits {
	return yamlnode.Limits{Bytes: 64 << 20, Depth: 50, Nodes: 3_000_000}
}

// Read returns what a file says of clusters: what 'quayside status -o json' or
// -o yaml printed, with --all or without, and Installations as kubectl prints
// them, in any number of documents. An Installation does not say which cluster it
// is of. Every fault is found, with its place; the error is a diag.List.
func Read(file string, data []byte) ([]Observation, error) {
	docs, err := yamlnode.Documents(file, data, limits())
	if err != nil {
		return nil, err
	}
	r := reader{file: file}
	for _, n := range docs {
		r.document(n)
	}
	if len(docs) == 0 {
		r.errs.Addf(diag.Pos{File: file}, "nothing in it: "+wanted)
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return r.out, nil
}

const wanted = "want what 'quayside status -o json' or 'kubectl get installations.quayside.dev -A -o yaml' prints"

type reader struct {
	file string
	out  []Observation
	errs diag.List
}

// document reads one document, by what it is.
func (r *reader) document(n *yaml.Node) {
	kind := r.text(n, "kind")
	switch {
	case kind == v1alpha1.Kind:
		r.installation(n)
	case kind == v1alpha1.ListKind || kind == "List":
		for _, item := range r.list(n, "items") {
			if got := r.text(item, "kind"); got != v1alpha1.Kind && (kind == "List" || got != "") {
				r.errs.Addf(yamlnode.At(r.file, item), "kind %q among Installations: "+wanted, got)
				continue
			}
			r.installation(item)
		}
	case kind != "":
		r.errs.Addf(yamlnode.At(r.file, n), "kind %q: "+wanted, kind)
	case has(n, "environments"):
		for _, e := range r.list(n, "environments") {
			if _, doc := yamlnode.Field(e, "document"); doc != nil && has(doc, "operators") {
				r.status(doc)
			}
		}
	case has(n, "operators") && has(n, "cluster"):
		r.status(n)
	case has(n, "errors") && has(n, "conflicts"):
		// What status prints of a cluster that it could not look at: nothing was seen.
	default:
		r.errs.Addf(yamlnode.At(r.file, n), "neither: "+wanted)
	}
}

func has(n *yaml.Node, field string) bool {
	_, v := yamlnode.Field(n, field)
	return v != nil
}

// text returns a field that is text, "" for any other.
func (r *reader) text(n *yaml.Node, field string) string {
	_, v := yamlnode.Field(n, field)
	if v == nil {
		return ""
	}
	s, _ := yamlnode.Text(v)
	return s
}

// list returns the items of a field.
func (r *reader) list(n *yaml.Node, field string) []*yaml.Node {
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

// wireStatus is what is read of a document of status; the rest is passed over.
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

// open decodes a node, and passes over fields that into does not have.
func (r *reader) open(n *yaml.Node, into any) bool {
	before := len(r.errs)
	r.errs.Add(yamlnode.At(r.file, n), yamlnode.DecodeOpen(r.file, n, into))
	return len(r.errs) == before
}

func (r *reader) status(n *yaml.Node) {
	var w wireStatus
	if !r.open(n, &w) {
		return
	}
	at := r.time(n, "observedAt", w.ObservedAt)
	if w.Cluster == "" {
		r.errs.Addf(yamlnode.At(r.file, n), "no cluster: "+wanted)
	}
	for _, node := range w.Operators {
		var op wireOperator
		if !r.open(node, &op) {
			continue
		}
		o := Observation{
			Environment: w.Environment, Cluster: w.Cluster, Operator: op.Operator, At: at, Version: op.Version,
			Bundle: r.digest(node, "bundleDigest", op.BundleDigest), Checksum: r.digest(node, "pin", op.Pin),
			Healthy: op.State == "Ready", Message: strings.TrimSuffix(op.State+": "+op.Message, ": "),
			Upgradeable: r.condition(node, op.Upgradeable), UpgradeMessage: op.UpgradeMessage,
		}
		if o.Healthy && op.Reporter.State == "current" && op.Reporter.ReadySince != "" {
			_, reporter := yamlnode.Field(node, "reporter")
			o.Since = r.time(reporter, "readySince", op.Reporter.ReadySince)
		}
		r.add(node, o)
	}
}

// wireInstallation is what is read of an Installation.
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

func (r *reader) installation(n *yaml.Node) {
	var w wireInstallation
	if api := r.text(n, "apiVersion"); api != "" && !strings.HasPrefix(api, v1alpha1.Group+"/") {
		r.errs.Addf(r.at(n, "apiVersion"), "an Installation of %q is not quayside's: ask for installations.%s", api, v1alpha1.Group)
		return
	}
	if !r.open(n, &w) {
		return
	}
	_, spec := yamlnode.Field(n, "spec")
	_, status := yamlnode.Field(n, "status")
	o := Observation{
		Operator: w.Metadata.Namespace + "/" + w.Spec.Package, At: r.time(status, "observedAt", w.Status.ObservedAt), Version: w.Spec.Version,
		Bundle: r.digest(spec, "bundleDigest", w.Spec.BundleDigest), Checksum: r.digest(spec, "pin", w.Spec.Pin),
		Message: "its reporter has not looked yet",
	}
	if w.Status.ReadySince != "" {
		o.Since = r.time(status, "readySince", w.Status.ReadySince)
	}
	for _, c := range w.Status.Conditions {
		switch c.Type {
		case v1alpha1.Ready:
			o.Healthy, o.Message = c.Status == string(metav1.ConditionTrue), c.Message
		case v1alpha1.Upgradeable:
			o.Upgradeable, o.UpgradeMessage = r.condition(status, c.Status), c.Message
		}
	}
	if w.Status.Pin != w.Spec.Pin || w.Status.ObservedGeneration != w.Metadata.Generation && w.Metadata.Generation != 0 {
		o.Healthy, o.Since, o.Message = false, time.Time{}, "its reporter has not looked at this pin yet"
	}
	r.add(n, o)
}

// add takes in an observation that names an operator.
func (r *reader) add(n *yaml.Node, o Observation) {
	namespace, pkg, ok := strings.Cut(o.Operator, "/")
	if !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") {
		r.errs.Addf(yamlnode.At(r.file, n), "operator %q: want namespace/package", o.Operator)
		return
	}
	r.out = append(r.out, o)
}

// at returns where a field of n stands, else n.
func (r *reader) at(n *yaml.Node, field string) diag.Pos {
	if n == nil {
		return diag.Pos{File: r.file}
	}
	if _, v := yamlnode.Field(n, field); v != nil {
		return yamlnode.At(r.file, v)
	}
	return yamlnode.At(r.file, n)
}

// time reads a time; none is the zero time.
func (r *reader) time(n *yaml.Node, field, s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		r.errs.Addf(r.at(n, field), "%s: %q is not a time such as 2026-01-31T12:00:00Z", field, s)
	}
	return at.UTC()
}

// digest reads a digest, or none.
func (r *reader) digest(n *yaml.Node, field, s string) string {
	if s != "" && !imageref.IsDigest(s) {
		r.errs.Addf(r.at(n, field), "%s: %q is not a digest", field, s)
	}
	return s
}

// condition reads the status of a condition, or none.
func (r *reader) condition(n *yaml.Node, s string) string {
	switch metav1.ConditionStatus(s) {
	case "", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		r.errs.Addf(r.at(n, "upgradeable"), "upgradeable: %q is none of True, False, Unknown", s)
	}
	return s
}
