package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// parseLimits returns the limits for one file. They suffice for ten times the complete status of 300 operators.
func parseLimits() yamlnode.Limits {
	return yamlnode.Limits{Bytes: 64 << 20, Depth: 50, Nodes: 3_000_000}
}

// Read parses a file with any number of documents. A document is the output of 'quayside status', with or
// without --all, a file that this command saved, or Installations as printed by kubectl. Installations do
// not name their cluster, so Read takes the UID of the cluster from the Namespace kube-system in the same
// file. The error is a diag.List of all faults.
func Read(file string, data []byte) ([]*Summary, error) {
	docs, err := yamlnode.Documents(file, data, parseLimits())
	if err != nil {
		return nil, err
	}
	r := reader{parser: parser{file: file}}
	for _, n := range docs {
		r.readDocument(n)
	}
	if len(docs) == 0 {
		r.errs.Addf(diag.Pos{File: file}, "empty: "+supportedInput)
	}
	for _, s := range r.dumps {
		s.ClusterUID = r.systemUID
		r.add(s)
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return r.out, nil
}

const supportedInput = "expected a file of 'quayside status --save', or the output of 'quayside status -o json' or 'kubectl get installations.quayside.dev -A -o yaml'"

type reader struct {
	parser
	out       []*Summary
	dumps     []*Summary // summaries of Installations printed by kubectl
	systemUID string
}

// readDocument parses one document of any kind that [Read] accepts.
func (r *reader) readDocument(n *yamlnode.Node) {
	switch kind := r.textField(n, "kind"); {
	case kind == Kind:
		if s := r.parseObserved(n); s != nil {
			r.add(s)
		}
	case kind == v1alpha1.Kind, kind == "Namespace":
		r.readObject(n, kind)
	case kind == v1alpha1.ListKind || kind == "List":
		r.dumps = append(r.dumps, &Summary{Combined: true})
		for _, item := range r.listField(n, "items") {
			r.readObject(item, cmp.Or(r.textField(item, "kind"), strings.TrimSuffix(kind, "List")))
		}
	case kind != "":
		r.errs.Addf(yamlnode.At(r.file, n), "kind %q: "+supportedInput, kind)
	case hasField(n, "environments"):
		for _, e := range r.listField(n, "environments") {
			if _, doc := yamlnode.Field(e, "document"); doc != nil {
				r.readDocument(doc)
			}
		}
	case hasField(n, "operators"):
		at := yamlnode.At(r.file, n)
		r.errs.Add(at, diag.Hintf(at, "write a new file with 'quayside status --save FILE'", "no kind: an older quayside printed this observation"))
	case hasField(n, "errors") && hasField(n, "conflicts"):
		// 'quayside status' prints this document for a cluster that cannot be reached.
	default:
		r.errs.Addf(yamlnode.At(r.file, n), "unknown document: "+supportedInput)
	}
}

// readObject parses an Installation, or a Namespace in the same output of kubectl.
func (r *reader) readObject(n *yamlnode.Node, kind string) {
	switch kind {
	case v1alpha1.Kind, "":
		r.readInstallation(n)
	case "Namespace":
		if _, meta := yamlnode.Field(n, "metadata"); meta != nil && r.textField(meta, "name") == SystemNamespace {
			r.systemUID = clipMessage(r.textField(meta, "uid"))
		}
	default:
		r.errs.Addf(yamlnode.At(r.file, n), "kind %q among Installations: "+supportedInput, kind)
	}
}

// add sorts the operators of a summary and adds the summary. It adds a fault for each duplicate operator.
func (r *reader) add(s *Summary) {
	slices.SortStableFunc(s.Operators, compareOperators)
	for i, o := range s.Operators {
		if i > 0 && o.Package != "" && compareOperators(s.Operators[i-1], o) == 0 {
			r.errs.Addf(o.Pos, "duplicate operator %q: first at %s", o.Key(), s.Operators[i-1].Pos)
		}
	}
	r.out = append(r.out, s)
}

func hasField(n *yamlnode.Node, field string) bool {
	_, v := yamlnode.Field(n, field)
	return v != nil
}

// textField returns the string in a field of n, or "" if there is none.
func (r *reader) textField(n *yamlnode.Node, field string) string {
	_, v := yamlnode.Field(n, field)
	if v == nil {
		return ""
	}
	s, _ := yamlnode.Text(v)
	return s
}

// listField returns the items of the list in a field of n. It adds a fault for a value of another type.
func (r *reader) listField(n *yamlnode.Node, field string) []*yamlnode.Node {
	_, v := yamlnode.Field(n, field)
	switch {
	case v == nil || v.Tag == "!!null":
		return nil
	case v.Kind != yamlnode.SequenceNode:
		r.errs.Addf(yamlnode.At(r.file, v), "%s: expected a list", field)
		return nil
	}
	return v.Content
}

// decodeOpen decodes a node into a struct and ignores unknown fields. On a fault, it adds the fault and returns
// false.
func (r *reader) decodeOpen(n *yamlnode.Node, into any) bool {
	before := len(r.errs)
	r.errs.Add(yamlnode.At(r.file, n), yamlnode.DecodeOpen(r.file, n, into))
	return len(r.errs) == before
}

// splitName splits "namespace/package". It adds a fault for text of another form.
func (r *reader) splitName(n *yamlnode.Node, name string) (namespace, pkg string) {
	namespace, pkg, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") {
		r.errs.Addf(yamlnode.At(r.file, n), "operator %q: must be namespace/package", name)
	}
	return namespace, pkg
}

