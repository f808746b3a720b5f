package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Reasons of the conditions.
const (
	reasonCurrent     = "Current"
	reasonProgressing = "Progressing"
	reasonFailed      = "Failed"
	reasonUnreadable  = "Unreadable"
	reasonNoObjects   = "NoObjects"
)

// conditions returns Ready, and Stalled and Reconciling where they are True.
// bad is sorted, the worst first.
func conditions(c v1alpha1.ObjectCounts, bad []v1alpha1.ObjectHealth) []metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.Ready, Message: told(bad)}
	moving := c.InProgress + c.NotFound + c.Terminating
	switch {
	case c.Failed > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonFailed
	case moving > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonProgressing
	case len(bad) > 0:
		ready.Status, ready.Reason = metav1.ConditionUnknown, reasonUnreadable
	case c.Total == 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionUnknown, reasonNoObjects, "no object is expected"
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, reasonCurrent, diag.Count(int(c.Total), "object")+" as the lock says"
	}
	out := []metav1.Condition{ready}
	if c.Failed > 0 {
		out = append(out, metav1.Condition{
			Type: v1alpha1.Stalled, Status: metav1.ConditionTrue, Reason: reasonFailed, Message: told(only(bad, v1alpha1.Failed)),
		})
	}
	if moving > 0 {
		out = append(out, metav1.Condition{
			Type: v1alpha1.Reconciling, Status: metav1.ConditionTrue, Reason: reasonProgressing,
			Message: told(only(bad, v1alpha1.Terminating, v1alpha1.NotFound, v1alpha1.InProgress)),
		})
	}
	return out
}

func only(bad []v1alpha1.ObjectHealth, states ...v1alpha1.HealthStatus) []v1alpha1.ObjectHealth {
	return slices.DeleteFunc(slices.Clone(bad), func(b v1alpha1.ObjectHealth) bool { return !slices.Contains(states, b.Health) })
}

// maxTold is how many objects a message names.
const maxTold = 3

// told names the first few objects and why they are not Current:
// "Deployment my-etcd/etcd-operator: Available: 0/1; and 2 more".
func told(bad []v1alpha1.ObjectHealth) string {
	var parts []string
	for i, b := range bad {
		if i == maxTold {
			parts = append(parts, fmt.Sprintf("and %d more", len(bad)-maxTold))
			break
		}
		name := b.Name
		if b.Namespace != "" {
			name = b.Namespace + "/" + b.Name
		}
		parts = append(parts, short(b.Kind+" "+name)+": "+b.Message)
	}
	return strings.Join(parts, "; ")
}

const (
	operatorConditionGroup = "operators.coreos.com"
	operatorConditionKind  = "OperatorCondition"
)

// upgradeable returns what the operator says of itself: an override in the
// OperatorCondition wins, then what the operator wrote to spec, then what it
// wrote to status, as operators of the older API do. Nobody copies one into
// the other without OLM. It returns false where nothing is said.
func upgradeable(spec v1alpha1.InstallationSpec, found map[key]v1alpha1.Observed) (metav1.Condition, bool) {
	o := operatorCondition(spec, found)
	for _, at := range [][]string{{"spec", "overrides"}, {"spec", "conditions"}, {"status", "conditions"}} {
		for _, c := range kobj.Items(o, at...) {
			if kobj.Text(c, "type") != v1alpha1.Upgradeable {
				continue
			}
			out := metav1.Condition{Type: v1alpha1.Upgradeable, Status: metav1.ConditionUnknown, Message: short(kobj.Text(c, "message")), Reason: reason(kobj.Text(c, "reason"))}
			switch said := metav1.ConditionStatus(kobj.Text(c, "status")); {
			case said == metav1.ConditionTrue, said == metav1.ConditionFalse:
				out.Status = said
			case at[1] == "overrides":
				out.Status = metav1.ConditionFalse // as OLM has it
			}
			return out, true
		}
	}
	return metav1.Condition{}, false
}

// operatorCondition returns the installation's OperatorCondition, nil where
// there is none.
func operatorCondition(spec v1alpha1.InstallationSpec, found map[key]v1alpha1.Observed) map[string]any {
	if spec.OperatorCondition == "" {
		return nil
	}
	for _, ref := range spec.Objects {
		k := keyOf(ref)
		if k.group == operatorConditionGroup && k.kind == operatorConditionKind && k.name == spec.OperatorCondition {
			return found[k].Object
		}
	}
	return nil
}

// reason returns s where it can be the reason of a condition.
func reason(s string) string {
	if len(s) <= 1024 && regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`).MatchString(s) {
		return s
	}
	return operatorConditionKind
}
