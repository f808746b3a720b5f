package k8s

import "strings"

// The API groups whose objects have rules of their own.
const (
	RBACGroup       = "rbac.authorization.k8s.io"
	AdmissionGroup  = "admissionregistration.k8s.io"
	CRDGroup        = "apiextensions.k8s.io"
	APIServiceGroup = "apiregistration.k8s.io"
	OLMGroup        = "operators.coreos.com"     // OLM v0
	OLMv1Group      = "olm.operatorframework.io" // OLM v1
)

// IsWebhookConfig reports whether an object configures admission webhooks.
func (k Key) IsWebhookConfig() bool {
	return k.Group == AdmissionGroup && (k.Kind == "ValidatingWebhookConfiguration" || k.Kind == "MutatingWebhookConfiguration")
}

// EscapePointer escapes a key for a JSON pointer.
func EscapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Condition returns the condition of a type in status.conditions, or nil.
func Condition(o map[string]any, kind string) map[string]any {
	for _, c := range Items(o, "status", "conditions") {
		if Text(c, "type") == kind {
			return c
		}
	}
	return nil
}

// HasCondition reports whether the condition of a type is True.
func HasCondition(o map[string]any, kind string) bool {
	return Text(Condition(o, kind), "status") == "True"
}