// wireInstallation holds the fields of an Installation that are used here.
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
		StoredVersions     []wireStored    `json:"storedVersions"`
	} `json:"status"`
}

type wireCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

func (r *reader) readInstallation(n *yamlnode.Node) {
	var w wireInstallation
	if api := r.textField(n, "apiVersion"); api != "" && !strings.HasPrefix(api, v1alpha1.Group+"/") {
		r.errs.Addf(r.position(n, "apiVersion"), "an Installation of %q does not belong to quayside: use installations.%s", api, v1alpha1.Group)
		return
	}
	if !r.decodeOpen(n, &w) {
		return
	}
	namespace, pkg := r.splitName(n, w.Metadata.Namespace+"/"+w.Spec.Package)
	op := wireOperator{
		Namespace: namespace, Package: pkg, Version: w.Spec.Version, Pin: w.Spec.Pin, BundleDigest: w.Spec.BundleDigest,
		StoredVersions: w.Status.StoredVersions, State: string(StateUnknown), Message: "its reporter has not reported yet", ReadySince: w.Status.ReadySince,
	}
	if w.Spec.Version != "" {
		op.Applied = []string{w.Spec.Version}
	}
	for _, c := range w.Status.Conditions {
		switch c.Type {
		case v1alpha1.Ready:
			op.State, op.Message = string(StateProgressing), c.Message
			if c.Status == string(metav1.ConditionTrue) {
				op.State, op.Message = string(StateReady), ""
			}
		case v1alpha1.Upgradeable:
			op.Upgradeable, op.UpgradeMessage = c.Status, c.Message
		}
	}
	if w.Status.Pin != w.Spec.Pin || w.Status.ObservedGeneration != w.Metadata.Generation && w.Metadata.Generation != 0 {
		op.State, op.ReadySince, op.Message = string(StateUnknown), "", "its reporter has not reported this pin yet"
	}
	o := r.newOperator(n, op)
	_, status := yamlnode.Field(n, "status")
	o.At = r.parseOptionalTime(cmp.Or(status, n), "observedAt", w.Status.ObservedAt)
	if n := len(r.dumps); n == 0 || slices.ContainsFunc(r.dumps[n-1].Operators, func(b OperatorHealth) bool { return compareOperators(b, o) == 0 }) {
		r.dumps = append(r.dumps, &Summary{Combined: true})
	}
	s := r.dumps[len(r.dumps)-1]
	s.Operators = append(s.Operators, o)
	if o.At.After(s.At) {
		s.At = o.At
	}
}

// parseOptionalTime parses a time. It returns the zero time for an empty string, and adds a fault for an invalid time.
func (p *parser) parseOptionalTime(n *yamlnode.Node, field, s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	return p.parseTime(n, field, s)
}
