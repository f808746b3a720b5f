package declare

import (
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/model"
)

// Dialect identifies the API of a declaration by its group. One workspace can mix several APIs.
type Dialect string

// Approval is installPlanApproval.
type Approval string

// An Automatic subscription is upgraded with --upgrade; a Manual one only if named.
const (
	Automatic Approval = "Automatic"
	Manual    Approval = "Manual"
)

// UpgradePolicy is a ClusterExtension's upgradeConstraintPolicy.
type UpgradePolicy string

// CatalogProvided follows the edges of the channel; SelfCertified allows any version.
const (
	CatalogProvided UpgradePolicy = "CatalogProvided"
	SelfCertified   UpgradePolicy = "SelfCertified"
)

// Subscription is a request for an operator, in any dialect.
type Subscription struct {
	Dialect        Dialect
	Name           string // metadata.name
	Namespace      string // install namespace (a ClusterExtension's spec.namespace); empty if the bundle determines it
	Package        string
	Channels       []string       // permitted ones, in file order; empty means any
	Range          string         // version range as written (Masterminds syntax); empty means any
	Catalog        *model.ID      // nil: any that has the package
	Selector       *LabelSelector // over the catalogs' labels (V1); nil: every catalog
	DefaultChannel bool           // without Channels: the package's default channel, and no other
	Allowed        []string       // names of the only permitted bundles, sorted; empty means any
	StartingCSV    string
	Approval       Approval      // never empty
	Policy         UpgradePolicy // never empty
	Hold           string        // reason; an operator on hold is not upgraded
	Watch          []string      // sorted; nil: not specified here
	WatchAll       bool          // all namespaces are requested explicitly
	Config         []byte        // spec.config as canonical JSON; nil if absent
	Bundle         string        // "image:quay.io/x/y@sha256:…", "oci:layout" or "dir:bundle/" instead of Package
	Replaces       string        // "namespace/package" of the operator that this one replaces; usually empty
	InstalledCSV   string        // status.installedCSV: state exported from a cluster
	Digest         model.Digest  // of the declaration's meaning (canonical, without status or comments)
	Pos            diag.Pos      // of the document
	Fields         diag.Fields   // "spec.channel" → its position
}

// Key returns "namespace/name".
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }

// Field is a field of a Subscription, independent of its dialect.
type Field int

// The fields that faults refer to. Each dialect has a subset of them.
const (
	FieldNamespace Field = iota
	FieldPackage
	FieldChannel // the first one, if several are permitted
	FieldRange   // or the permitted bundles
	FieldCatalog // or its selector
	FieldCatalogNamespace
	FieldStartingCSV
	FieldApproval
	FieldPolicy
	FieldHold
	FieldWatch
	FieldConfig
	FieldBundle
	FieldInstalled // observed state
	FieldReplaces
)

// At returns the position of the first of the fields that exists in the file. If none exists, it
// returns the position of the nearest field around the last one, or of the document.
func (s Subscription) At(fields ...Field) diag.Pos {
	pos := s.Pos
	for _, f := range fields {
		path := fieldsOf(s.Dialect)[f]
		if p, said := s.Fields[path]; said {
			return p
		}
		pos = s.Fields.At(path, s.Pos)
	}
	return pos
}

// fieldsOf returns the field paths of a dialect, or nil if it is unknown.
func fieldsOf(d Dialect) map[Field]string {
	for _, k := range knownKinds() {
		if k.fields != nil && k.group == string(d) {
			return k.fields()
		}
	}
	return nil
}

// LabelSelector is metav1.LabelSelector.
type LabelSelector = k8s.Selector

// LabelExpression is one metav1.LabelSelectorRequirement.
type LabelExpression = k8s.SelectorRequirement

// OperatorGroup is an OLM v0 OperatorGroup.
type OperatorGroup struct {
	Namespace, Name    string
	TargetNamespaces   []string       // sorted; nil with a nil Selector: all namespaces
	Selector           *LabelSelector // selects declared Namespaces
	ServiceAccountName string         // reported as ignored
	UpgradeStrategy    string
	ExcludeGlobal      bool // annotation olm.operatorframework.io/exclude-global-namespace-resolution
	Pos                diag.Pos
	Fields             diag.Fields // "spec.selector" → its position
	Digest             model.Digest
	Policy             string // name of the Subscription in the OperatorPolicy around it; empty for a separate object
}

// At returns the position of a field such as "spec.selector", or of the nearest field around
// it.
func (g OperatorGroup) At(field string) diag.Pos { return g.Fields.At(field, g.Pos) }

// CatalogSource is a declared catalog of either API.
type CatalogSource struct {
	ID       model.ID
	Image    string // image reference; empty for address or configmap catalogs
	Address  string
	Priority int
	Labels   map[string]string
	Disabled bool // availabilityMode: Unavailable
	Pos      diag.Pos
	Content  diag.Pos // of the image or the address
}

// ClusterServiceVersion is installed state exported from a cluster.
type ClusterServiceVersion struct {
	Namespace, Name string
	Version         string
	Replaces        string
	Copied          bool             // copied by OLM to another namespace: no state
	Properties      []model.Property // from annotation operatorframework.io/properties if present, otherwise derived from owned and required APIs
	Annotated       bool             // Properties came from the annotation
	Pos             diag.Pos
}

// Namespace is a declared Namespace object. It is rendered, and OperatorGroup selectors match
// its labels.
type Namespace struct {
	Name        string
	Labels      map[string]string // with kubernetes.io/metadata.name, as the API server sets it
	Annotations map[string]string
	Pos         diag.Pos
}
