package kobj

// The labels by which objects of a tree say whose they are. On Deployments and
// CRDs the version is an annotation, too, with the exact value.
const (
	LabelPackage   = "quayside.dev/package"
	LabelNamespace = "quayside.dev/install-namespace"
	LabelVersion   = "quayside.dev/version"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// Manager is what [LabelManagedBy] says where a bundle says nothing else.
const Manager = "quayside"
