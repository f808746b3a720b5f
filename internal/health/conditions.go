package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Reasons of conditions.
const (
	reasonCurrent     = "Current"
	reasonProgressing = "Progressing"
	reasonFailed      = "Failed"
	reasonUnreadable  = "Unreadable"
	reasonNoObjects   = "NoObjects"
)

// newConditions returns the condition Ready, and the conditions Stalled and Reconciling if they are True. bad
// contains the objects that are not Current, in the order of sortWorstFirst.
func newConditions(c v1alpha1.ObjectCounts, bad []v1alpha1.ObjectHealth) []metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.Ready, Message: describeObjects(bad)}
	pending := c.InProgress + c.NotFound + c.Terminating
	switch {
	case c.Failed > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonFailed
	case pending > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonProgressing
	case len(bad) > 0:
		ready.Status, ready.Reason = metav1.ConditionUnknown, reasonUnreadable
	case c.Total == 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionUnknown, reasonNoObjects, "no objects expected"
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, reasonCurrent, diag.Count(int(c.Total), "object")+" as locked"
	}
	out := []metav1.Condition{ready}
	if c.Failed > 0 {
		out = append(out, metav1.Condition{
			Type: v1alpha1.Stalled, Status: metav1.ConditionTrue, Reason: reasonFailed, Message: describeObjects(filterByHealth(bad, v1alpha1.Failed)),
		})
	}
	if pending > 0 {
		out = append(out, metav1.Condition{
			Type: v1alpha1.Reconciling, Status: metav1.ConditionTrue, Reason: reasonProgressing,
			Message: describeObjects(filterByHealth(bad, v1alpha1.Terminating, v1alpha1.NotFound, v1alpha1.InProgress)),
		})
	}
	return out
}

func filterByHealth(bad []v1alpha1.ObjectHealth, states ...v1alpha1.HealthStatus) []v1alpha1.ObjectHealth {
	return slices.DeleteFunc(slices.Clone(bad), func(b v1alpha1.ObjectHealth) bool { return !slices.Contains(states, b.Health) })
}

// maxNamed is the maximum number of objects in a message.
const maxNamed = 3

// describeObjects formats the first objects of bad with their messages, such as "Deployment
// my-etcd/etcd-operator: Available: 0/1; and 2 more".
func describeObjects(bad []v1alpha1.ObjectHealth) string {
	var parts []string
	for i, b := range bad {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(bad)-maxNamed))
			break
		}
		name := b.Name
		if b.Namespace != "" {
			name = b.Namespace + "/" + b.Name
		}
		parts = append(parts, clipMessage(b.Kind+" "+name)+": "+b.Message)
	}
	return strings.Join(parts, "; ")
}

const operatorConditionKind = "OperatorCondition"

// upgradeableCondition returns the Upgradeable condition from the OperatorCondition of the operator. It returns
// false if there is none. The order of precedence is spec.overrides, spec.conditions, status.conditions.
// Operators with the older API write status.conditions. All three are evaluated because, without OLM, nothing
// copies conditions between them.
func upgradeableCondition(spec v1alpha1.InstallationSpec, found map[k8s.Key]v1alpha1.Observed) (metav1.Condition, bool) {
	o := operatorCondition(spec, found)
	for _, at := range [][]string{{"spec", "overrides"}, {"spec", "conditions"}, {"status", "conditions"}} {
		for _, c := range k8s.Items(o, at...) {
			if k8s.Text(c, "type") != v1alpha1.Upgradeable {
				continue
			}
			out := metav1.Condition{Type: v1alpha1.Upgradeable, Status: metav1.ConditionUnknown, Message: clipMessage(k8s.Text(c, "message")), Reason: conditionReason(k8s.Text(c, "reason"))}
			switch status := metav1.ConditionStatus(k8s.Text(c, "status")); {
			case status == metav1.ConditionTrue, status == metav1.ConditionFalse:
				out.Status = status
			case at[1] == "overrides":
				out.Status = metav1.ConditionFalse // as in OLM
			}
			return out, true
		}
	}
	return metav1.Condition{}, false
}

// operatorCondition returns the OperatorCondition of the installation, or nil if there is none.
func operatorCondition(spec v1alpha1.InstallationSpec, found map[k8s.Key]v1alpha1.Observed) map[string]any {
	if spec.OperatorCondition == "" {
		return nil
	}
	for _, ref := range spec.Objects {
		k := keyOf(ref)
		if k.Group == k8s.OLMGroup && k.Kind == operatorConditionKind && k.Name == spec.OperatorCondition {
			return found[k].Object
		}
	}
	return nil
}

// conditionReason returns s if s is a valid reason of a condition, otherwise a default reason.
func conditionReason(s string) string {
	if len(s) <= 1024 && regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`).MatchString(s) {
		return s
	}
	return operatorConditionKind
}
