package catalog

import (
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// ID names a catalog: the namespace and name of its CatalogSource or
// ClusterCatalog. A ClusterCatalog has no namespace.
type ID struct {
	Namespace string `json:"namespace" doc:"Namespace of the CatalogSource. Absent for a ClusterCatalog."`     // "olm"
	Name      string `json:"name" form:"required nonempty" doc:"Name of the CatalogSource or ClusterCatalog."` // "operatorhubio"
}

// UnmarshalText parses the output of String. It never fails.
func (id *ID) UnmarshalText(text []byte) error {
	*id = ID{Name: string(text)}
	if ns, name, found := strings.Cut(id.Name, "/"); found {
		*id = ID{Namespace: ns, Name: name}
	}
	return nil
}

// String returns "namespace/name", or "name" if there is no namespace.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// Content is the decoded content of a catalog, before any check. Every format (file-based, SQLite,
// bundle directories) is converted to it.
type Content struct {
	ID       ID
	Priority int               // higher is preferred
	Labels   map[string]string // a ClusterCatalog's, for catalog selectors
	Source   string            // canonical reference, as the lock records it: "oci:catalogs/operatorhubio"
	Digest   Digest            // resolved digest of Source
	Packages []PackageData     // in any order
	Unread   []string          // names of packages that were not decoded; in any order

	Warnings []diag.Warning // warnings of the catalog's reader, sorted
}

// PackageData is one olm.package with its channels, bundles, deprecations and lifecycles.
type PackageData struct {
	Name           string
	DefaultChannel string
	Description    string
	Channels       []ChannelData
	Bundles        []BundleData
	Deprecations   []DeprecationData
	Lifecycles     []LifecycleData // documents with support periods; more than one is a fault
	Undeclared     bool            // no olm.package exists, only objects that refer to it
	Pos            diag.Pos
}

// ChannelData is one olm.channel.
type ChannelData struct {
	Name    string
	Entries []EntryData
	Pos     diag.Pos
}

// EntryData is one node of a channel's upgrade graph.
type EntryData struct {
	Name      string   // the bundle's name: "etcdoperator.v0.9.4"
	Replaces  string   // may name a bundle outside of the channel
	Skips     []string // in file order
	SkipRange string   // ">=1.0.0 <1.2.0", a blang range; unparsed
	Pos       diag.Pos
}

// LifecycleData is one document with the support periods of a package's versions.
type LifecycleData struct {
	Versions []SupportedVersion // in file order
	Faults   []LifecycleFault   // faults in file order; any fault invalidates the document
	Pos      diag.Pos
}

// LifecycleFault is one fault in a lifecycle document.
type LifecycleFault struct {
	Pos diag.Pos
	Msg string // "versions[0].name: expected a string, got a number"
}

// BundleData is one olm.bundle.
type BundleData struct {
	Name          string // "etcdoperator.v0.9.4"
	Image         string // "quay.io/x/y@sha256:…"; empty if the catalog embeds the manifests
	Properties    []Property
	RelatedImages []RelatedImage
	Embedded      bool     // the catalog contains the manifests (olm.bundle.object, or a bundle directory)
	Metadata      Metadata // of the CSV, if the catalog contains it
	Pos           diag.Pos
	Span          Span // location in Pos.File; zero if unknown or not Embedded
}

// Span is a part of a file, in bytes.
type Span struct{ Offset, Size int64 }

// RelatedImage is one image that a bundle needs at run time.
type RelatedImage struct {
	Name  string `json:"name" doc:"Name that the bundle gives the image."` // may be empty
	Image string `json:"image" doc:"The image."`
}

// Metadata holds the fields of a ClusterServiceVersion for searches and for the checks of
// rule 7 of package resolve. A zero field is missing in the catalog.
type Metadata struct {
	Known          bool // the catalog contains olm.csv.metadata or the CSV
	DisplayName    string
	Description    string // annotation "description", else the first line of spec.description
	Provider       string
	MinKubeVersion string
	InstallModes   []InstallMode // supported modes, in the order of InstallModes(); nil if unknown
	Keywords       []string
	Maturity       string
	Annotations    map[string]string // those that KeepsAnnotation and AnnotationFits accept
	Owned          []string          // names of the owned CRDs, sorted
}

// ShortDescription returns the first non-empty line of a long description, without leading Markdown
// markup, cut to 300 bytes.
func ShortDescription(long string) string {
	const most = 300
	for line := range strings.Lines(long) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#*>- "))
		if line == "" {
			continue
		}
		return sanitize.Truncate(line, most)
	}
	return ""
}

// DeprecationData is one entry of an olm.deprecations blob.
type DeprecationData struct {
	Schema  string // "olm.package", "olm.channel", "olm.bundle"
	Name    string // name of the channel or bundle; empty for the package
	Message string
	Pos     diag.Pos
}

// KeepsAnnotation reports whether Metadata contains the CSV annotation of that name: annotations of
// operatorframework.io and olm, and those that catalog UIs show.
func KeepsAnnotation(name string) bool {
	switch name {
	case "capabilities", "categories", "repository":
		return true
	}
	host, _, _ := strings.Cut(name, "/")
	return host == "operatorframework.io" || strings.HasSuffix(host, ".operatorframework.io") || strings.HasPrefix(name, "olm.")
}

// AnnotationFits reports whether Metadata contains a kept annotation with that value. The limit is
// 1 KiB, except for the Namespace template, which determines the install namespace.
func AnnotationFits(name, value string) bool {
	return len(value) < 1<<10 || name == SuggestedNamespaceTemplate
}
