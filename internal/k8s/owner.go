package k8s

// Labels of rendered objects that identify the operator that they belong to. Deployments and CRDs
// also have an annotation with the exact version.
const (
	LabelPackage   = "quayside.dev/package"
	LabelNamespace = "quayside.dev/install-namespace"
	LabelVersion   = "quayside.dev/version"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// Manager is the default value of [LabelManagedBy].
const Manager = "quayside"
