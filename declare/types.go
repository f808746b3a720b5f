package declare

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Dialect is the API of a declaration, identified by its API group.
type Dialect string

// Approval is the installPlanApproval of a Subscription.
type Approval string

// An operator with Automatic approval is upgraded by --upgrade. An operator with Manual approval is
// only upgraded if it is named.
const (
	Automatic Approval = "Automatic"
	Manual    Approval = "Manual"
)

// UpgradePolicy is the upgradeConstraintPolicy of a ClusterExtension.
type UpgradePolicy string

// CatalogProvided permits only upgrades along the upgrade graph of the channel. SelfCertified
// permits any version.
const (
	CatalogProvided UpgradePolicy = "CatalogProvided"
	SelfCertified   UpgradePolicy = "SelfCertified"
)

// Subscription is the declaration of an operator, in any dialect.
type Subscription struct {
	Dialect        Dialect
	Name           string // metadata.name
	Namespace      string // install namespace; empty: the bundle determines it
	Package        string
	Channels       []string       // permitted channels, in file order; empty: any
	Range          string         // permitted version range as written, in Masterminds syntax; empty: any
	Catalog        *catalog.ID    // nil: any catalog with the package
	Selector       *LabelSelector // selects catalogs by label (OLM v1); nil: all catalogs
	DefaultChannel bool           // whether only the default channel of the package is permitted; Channels is then empty
	Allowed        []string       // names of the permitted bundles, sorted; empty: any
	StartingCSV    string
	Approval       Approval            // never empty
	Policy         UpgradePolicy       // never empty
	Hold           string              // reason to keep the operator at its pinned version; empty: none
	Watch          []string            // watched namespaces, sorted; nil: not declared in this object
	WatchAll       bool                // whether all namespaces are declared as watched
	Config         []byte              // spec.config as canonical JSON; nil if absent
	OwnValues      []byte              // spec.values as canonical JSON; nil: none
	ChartValues    []byte              // values of a chart as canonical JSON, those of ValuesFiles included; nil: none
	ValuesFiles    []string            // files with values, relative to the workspace, in the order of merging
	OptionalFiles  bool                // whether ValuesFiles may be missing
	Assignments    []survey.Assignment // override the values
	ValuesFrom     []ValuesRef         // ConfigMaps with values, in the order of merging
	Release        string              // name of the release of a chart; empty: Name
	ChartSource    string              // ID of the [ChartSource] that gives the catalog; empty in a merged set
	Bundle         string              // bundle instead of Package: "image:quay.io/x/y@sha256:…", "oci:layout" or "dir:bundle/"
	Only           []string            // environments that install the operator; nil: all
	Replaces       string              // operator that this one replaces, as "namespace/package"; empty: none
	InstalledCSV   string              // status.installedCSV, in an object exported from a cluster
	Digest         catalog.Digest      // digest of the content, without status, comments and position
	Pos            diag.Pos            // position of the YAML document
	Fields         diag.Fields         // positions of fields such as "spec.channel"
}

// Key returns "namespace/name".
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }

// Field is a field of a Subscription. The dialects (the kinds that are read as Subscriptions) have other names for it.
type Field int

// Fields whose positions are used in messages. Each dialect has some of them.
const (
	FieldNamespace Field = iota
	FieldPackage
	FieldChannel // first permitted channel
	FieldRange   // version range, or permitted bundles
	FieldCatalog // catalog, or selector of catalogs
	FieldCatalogNamespace
	FieldStartingCSV
	FieldApproval
	FieldPolicy
	FieldHold
	FieldWatch
	FieldConfig
	FieldBundle
	FieldInstalled // status.installedCSV
	FieldReplaces
	FieldOnly
	FieldValues
	FieldValuesFiles
)

// At returns the position of the first field that is set. If no field is set, it returns the position of the
// nearest existing parent of the last field, or of the document.
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

// ValueAt returns the position of a value of a chart, such as "a.b". If the value is not set, it returns the
// position of all values.
func (s Subscription) ValueAt(value string) diag.Pos {
	if pos, isSet := s.Fields[fieldsOf(s.Dialect)[FieldValues]+"."+value]; isSet {
		return pos
	}
	return s.At(FieldValues, FieldValuesFiles)
}

// fieldsOf returns the field paths of a dialect, or nil if it is unknown.
func fieldsOf(d Dialect) map[Field]string {
	if d == flux {
		return fieldsFlux()
	}
	if d == argo {
		return fieldsArgo()
	}
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
	TargetNamespaces   []string       // sorted; if this and Selector are nil: all namespaces
	Selector           *LabelSelector // selects Namespaces by label
	ServiceAccountName string         // has no effect, except for a warning
	UpgradeStrategy    string
	ExcludeGlobal      bool // annotation olm.operatorframework.io/exclude-global-namespace-resolution
	Pos                diag.Pos
	Fields             diag.Fields // positions of fields such as "spec.selector"
	Digest             catalog.Digest
	Policy             string // name of the Subscription in the OperatorPolicy that contains the group; empty: an object of its own
}

// At returns the position of a field such as "spec.selector". If the field is not set, At returns the
// position of its nearest existing parent.
func (g OperatorGroup) At(field string) diag.Pos { return g.Fields.At(field, g.Pos) }

// CatalogSource is a declared CatalogSource or ClusterCatalog.
type CatalogSource struct {
	ID       catalog.ID
	Image    string // image reference; empty for catalogs with an address or a ConfigMap
	Address  string
	Charts   string // location of a catalog of charts, such as https://charts.example.com or oci://registry.example.com/chart; empty: none
	Priority int
	Labels   map[string]string
	Disabled bool // whether availabilityMode is Unavailable
	Pos      diag.Pos
	Content  diag.Pos // position of the image or the address
}

// ClusterServiceVersion is an installed operator, exported from a cluster.
type ClusterServiceVersion struct {
	Namespace, Name string
	Version         string
	Replaces        string
	Copied          bool               // whether OLM copied it from another namespace: a copy is no installation
	Properties      []catalog.Property // properties in the annotation operatorframework.io/properties, or else derived from the owned and required APIs
	Annotated       bool               // whether Properties are from the annotation
	Image           string             // bundle image that a declared InstallPlan fetched; empty: unknown
	Pos             diag.Pos
}

// BundleImage is the bundle image of a ClusterServiceVersion, according to an InstallPlan.
type BundleImage struct{ Namespace, CSV, Image string }

// Namespace is a declared Namespace. It is rendered. OperatorGroups can select it by its labels.
type Namespace struct {
	Name        string
	Labels      map[string]string // includes kubernetes.io/metadata.name, which the API server sets
	Annotations map[string]string
	Pos         diag.Pos
}
