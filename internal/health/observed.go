package health

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/imageref"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/model"
)

// Header of the observed file.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "Observed"
)

// FormatObserved returns the canonical bytes of an observed file.
func FormatObserved(s Summary) []byte {
	var b bytes.Buffer
	b.WriteString("# Written by quayside status, for quayside resolve --observed.\n")
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nobservedAt: %q\n", APIVersion, Kind, s.At.UTC().Format(time.RFC3339))
	if s.Cluster != "" {
		fmt.Fprintf(&b, "cluster: %s\n", yamlnode.Quote(s.Cluster))
	}
	if len(s.Operators) == 0 {
		b.WriteString("operators: []\n")
		return b.Bytes()
	}
	b.WriteString("operators:\n")
	for _, o := range s.Operators {
		sep := "- "
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "%s%s: %s\n", sep, name, yamlnode.Quote(value))
				sep = "  "
			}
		}
		field("namespace", o.Namespace)
		field("package", o.Package)
		field("version", o.Version)
		field("pin", string(o.Pin))
		field("state", string(o.State))
		field("message", o.Message)
		field("upgradeable", string(o.Upgradeable))
		field("upgradeMessage", o.UpgradeMessage)
		if len(o.Applied) > 0 {
			b.WriteString("  applied:\n")
			for _, v := range o.Applied {
				fmt.Fprintf(&b, "  - %s\n", yamlnode.Quote(v))
			}
		}
		formatStored(&b, o.StoredVersions)
	}
	return b.Bytes()
}

func formatStored(b *bytes.Buffer, list []v1alpha1.StoredVersions) {
	if len(list) > 0 {
		b.WriteString("  storedVersions:\n")
	}
	for _, s := range list {
		quoted := make([]string, len(s.Versions))
		for i, v := range s.Versions {
			quoted[i] = yamlnode.Quote(v)
		}
		fmt.Fprintf(b, "  - {crd: %s, versions: [%s]}\n", yamlnode.Quote(s.Definition), strings.Join(quoted, ", "))
	}
}

type wireFile struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	ObservedAt string       `json:"observedAt"`
	Cluster    string       `json:"cluster"`
	Operators  []*yaml.Node `json:"operators"`
}

type wireOperator struct {
	Namespace      string       `json:"namespace"`
	Package        string       `json:"package"`
	Version        string       `json:"version"`
	Pin            string       `json:"pin"`
	State          string       `json:"state"`
	Message        string       `json:"message"`
	Upgradeable    string       `json:"upgradeable"`
	UpgradeMessage string       `json:"upgradeMessage"`
	Applied        []string     `json:"applied"`
	StoredVersions []wireStored `json:"storedVersions"`
}

type wireStored struct {
	Definition string   `json:"crd"`
	Versions   []string `json:"versions"`
}

// ParseObserved parses an observed file as written by FormatObserved. The error is a diag.List of
// all faults.
func ParseObserved(file string, data []byte) (*Summary, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: 32 << 20, Depth: 20, Nodes: 1_000_000})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "want one document, got %d: write it with 'quayside status --save'", len(docs))}
	}
	var errs diag.List
	var w wireFile
	if yamlnode.Header(file, docs[0], APIVersion, Kind, &errs) {
		errs.Add(diag.Pos{File: file}, yamlnode.Decode(file, docs[0], &w))
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	p := parser{file: file}
	out := &Summary{At: p.parseTime(docs[0], w.ObservedAt), Cluster: clipMessage(w.Cluster)}
	for _, n := range w.Operators {
		out.Operators = append(out.Operators, p.parseOperator(n))
	}
	slices.SortStableFunc(out.Operators, byName)
	for i, o := range out.Operators {
		if i > 0 && o.Package != "" && byName(out.Operators[i-1], o) == 0 {
			p.errs.Addf(o.Pos, "operator %q twice, first at %s", o.Namespace+"/"+o.Package, out.Operators[i-1].Pos)
		}
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

type parser struct {
	file string
	errs diag.List
}

// position returns the position of a field of n, or the position of n if the field is missing.
func (p *parser) position(n *yaml.Node, field string) diag.Pos {
	if _, v := yamlnode.Field(n, field); v != nil {
		return yamlnode.At(p.file, v)
	}
	return yamlnode.At(p.file, n)
}

func (p *parser) parseTime(n *yaml.Node, s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		p.errs.Addf(p.position(n, "observedAt"), "observedAt: %q is not a time such as 2026-01-31T12:00:00Z", s)
	}
	return at.UTC()
}

func (p *parser) parseOperator(n *yaml.Node) OperatorHealth {
	var w wireOperator
	p.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
	for _, f := range [][2]string{{"namespace", w.Namespace}, {"package", w.Package}, {"state", w.State}} {
		if f[1] == "" {
			p.errs.Addf(yamlnode.At(p.file, n), "operator %q: no %s", w.Namespace+"/"+w.Package, f[0])
		}
	}
	if w.State != "" && !slices.Contains(States(), State(w.State)) {
		p.errs.Addf(p.position(n, "state"), "state: %q is not one of %s", w.State, joinStrings(States()))
	}
	if w.Upgradeable != "" && !slices.Contains(conditionStatuses(), metav1.ConditionStatus(w.Upgradeable)) {
		p.errs.Addf(p.position(n, "upgradeable"), "upgradeable: %q is not one of %s", w.Upgradeable, joinStrings(conditionStatuses()))
	}
	if w.Pin != "" && !imageref.IsDigest(w.Pin) {
		p.errs.Addf(p.position(n, "pin"), "pin: %q is not a checksum", w.Pin)
	}
	for i, v := range w.Applied {
		w.Applied[i] = clipMessage(v)
	}
	return OperatorHealth{
		Namespace: w.Namespace, Package: w.Package, Version: clipMessage(w.Version), Pin: model.Digest(w.Pin), Applied: w.Applied,
		State: State(w.State), Message: inert.Line(w.Message),
		Upgradeable: metav1.ConditionStatus(w.Upgradeable), UpgradeMessage: inert.Line(w.UpgradeMessage),
		StoredVersions: p.parseStoredVersions(n, w.StoredVersions), Pos: yamlnode.At(p.file, n),
	}
}

// parseStoredVersions returns the sorted stored versions of n. It adds a fault for an entry without
// versions, because every CRD has at least one.
func (p *parser) parseStoredVersions(n *yaml.Node, list []wireStored) []v1alpha1.StoredVersions {
	var out []v1alpha1.StoredVersions
	for _, s := range list {
		if s.Definition == "" || len(s.Versions) == 0 || slices.Contains(s.Versions, "") {
			p.errs.Addf(p.position(n, "storedVersions"), "storedVersions: want a CRD and its versions, such as {crd: widgets.example.com, versions: [v1]}")
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
