package cli

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/look"
	"github.com/quayside/quayside/report/v1alpha1"
)

// statusView is what `quayside status` prints.
type statusView struct {
	Context     string         `json:"context"`
	Server      string         `json:"server"`
	Environment string         `json:"environment" doc:"what the workspace is called; empty for one without a name at the top of the repository"`
	Cluster     string         `json:"cluster" doc:"as quayside.yaml names it"`
	ObservedAt  metav1.Time    `json:"observedAt"`
	Well        bool           `json:"well"`
	Operators   []operatorView `json:"operators"`
}

type operatorView struct {
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
	CustomResources []look.CustomKind         `json:"customResources"`
	Reporter        *look.Reporter            `json:"reporter,omitempty"`
	Notes           []string                  `json:"notes,omitempty"`
}

func newStatusView(environment string, c *live.Cluster, want *look.Expected, got *look.Seen) *statusView {
	v := &statusView{
		Context: c.Context, Server: c.Server, Environment: environment, Cluster: want.Cluster, ObservedAt: metav1.NewTime(got.Summary.At), Well: got.Summary.Well(),
		Operators: []operatorView{},
	}
	for _, st := range got.Summary.Operators {
		key := st.Namespace + "/" + st.Package
		op := operatorView{
			Operator: key, Version: st.Version, Pin: string(st.Pin), Applied: append([]string{}, st.Applied...), State: st.State, Message: st.Message,
			Upgradeable: string(st.Upgradeable), UpgradeMessage: st.UpgradeMessage, Conditions: st.Status.Conditions, Summary: st.Status.Summary,
			StoredVersions: st.StoredVersions,
			Images:         append([]v1alpha1.RunningImage{}, st.Status.Images...), Objects: []v1alpha1.ObjectHealth{}, CustomResources: []look.CustomKind{},
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

// write prints the tables, with an empty line between them.
func (v *statusView) write(term *terminal.Terminal) {
	between := ""
	for _, section := range []*terminal.Table{v.operators(), v.remarks(), v.custom(), v.objects(), v.images()} {
		if len(section.Rows) > 0 {
			fmt.Fprint(term, between)
			section.Write(term)
			between = "\n"
		}
	}
}

func (v *statusView) operators() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "lock", "cluster", "status", "upgradeable", "message"}}
	for _, op := range v.Operators {
		t.Add(op.Operator, dash(op.Version), dash(strings.Join(op.Applied, ",")), string(op.State), dash(op.Upgradeable), op.Message)
		t.Paint(stateColor(op.State))
	}
	return t
}

// remarks are what else is to be said of an operator.
func (v *statusView) remarks() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "note"}}
	for _, op := range v.Operators {
		if op.Upgradeable != "" && op.Upgradeable != string(metav1.ConditionTrue) {
			t.Add(op.Operator, fmt.Sprintf("Upgradeable=%s: %s", op.Upgradeable, op.UpgradeMessage))
		}
		if c := meta.FindStatusCondition(op.Conditions, v1alpha1.ImagesMatch); c != nil && c.Status == metav1.ConditionFalse {
			t.Add(op.Operator, c.Message)
		}
		if op.Reporter != nil && op.Reporter.Message != "" {
			t.Add(op.Operator, "reporter "+op.Reporter.State+": "+op.Reporter.Message)
		}
		for _, n := range op.Notes {
			t.Add(op.Operator, n)
		}
	}
	return t
}

// objects lists every object once, those that are not well first.
func (v *statusView) objects() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"name", "namespace", "kind", "status", "message"}}
	told := map[[4]string]bool{}
	for _, well := range []bool{false, true} {
		for _, op := range v.Operators {
			for _, o := range op.Objects {
				key := [4]string{o.APIVersion, o.Kind, o.Namespace, o.Name}
				if (o.Health == v1alpha1.Current) == well && !told[key] {
					told[key] = true
					t.Add(o.Name, dash(o.Namespace), o.Kind, string(o.Health), o.Message)
					t.Paint(healthColor(o.Health))
				}
			}
		}
	}
	return t
}

func (v *statusView) images() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "workload", "container", "image", "running"}}
	for _, op := range v.Operators {
		for _, im := range op.Images {
			var digests []string
			for _, d := range im.Digests {
				digests = append(digests, catalog.Digest(d).Short())
			}
			running := cmp.Or(im.Have, strings.Join(digests, ","))
			t.Add(op.Operator, im.Kind+"/"+im.Name, im.Container, im.Want, dash(running))
		}
	}
	return t
}

// custom lists the operators' own kinds, each with the resources that are
// worth naming.
func (v *statusView) custom() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"kind", "name", "namespace", "status", "message"}}
	told := map[[2]string]bool{}
	for _, op := range v.Operators {
		for _, k := range op.CustomResources {
			key := [2]string{k.APIVersion, k.Kind}
			if told[key] || k.Count == 0 && k.Message == "" {
				continue
			}
			told[key] = true
			number := diag.Count(k.Count, "resource")
			if k.AtLeast {
				number = "at least " + number
			}
			if k.NotReady > 0 {
				number += fmt.Sprintf(", %d not ready", k.NotReady)
			}
			t.Add(k.Kind, number, "", "", k.Message)
			for _, r := range k.Resources {
				t.Add(k.Kind, r.Name, dash(r.Namespace), string(r.Health), r.Message)
				t.Paint(healthColor(r.Health))
			}
		}
	}
	return t
}

// stateColor returns the colour of an operator, "" for one that is Ready.
func stateColor(s report.State) string {
	switch s {
	case report.StateReady:
		return ""
	case report.StateFailed, report.StateMissing:
		return terminal.Red
	default:
		return terminal.Yellow
	}
}

// healthColor returns the colour of an object, "" for one that is well.
func healthColor(h v1alpha1.HealthStatus) string {
	switch h {
	case v1alpha1.Current:
		return ""
	case v1alpha1.Failed, v1alpha1.NotFound:
		return terminal.Red
	default:
		return terminal.Yellow
	}
}

// dash stands for nothing in a column.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
