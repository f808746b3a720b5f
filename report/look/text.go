package look

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
	"github.com/quayside/quayside/report/v1alpha1"
)

// Write prints the tables, with an empty line between them.
func (v *Status) Write(term *terminal.Terminal) {
	between := ""
	for _, section := range []*terminal.Table{v.operators(), v.remarks(), v.custom(), v.objects(), v.images()} {
		if len(section.Rows) > 0 {
			fmt.Fprint(term, between)
			section.Write(term)
			between = "\n"
		}
	}
}

// Unwell says which operators are not Ready, a few of them by name; it is empty where
// all is well.
func (v *Status) Unwell() string {
	if v.Well {
		return ""
	}
	var names []string
	for _, op := range v.Operators {
		if op.State != report.StateReady {
			names = append(names, fmt.Sprintf("%s (%s)", op.Operator, op.State))
		}
	}
	const most = 5
	if more := len(names) - most; more > 1 {
		names = append(names[:most:most], fmt.Sprintf("and %d more", more))
	}
	return "not well: " + strings.Join(names, ", ")
}

func (v *Status) operators() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "lock", "cluster", "status", "upgradeable", "message"}}
	for _, op := range v.Operators {
		t.Add(op.Operator, terminal.Dash(op.Version), terminal.Dash(strings.Join(op.Applied, ",")), string(op.State), terminal.Dash(op.Upgradeable), op.Message)
		t.Paint(stateColor(op.State))
	}
	return t
}

// remarks are what else is to be said of an operator.
func (v *Status) remarks() *terminal.Table {
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
func (v *Status) objects() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"name", "namespace", "kind", "status", "message"}}
	told := map[[4]string]bool{}
	for _, well := range []bool{false, true} {
		for _, op := range v.Operators {
			for _, o := range op.Objects {
				key := [4]string{o.APIVersion, o.Kind, o.Namespace, o.Name}
				if (o.Health == v1alpha1.Current) == well && !told[key] {
					told[key] = true
					t.Add(o.Name, terminal.Dash(o.Namespace), o.Kind, string(o.Health), o.Message)
					t.Paint(healthColor(o.Health))
				}
			}
		}
	}
	return t
}

func (v *Status) images() *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "workload", "container", "image", "running"}}
	for _, op := range v.Operators {
		for _, im := range op.Images {
			var digests []string
			for _, d := range im.Digests {
				digests = append(digests, catalog.Digest(d).Short())
			}
			running := cmp.Or(im.Have, strings.Join(digests, ","))
			t.Add(op.Operator, im.Kind+"/"+im.Name, im.Container, im.Want, terminal.Dash(running))
		}
	}
	return t
}

// custom lists the operators' own kinds, each with the resources that are
// worth naming.
func (v *Status) custom() *terminal.Table {
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
				t.Add(k.Kind, r.Name, terminal.Dash(r.Namespace), string(r.Health), r.Message)
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
