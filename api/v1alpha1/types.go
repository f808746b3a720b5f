package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Group, version, kind and resource names of the API.
const (
	Group    = "quayside.dev"
	Version  = "v1alpha1"
	Kind     = "Installation"
	ListKind = "InstallationList"
	Resource = "installations"
)

// Installation is one operator version pinned in quayside.lock and rendered for a cluster.
type Installation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InstallationSpec   `json:"spec" doc:"Desired state of the pin in the lock. Written by quayside render."`
	Status InstallationStatus `json:"status,omitzero" doc:"Observed state. Written only by the reporter."`
}

// InstallationList is a list of Installations.
type InstallationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Installation `json:"items"`
}

// InstallationSpec is the desired state of a pin in the cluster.
type InstallationSpec struct {
	Package           string            `json:"package" doc:"Package of the operator."`
	Version           string            `json:"version" doc:"Version that the lock pins."`
	Bundle            string            `json:"bundle,omitempty" doc:"Bundle that the lock pins."`
	Channel           string            `json:"channel,omitempty" doc:"Channel that the bundle was chosen from."`
	Pin               string            `json:"pin" doc:"Digest of the pin's block in the lock."`
	BundleDigest      string            `json:"bundleDigest,omitempty" doc:"Digest of the bundle image, or of its manifests if the catalog embeds them."`
	OperatorCondition string            `json:"operatorCondition,omitempty" doc:"Name of the OperatorCondition in this namespace with which the operator reports whether it is upgradeable."`
	Objects           []ObjectReference `json:"objects,omitempty" doc:"All objects rendered for the pin, sorted by group, kind, namespace and name."`
}

// ObjectReference identifies a rendered object.
type ObjectReference struct {
	APIVersion string           `json:"apiVersion" doc:"Group and version."`
	Kind       string           `json:"kind" doc:"Kind."`
	Namespace  string           `json:"namespace,omitempty" doc:"Namespace. Empty for cluster-scoped objects."`
	Name       string           `json:"name" doc:"Name."`
	Version    string           `json:"version,omitempty" doc:"Expected value of the version label. Empty: the label is not checked."`
	Images     []ContainerImage `json:"images,omitempty" doc:"Images of a workload's containers, init containers first."`
}

// ContainerImage is the expected image of a container of a workload.
type ContainerImage struct {
	Container string `json:"container" doc:"Name of the container."`
	Image     string `json:"image" doc:"Reference of the image."`
}

// Condition types of an Installation. As in kstatus, Stalled and Reconciling are present only while
// they are True. The others can also be False or Unknown.
const (
	Ready       = "Ready"       // every object matches the lock and is healthy
	Reconciling = "Reconciling" // a change is in progress
	Stalled     = "Stalled"     // manual action is required
	Upgradeable = "Upgradeable" // as reported by the operator; absent if not reported
	ImagesMatch = "ImagesMatch" // whether pods run the locked digests; absent if the lock has no digests
)

// LabelVersion is the label of an object that contains the version of the object's operator.
const LabelVersion = "quayside.dev/version"

// InstallationStatus is the state observed by the reporter.
type InstallationStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty" doc:"Generation of the Installation that this status describes."`
	Pin                string             `json:"pin,omitempty" doc:"spec.pin that this status describes."`
	Version            string             `json:"version,omitempty" doc:"spec.version that this status describes."`
	BundleDigest       string             `json:"bundleDigest,omitempty" doc:"spec.bundleDigest that this status describes."`
	ObservedAt         *metav1.Time       `json:"observedAt,omitempty" doc:"Time of the observation: updated with each change of this status, and otherwise every hour."`
	ReadySince         *metav1.Time       `json:"readySince,omitempty" doc:"Start of the current uninterrupted Ready period of this bundle. Absent if it is not Ready."`
	PreviousVersion    string             `json:"previousVersion,omitempty" doc:"Version that this one replaced. Absent if the reporter saw no other."`
	ReplacedAt         *metav1.Time       `json:"replacedAt,omitempty" doc:"Time of the first observation after the replacement of previousVersion."`
	Conditions         []metav1.Condition `json:"conditions,omitempty" doc:"Ready, Reconciling, Stalled, Upgradeable, ImagesMatch."`
	Summary            ObjectCounts       `json:"summary,omitzero" doc:"Number of objects in each state."`
	Objects            []ObjectHealth     `json:"objects,omitempty" doc:"Objects that are not Current, the worst first."`
	MoreObjects        int32              `json:"moreObjects,omitempty" doc:"Number of objects that are not Current and not in the list."`
	StoredVersions     []StoredVersions   `json:"storedVersions,omitempty" doc:"CRDs with more than one version, sorted by name, with the versions in which objects may be stored."`
	Images             []RunningImage     `json:"images,omitempty" doc:"Expected and running images of the workloads' containers."`
	MoreImages         int32              `json:"moreImages,omitempty" doc:"Number of containers that are not in the list."`
}

