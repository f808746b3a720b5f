package subscription

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/selector"
)

// Dialect tells which API a declaration was written in: its group. Dialects mix
// freely in one workspace; each stands in a file of its own.
type Dialect string

// Approval is installPlanApproval.
type Approval string

// An Automatic subscription moves with --upgrade; a Manual one only when named.
const (
	Automatic Approval = "Automatic"
	Manual    Approval = "Manual"
)

// UpgradePolicy is a ClusterExtension's upgradeConstraintPolicy.
type UpgradePolicy string

// CatalogProvided follows the channel's edges; SelfCertified goes anywhere.
const (
	CatalogProvided UpgradePolicy = "CatalogProvided"
	SelfCertified   UpgradePolicy = "SelfCertified"
)

// Subscription is what a user asks for, whatever the dialect.
type Subscription struct {
	Dialect        Dialect
	Name           string // metadata.name
	Namespace      string // install namespace (a ClusterExtension's spec.namespace); empty where the bundle is to say it
	Package        string
	Channels       []string       // permitted ones, in file order; empty means any
	Range          string         // version range as written (Masterminds syntax); empty means any
	Catalog        *catalog.ID    // nil: any that has the package
	Selector       *LabelSelector // over the catalogs' labels (V1); nil: every catalog
	DefaultChannel bool           // without Channels: the package's default channel, and no other
	Allowed        []string       // the only bundles that may answer, by name, sorted; empty means any
	StartingCSV    string
	Approval       Approval       // never empty
	Policy         UpgradePolicy  // never empty
	Hold           string         // reason; a held operator does not move
	Watch          []string       // sorted; nil: not said here
	WatchAll       bool           // all namespaces was asked for outright
	Config         []byte         // spec.config as canonical JSON; nil where absent
	Bundle         string         // "image:quay.io/x/y@sha256:…", "oci:layout" or "dir:bundle/" instead of Package
	Replaces       string         // "namespace/package" of the operator that this one follows; empty for most
	InstalledCSV   string         // status.installedCSV: state taken over from a cluster
	Digest         catalog.Digest // of the declaration's meaning (canonical, without status or comments)
	Pos            diag.Pos       // of the document
	Fields         diag.Fields    // "spec.channel" → where it stands
}

// Key returns "namespace/name".
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }

// Field is a part of a Subscription, wherever it stands in its dialect.
type Field int

// The fields that can be at fault. Which of them a dialect has, and where, it
// says itself.
const (
	FieldNamespace Field = iota
	FieldPackage
	FieldChannel // the first one, where several are permitted
	FieldRange   // or the bundles that may answer
	FieldCatalog // or what selects it
	FieldCatalogNamespace
	FieldStartingCSV
	FieldApproval
	FieldPolicy
	FieldHold
	FieldWatch
	FieldConfig
	FieldBundle
	FieldInstalled // state, not a wish
	FieldReplaces
)

// At returns where the first of the fields that the file says stands. Where it
// says none of them, it is the nearest field around the last one, else the
// document.
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

// fieldsOf returns where a dialect keeps its fields.
func fieldsOf(d Dialect) map[Field]string {
	for _, k := range kinds() {
		if k.fields != nil && k.group == string(d) {
			return k.fields()
		}
	}
	return nil
}

// LabelSelector is metav1.LabelSelector.
type LabelSelector = selector.Selector

// LabelExpression is one metav1.LabelSelectorRequirement.
type LabelExpression = selector.Requirement

// OperatorGroup is OLM v0's.
type OperatorGroup struct {
	Namespace, Name    string
	TargetNamespaces   []string       // sorted; nil with a nil Selector: all namespaces
	Selector           *LabelSelector // over the declared Namespaces
	ServiceAccountName string         // reported as not honoured
	UpgradeStrategy    string
	ExcludeGlobal      bool // annotation olm.operatorframework.io/exclude-global-namespace-resolution
	Pos                diag.Pos
	Fields             diag.Fields // "spec.selector" → where it stands
	Digest             catalog.Digest
	Policy             string // name of the Subscription in the OperatorPolicy that holds it; empty for an object of its own
}

// At returns where a field stands, such as "spec.selector", else the nearest one
// around it.
func (g OperatorGroup) At(field string) diag.Pos { return g.Fields.At(field, g.Pos) }

// CatalogSource is a declared catalog of either API.
type CatalogSource struct {
	ID       catalog.ID
	Image    string // image reference; empty for address or configmap catalogs
	Address  string
	Priority int
	Labels   map[string]string
	Disabled bool // availabilityMode: Unavailable
	Pos      diag.Pos
	Content  diag.Pos // of the image or the address
}

// ClusterServiceVersion is installed state taken over from a cluster.
type ClusterServiceVersion struct {
	Namespace, Name string
	Version         string
	Replaces        string
	Copied          bool               // a copy that OLM made: no state
	Properties      []catalog.Property // from annotation operatorframework.io/properties where present, else derived from owned and required APIs
	Annotated       bool               // Properties came from the annotation
	Pos             diag.Pos
}

// Namespace is a declared Namespace object: what OperatorGroup selectors look
// at, and what is rendered.
type Namespace struct {
	Name        string
	Labels      map[string]string // with kubernetes.io/metadata.name, as the API server sets it
	Annotations map[string]string
	Pos         diag.Pos
}
