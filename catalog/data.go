package catalog

import (
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// ID identifies a catalog by the namespace and name of its CatalogSource, or by the name of its
// ClusterCatalog.
type ID struct {
	Namespace string `json:"namespace" doc:"Namespace of the CatalogSource. Absent for a ClusterCatalog."`     // "olm"
	Name      string `json:"name" form:"required nonempty" doc:"Name of the CatalogSource or ClusterCatalog."` // "operatorhubio"
}

// UnmarshalText parses the output of String. It always returns nil.
func (id *ID) UnmarshalText(text []byte) error {
	*id = ID{Name: string(text)}
	if ns, name, found := strings.Cut(id.Name, "/"); found {
		*id = ID{Namespace: ns, Name: name}
	}
	return nil
}

// String returns "namespace/name", or "name" for a ClusterCatalog.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// Content is the decoded content of a catalog before validation. Every catalog format (file-based,
// SQLite, bundle directories) is decoded into it.
type Content struct {
	ID       ID
	Priority int               // higher is preferred
	Labels   map[string]string // labels of the ClusterCatalog, which the catalog selectors of a ClusterExtension match
	Source   string            // canonical reference, as recorded in the lock: "oci:catalogs/operatorhubio"
	Digest   Digest            // resolved digest of Source
	Packages []PackageData     // in any order
	Unread   []string          // names of packages that exist but were not decoded; in any order
	Others   []OtherSchema     // schemas that this package does not support; one entry for each

	Warnings []diag.Warning // warnings from decoding, sorted
}

// OtherSchema is a schema of objects that are not part of the catalog. File-based catalogs may
// contain objects for other programs.
type OtherSchema struct {
	Schema string
	Pos    diag.Pos // of the first object
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
	Undeclared     bool            // there is no olm.package of this name, only objects that refer to it
	Pos            diag.Pos
}

// ChannelData is one olm.channel.
type ChannelData struct {
	Name      string
	Entries   []EntryData
	ByVersion bool // whether the edges follow the order of versions, because the author publishes no upgrade graph
	Pos       diag.Pos
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
	Faults   []LifecycleFault   // in file order; a document with a fault is not used
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
	Format        string   // format of the content, such as "helm"; empty: registry+v1
	Commit        string   // commit of the content in a Git repository, in hexadecimal; empty: not in one
	Templated     bool     // the content is rendered with the values of a declaration
	Embedded      bool     // the catalog contains the manifests, as olm.bundle.object or as a bundle directory
	Metadata      Metadata // metadata of the CSV; zero if the catalog does not contain it
	Pos           diag.Pos
	Span          Span // byte range in Pos.File; zero if unknown or not Embedded
}

// Span is a byte range of a file.
type Span struct{ Offset, Size int64 }

// RelatedImage is one image that a bundle needs at run time.
type RelatedImage struct {
	Name  string `json:"name" doc:"Name that the bundle gives the image."` // may be empty
	Image string `json:"image" doc:"The image."`
}

// Metadata contains fields of a ClusterServiceVersion, for searches and for the checks of rule 7 of
// package resolve. A zero field means that the catalog does not contain the value.
type Metadata struct {
	Known          bool // the catalog contains olm.csv.metadata or the CSV
	DisplayName    string
	Description    string // annotation "description", else the first line of spec.description
	Provider       string
	MinKubeVersion string
	KubeVersions   string        // supported versions of Kubernetes as a range, as in kubeVersion of a chart; empty: any
	InstallModes   []InstallMode // supported modes, in the order of InstallModes(); nil if unknown
	Keywords       []string
	Maturity       string
	Annotations    map[string]string // only those that KeepsAnnotation and AnnotationFits accept
	Owned          []string          // names of the owned CRDs, sorted
}

// ShortDescription returns the first non-empty line of a Markdown description, without leading
// markup and cut to 300 bytes.
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

// DeprecationData is one entry of an olm.deprecations object.
type DeprecationData struct {
	Schema  string // "olm.package", "olm.channel", "olm.bundle"
	Name    string // name of the channel or bundle; empty for the package
	Message string
	Pos     diag.Pos
}

// KeepsAnnotation reports whether Metadata includes the CSV annotation with this name: it is an annotation of
// operatorframework.io or olm, or catalog UIs show it.
func KeepsAnnotation(name string) bool {
	switch name {
	case "capabilities", "categories", "repository":
		return true
	}
	host, _, _ := strings.Cut(name, "/")
	return host == "operatorframework.io" || strings.HasSuffix(host, ".operatorframework.io") || strings.HasPrefix(name, "olm.")
}

// AnnotationFits reports whether the value of an annotation is short enough for Metadata. The limit
// is 1 KiB. There is no limit for the Namespace template, because it determines the install
// namespace.
func AnnotationFits(name, value string) bool {
	return len(value) < 1<<10 || name == SuggestedNamespaceTemplate
}
