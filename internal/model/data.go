package model

import (
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
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
	Priority int               // higher is preferred; resolution.md section 5.6
	Labels   map[string]string // a ClusterCatalog's, for catalog selectors
	Source   string            // canonical reference, as the lock records it: "oci:catalogs/operatorhubio"
	Digest   Digest            // resolved digest of Source
	Packages []PackageData     // in any order
	Unread   []string          // names of further packages, which are in the catalog but were not read; in any order

	Warnings []diag.Warning // warnings of the catalog's reader, sorted
}

// PackageData is one olm.package with everything that belongs to it.
type PackageData struct {
	Name           string
	DefaultChannel string
	Description    string
	Channels       []ChannelData
	Bundles        []BundleData
	Deprecations   []DeprecationData
	Lifecycles     []LifecycleData // documents with support periods; more than one is a fault
	Undeclared     bool            // there is no olm.package, only objects that refer to it
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
	Replaces  string   // may name a bundle the channel does not hold
	Skips     []string // in file order
	SkipRange string   // ">=1.0.0 <1.2.0", a blang range; unparsed
	Pos       diag.Pos
}

// LifecycleData is one document with the support periods of a package's
// versions.
type LifecycleData struct {
	Versions []SupportedVersion // in file order
	Faults   []LifecycleFault   // faults in file order; any fault invalidates the document
	Pos      diag.Pos
}

// LifecycleFault is one fault in a lifecycle document.
type LifecycleFault struct {
	Pos diag.Pos
	Msg string // "versions[0].name: want a string, have a number"
}

// BundleData is one olm.bundle.
type BundleData struct {
	Name          string // "etcdoperator.v0.9.4"
	Image         string // "quay.io/x/y@sha256:…"; empty where the content is only embedded
	Properties    []Property
	RelatedImages []RelatedImage
	Embedded      bool     // the catalog holds the manifests themselves (olm.bundle.object, or a bundle directory)
	Metadata      Metadata // metadata of the CSV, if the catalog has it
	Pos           diag.Pos
	Span          Span // location in Pos.File; zero if it is unknown or not Embedded
}

// Span is a part of a file, in bytes.
type Span struct{ Offset, Size int64 }

// RelatedImage is one image that a bundle needs at run time.
type RelatedImage struct {
	Name  string `json:"name" doc:"Name that the bundle gives the image."` // may be empty
	Image string `json:"image" doc:"The image."`
}

// Metadata holds the fields of a ClusterServiceVersion that are used in searches
// and in the checks of resolution.md rule 7. The zero value of a field means
// that the catalog lacks it.
type Metadata struct {
	Known          bool // the catalog held olm.csv.metadata or the CSV
	DisplayName    string
	Description    string // the short one: annotation "description", else the first line of the long one
	Provider       string
	MinKubeVersion string
	InstallModes   []InstallMode // the supported ones, in the order of InstallModes(); nil if unknown
	Keywords       []string
	Maturity       string
	Annotations    map[string]string // those that KeepsAnnotation names, as long as AnnotationFits
	Owned          []string          // names of the owned CRDs, sorted
}

// ShortDescription returns the first line with text of a long description,
// without Markdown markup at its beginning, cut to 300 bytes.
func ShortDescription(long string) string {
	const most = 300
	for line := range strings.Lines(long) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#*>- "))
		if line == "" {
			continue
		}
		return inert.Cut(line, most)
	}
	return ""
}

// DeprecationData is one entry of an olm.deprecations blob.
type DeprecationData struct {
	Schema  string // "olm.package", "olm.channel", "olm.bundle"
	Name    string // the channel's or bundle's; empty for the package
	Message string
	Pos     diag.Pos
}

// KeepsAnnotation reports whether Metadata contains a CSV's annotation of that name: those of
// operatorframework.io and of olm, and those that catalogs show.
func KeepsAnnotation(name string) bool {
	switch name {
	case "capabilities", "categories", "repository":
		return true
	}
	host, _, _ := strings.Cut(name, "/")
	return host == "operatorframework.io" || strings.HasSuffix(host, ".operatorframework.io") || strings.HasPrefix(name, "olm.")
}

// AnnotationFits reports whether Metadata contains a kept annotation with that value: those below
// 1 KiB, and the template of a Namespace at any length, because it determines the install
// namespace.
func AnnotationFits(name, value string) bool {
	return len(value) < 1<<10 || name == SuggestedNamespaceTemplate
}
