package subscription

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Dialect tells which API a declaration was written in.
type Dialect string

// The three dialects, which mix freely in one workspace.
const (
	V0       Dialect = "operators.coreos.com"     // Subscription
	V1       Dialect = "olm.operatorframework.io" // ClusterExtension
	Quayside Dialect = "quayside.dev"             // quayside's own Subscription
)

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
	Dialect      Dialect
	Name         string // metadata.name
	Namespace    string // install namespace (a ClusterExtension's spec.namespace)
	Package      string
	Channels     []string       // permitted ones, in file order; empty means any
	Range        string         // version range as written (Masterminds syntax); empty means any
	Catalog      *catalog.ID    // nil: any that has the package
	Selector     *LabelSelector // over the catalogs' labels (V1); nil: every catalog
	StartingCSV  string
	Approval     Approval            // never empty
	Policy       UpgradePolicy       // never empty
	Hold         string              // reason; a held operator does not move
	Watch        []string            // sorted; nil: not said here
	WatchAll     bool                // all namespaces was asked for outright
	Config       []byte              // spec.config as canonical JSON; nil where absent
	Bundle       string              // "image:quay.io/x/y@sha256:…", "oci:layout" or "dir:bundle/" instead of Package
	InstalledCSV string              // status.installedCSV: state taken over from a cluster
	CurrentCSV   string              // status.currentCSV
	Digest       catalog.Digest      // of the declaration's meaning (canonical, without status or comments)
	Pos          diag.Pos            // of the document
	Fields       map[string]diag.Pos // "spec.channel" → where it stands
}

// Key returns "namespace/name".
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }

// At returns the position of a field, else that of the document.
func (s Subscription) At(field string) diag.Pos {
	if p, ok := s.Fields[field]; ok {
		return p
	}
	return s.Pos
}

// LabelSelector is metav1.LabelSelector.
type LabelSelector struct {
	MatchLabels      map[string]string
	MatchExpressions []LabelExpression
}

// LabelExpression is one metav1.LabelSelectorRequirement.
type LabelExpression struct {
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// OperatorGroup is OLM v0's.
type OperatorGroup struct {
	Namespace, Name    string
	TargetNamespaces   []string       // sorted; nil with a nil Selector: all namespaces
	Selector           *LabelSelector // over the declared Namespaces
	ServiceAccountName string         // reported as not honoured
	UpgradeStrategy    string
	ExcludeGlobal      bool // annotation olm.operatorframework.io/exclude-global-namespace-resolution
	Pos                diag.Pos
	Fields             map[string]diag.Pos // "spec.selector" → where it stands
	Digest             catalog.Digest
}

// CatalogSource is a declared catalog of either API.
type CatalogSource struct {
	Dialect  Dialect // V0 CatalogSource, V1 ClusterCatalog
	ID       catalog.ID
	Image    string // image reference; empty for address or configmap catalogs
	Address  string
	Priority int
	Labels   map[string]string
	Disabled bool // availabilityMode: Unavailable
	Pos      diag.Pos
}

// ClusterServiceVersion is installed state taken over from a cluster.
type ClusterServiceVersion struct {
	Namespace, Name string
	Version         string
	Replaces        string
	Phase           string
	Copied          bool               // a copy that OLM made: no state
	Properties      []catalog.Property // from annotation operatorframework.io/properties where present, else derived from owned and required APIs
	Annotated       bool               // Properties came from the annotation
	Pos             diag.Pos
}

// Namespace is a declared Namespace object, for OperatorGroup selectors.
type Namespace struct {
	Name   string
	Labels map[string]string
	Pos    diag.Pos
}

// Set is everything declared in a workspace. Slices are sorted by namespace,
// then name.
type Set struct {
	Subscriptions  []Subscription
	OperatorGroups []OperatorGroup
	CatalogSources []CatalogSource
	CSVs           []ClusterServiceVersion
	Namespaces     []Namespace
	Warnings       []diag.Warning
}
