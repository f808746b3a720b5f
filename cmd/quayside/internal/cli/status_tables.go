package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/status"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/terminal"
)

// writeStatus prints the tables of a status, separated by empty lines.
func writeStatus(term *terminal.Terminal, v *status.Status) {
	between := ""
	for _, section := range []*terminal.Table{statusTable(v), notesTable(v), customTable(v), objectsTable(v), imagesTable(v)} {
		if len(section.Rows) > 0 {
			fmt.Fprint(term, between)
			section.Write(term)
			between = "\n"
		}
	}
}

// unhealthyMessage names the first operators that are not Ready. It returns "" if all are.
func unhealthyMessage(v *status.Status) string {
	if v.Healthy {
		return ""
	}
	var names []string
	for _, op := range v.Operators {
		if op.State != health.StateReady {
			names = append(names, fmt.Sprintf("%s (%s)", op.Key(), op.State))
		}
	}
	const most = 5
	if more := len(names) - most; more > 1 {
		names = append(names[:most:most], fmt.Sprintf("and %d more", more))
	}
	return "unhealthy: " + strings.Join(names, ", ")
}

// statusTable lists the operators with their versions and states.
func statusTable(v *status.Status) *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "lock", "cluster", "status", "upgradeable", "message"}}
	for _, op := range v.Operators {
		t.Add(op.Key(), terminal.Dash(op.Version), terminal.Dash(strings.Join(op.Applied, ",")), string(op.State), terminal.Dash(string(op.Upgradeable)), op.Message)
		t.Paint(colorOf(op.State, health.StateReady, health.StateFailed, health.StateMissing))
	}
	return t
}

// notesTable lists further notes about operators.
func notesTable(v *status.Status) *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "note"}}
	for _, op := range v.Operators {
		if op.Upgradeable != "" && op.Upgradeable != metav1.ConditionTrue {
			t.Add(op.Key(), fmt.Sprintf("Upgradeable=%s: %s", op.Upgradeable, op.UpgradeMessage))
		}
		if c := meta.FindStatusCondition(op.Details.Conditions, v1alpha1.ImagesMatch); c != nil && c.Status == metav1.ConditionFalse {
			t.Add(op.Key(), c.Message)
		}
		if op.Details.Reporter != nil && op.Details.Reporter.Message != "" {
			t.Add(op.Key(), "reporter "+op.Details.Reporter.State+": "+op.Details.Reporter.Message)
		}
		for _, n := range op.Details.Notes {
			t.Add(op.Key(), n)
		}
	}
	return t
}

// objectsTable lists every object once. Unhealthy objects come first.
func objectsTable(v *status.Status) *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"name", "namespace", "kind", "status", "message"}}
	seen := map[[4]string]bool{}
	for _, healthy := range []bool{false, true} {
		for _, op := range v.Operators {
			for _, o := range op.Details.Objects {
				key := [4]string{o.APIVersion, o.Kind, o.Namespace, o.Name}
				if (o.Health == v1alpha1.Current) == healthy && !seen[key] {
					seen[key] = true
					t.Add(o.Name, terminal.Dash(o.Namespace), o.Kind, string(o.Health), o.Message)
					t.Paint(healthColor(o.Health))
				}
			}
		}
	}
	return t
}

func imagesTable(v *status.Status) *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"operator", "workload", "container", "image", "running"}}
	for _, op := range v.Operators {
		for _, im := range op.Details.Images {
			var digests []string
			for _, d := range im.Digests {
				digests = append(digests, catalog.Digest(d).Short())
			}
			running := cmp.Or(im.Have, strings.Join(digests, ","))
			t.Add(op.Key(), im.Kind+"/"+im.Name, im.Container, im.Want, terminal.Dash(running))
		}
	}
	return t
}

// customTable lists the kinds that operators define, with some of their custom resources.
func customTable(v *status.Status) *terminal.Table {
	t := &terminal.Table{Uncut: true, Head: []string{"kind", "count", "name", "namespace", "status", "message"}}
	seen := map[[2]string]bool{}
	for _, op := range v.Operators {
		for _, k := range op.Details.CustomResources {
			key := [2]string{k.APIVersion, k.Kind}
			if seen[key] || k.Count == 0 && k.Message == "" {
				continue
			}
			seen[key] = true
			number := strconv.Itoa(k.Count)
			if k.AtLeast {
				number = ">=" + number
			}
			notReady := ""
			if k.NotReady > 0 {
				notReady = fmt.Sprintf("%d not ready", k.NotReady)
			}
			t.Add(k.Kind, number, "", "", notReady, k.Message)
			for _, r := range k.Resources {
				t.Add(k.Kind, "", r.Name, terminal.Dash(r.Namespace), string(r.Health), r.Message)
				t.Paint(healthColor(r.Health))
			}
		}
	}
	return t
}

// colorOf returns the color of a state: "" for good, red for the states in bad, yellow for any other.
func colorOf[T comparable](state, good T, bad ...T) string {
	switch {
	case state == good:
		return ""
	case slices.Contains(bad, state):
		return terminal.Red
	default:
		return terminal.Yellow
	}
}

// healthColor returns the color of an object, or "" if it is healthy.
func healthColor(h v1alpha1.HealthStatus) string {
	return colorOf(h, v1alpha1.Current, v1alpha1.Failed, v1alpha1.NotFound)
}
