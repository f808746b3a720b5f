package k8s

// API groups whose objects are treated specially.
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