// ObjectCounts is the number of objects in each health state.
type ObjectCounts struct {
	Total       int32 `json:"total" doc:"All."`
	Current     int32 `json:"current" doc:"Matching the lock and healthy."`
	InProgress  int32 `json:"inProgress,omitempty" doc:"Change in progress."`
	NotFound    int32 `json:"notFound,omitempty" doc:"Missing."`
	Failed      int32 `json:"failed,omitempty" doc:"Stalled, or different from the lock."`
	Terminating int32 `json:"terminating,omitempty" doc:"Being deleted."`
	Forbidden   int32 `json:"forbidden,omitempty" doc:"Not permitted to be read."`
	Unknown     int32 `json:"unknown,omitempty" doc:"Not readable for another reason."`
}

// HealthStatus is the health of one object.
type HealthStatus string

// The health states of an object.
const (
	Current     HealthStatus = "Current"
	InProgress  HealthStatus = "InProgress"
	NotFound    HealthStatus = "NotFound"
	Failed      HealthStatus = "Failed"
	Terminating HealthStatus = "Terminating"
	Forbidden   HealthStatus = "Forbidden" // no permission to read it
	Unknown     HealthStatus = "Unknown"   // reading it failed
)

// ObjectHealth is the health of an object that is not Current.
type ObjectHealth struct {
	APIVersion string       `json:"apiVersion" doc:"Group and version."`
	Kind       string       `json:"kind" doc:"Kind."`
	Namespace  string       `json:"namespace,omitempty" doc:"Namespace. Empty for cluster-scoped objects."`
	Name       string       `json:"name" doc:"Name."`
	Health     HealthStatus `json:"health" doc:"State."`
	Message    string       `json:"message,omitempty" doc:"Reason for the state."`
}

// StoredVersions is the field status.storedVersions of one CustomResourceDefinition.
type StoredVersions struct {
	Definition string   `json:"crd" doc:"Name of the CustomResourceDefinition."`
	Versions   []string `json:"versions" doc:"Its status.storedVersions, sorted."`
}

// RunningImage compares the expected image of a container with the images that its pods run.
type RunningImage struct {
	Kind      string   `json:"kind" doc:"Kind of the workload."`
	Namespace string   `json:"namespace" doc:"Namespace of the workload."`
	Name      string   `json:"name" doc:"Name of the workload."`
	Container string   `json:"container" doc:"Name of the container."`
	Want      string   `json:"want" doc:"Image in the lock."`
	Have      string   `json:"have,omitempty" doc:"Image in the workload's pod template, if different."`
	Digests   []string `json:"digests,omitempty" doc:"Digests that the pods report, sorted."`
}

// Reasons why an object could not be read.
const (
	ReasonForbidden = "Forbidden" // reading it is not permitted
	ReasonNoKind    = "NoKind"    // the API server does not serve the kind
	ReasonError     = "Error"     // anything else
)

// Observed is one expected object as read from the cluster.
type Observed struct {
	Ref     ObjectReference
	Object  map[string]any // as returned by the API server; nil if it is missing or could not be read
	Reason  string         // ReasonForbidden, ReasonNoKind or ReasonError if reading failed; otherwise empty
	Message string         // details of Reason, or the reason why the object is missing
}
