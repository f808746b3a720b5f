package declare

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Dialect is the API of a declaration, identified by its API group.
type Dialect string

// Approval is the installPlanApproval of a Subscription.
type Approval string

// An operator with Automatic approval is upgraded by --upgrade, one with Manual approval only if
// named.
const (
	Automatic Approval = "Automatic"
	Manual    Approval = "Manual"
)

// UpgradePolicy is the upgradeConstraintPolicy of a ClusterExtension.
type UpgradePolicy string

// CatalogProvided permits only upgrades along the edges of the channel. SelfCertified permits any
// version.
const (
	CatalogProvided UpgradePolicy = "CatalogProvided"
	SelfCertified   UpgradePolicy = "SelfCertified"
)

// Subscription is the declaration of an operator, in any dialect.
type Subscription struct {
	Dialect        Dialect
	Name           string // metadata.name
	Namespace      string // install namespace (a ClusterExtension's spec.namespace); empty if the bundle determines it
	Package        string
	Channels       []string       // permitted channels in file order; empty: any
	Range          string         // version range as written, in Masterminds syntax; empty: any
	Catalog        *catalog.ID    // nil: any catalog with the package
	Selector       *LabelSelector // selects catalogs by their labels (V1); nil: all catalogs
	DefaultChannel bool           // only the package's default channel is permitted; Channels is empty
	Allowed        []string       // names of the permitted bundles, sorted; empty: any
	StartingCSV    string
	Approval       Approval       // never empty
	Policy         UpgradePolicy  // never empty
	Hold           string         // reason why the operator is held at its version; empty: not held
	Watch          []string       // watched namespaces, sorted; nil: not declared here
	WatchAll       bool           // all namespaces are declared as watched
	Config         []byte         // spec.config as canonical JSON; nil if absent
	Bundle         string         // "image:quay.io/x/y@sha256:…", "oci:layout" or "dir:bundle/" instead of Package
	Replaces       string         // "namespace/package" of the operator that this one replaces, or empty
	InstalledCSV   string         // status.installedCSV, exported from a cluster
	Digest         catalog.Digest // of the declaration's meaning: without status, comments and position
	Pos            diag.Pos       // of the document
	Fields         diag.Fields    // positions of fields such as "spec.channel"
}

// Key returns "namespace/name".
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }

// Field is a field of a Subscription in any dialect.
type Field int

// The fields with positions for messages. Each dialect has a subset of them.
const (
	FieldNamespace Field = iota
	FieldPackage
	FieldChannel // the first permitted channel
	FieldRange   // the version range or the permitted bundles
	FieldCatalog // the catalog or its selector
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

// At returns the position of the first of the fields that is set. If none is set, it returns the
// position of the nearest field that would contain the last one, or of the document.
func (s Subscription) At(fields ...Field) diag.Pos {
	pos := s.Pos
	for _, f := range fields {
		path := fieldsOf(s.Dialect)[f]
		if p, isSet := s.Fields[path]; isSet {
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

// LabelSelector is a metav1.LabelSelector.
type LabelSelector = k8s.Selector

// LabelExpression is a metav1.LabelSelectorRequirement.
type LabelExpression = k8s.SelectorRequirement

// OperatorGroup is an OLM v0 OperatorGroup.
type OperatorGroup struct {
	Namespace, Name    string
	TargetNamespaces   []string       // sorted; all namespaces if this and Selector are nil
	Selector           *LabelSelector // selects declared Namespaces
	ServiceAccountName string         // only for a warning; it has no effect
	UpgradeStrategy    string
	ExcludeGlobal      bool // annotation olm.operatorframework.io/exclude-global-namespace-resolution
	Pos                diag.Pos
	Fields             diag.Fields // positions of fields such as "spec.selector"
	Digest             catalog.Digest
	Policy             string // name of the Subscription in the OperatorPolicy that contains the group; empty for a separate object
}

// At returns the position of a field such as "spec.selector", or of the nearest field that would
// contain it.
func (g OperatorGroup) At(field string) diag.Pos { return g.Fields.At(field, g.Pos) }

// CatalogSource is a declared CatalogSource or ClusterCatalog.
type CatalogSource struct {
	ID       catalog.ID
	Image    string // image reference; empty for catalogs with an address or a ConfigMap
	Address  string
	Priority int
	Labels   map[string]string
	Disabled bool // availabilityMode: Unavailable
	Pos      diag.Pos
	Content  diag.Pos // of the image or the address
}

// ClusterServiceVersion is an installed operator, exported from a cluster.
type ClusterServiceVersion struct {
	Namespace, Name string
	Version         string
	Replaces        string
	Copied          bool               // OLM copied it from another namespace, so it does not represent an installation
	Properties      []catalog.Property // from the annotation operatorframework.io/properties, or else derived from owned and required APIs
	Annotated       bool               // whether Properties are from the annotation
	Image           string             // bundle image that a declared InstallPlan fetched; empty: unknown
	Pos             diag.Pos
}

// BundleImage is the bundle image that OLM fetched for a ClusterServiceVersion, from an InstallPlan.
type BundleImage struct{ Namespace, CSV, Image string }

// Namespace is a declared Namespace. It is part of the rendered tree, and selectors of
// OperatorGroups match its labels.
type Namespace struct {
	Name        string
	Labels      map[string]string // including kubernetes.io/metadata.name, which the API server sets
	Annotations map[string]string
	Pos         diag.Pos
}
