package lockfile

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// File is a whole lock. Build it with New, which sorts.
type File struct {
	Catalogs   []Catalog   // by namespace, then name
	Namespaces []Namespace // by name; nil where none is declared
	Pins       []Pin       // by namespace, then package
	Accepted   []Accepted  // by operator; nil where no budget is kept
}

// Catalog is one catalog that a pin came from.
type Catalog struct {
	ID       catalog.ID
	Source   string         // canonical reference: "image:quay.io/operatorhubio/catalog:latest", "oci:catalogs/operatorhubio"; never a mirror's
	Digest   catalog.Digest // of the image manifest, or of the directory's content
	Identity string         // who signed it, where the workspace demands a signature; else empty
	Pos      diag.Pos       // of the block, in the file it was parsed from
	Fields   diag.Fields    // likewise, of the names of what the block says
}

// Namespace is a Namespace that stands among the declarations: nothing but what
// is rendered would put it into a cluster.
type Namespace struct {
	Name        string
	Labels      map[string]string // as declared; nil for none
	Annotations map[string]string
	Pos         diag.Pos
	Fields      diag.Fields
}

// Pin is one installed package.
type Pin struct {
	Namespace       string // install namespace
	Package         string
	Subscription    string              // name of the declaration that is answered: the user's, or the generated one's
	Generated       bool                // nobody declared it: a dependency, named as OLM would
	Channel         string              // "stable"; empty where the declaration names none and the bundle is in several
	Version         string              // "0.9.4"
	Bundle          string              // "etcdoperator.v0.9.4"
	Image           string              // canonical, by digest: "quay.io/x/y@sha256:…"; empty where the catalog embeds the content
	Identity        string              // who signed the image, where the workspace demands a signature; else empty
	ContentDigest   catalog.Digest      // of the manifests (bundle.Digest); set where Image does not pin them
	Catalog         catalog.ID          // where it came from
	InstallMode     catalog.InstallMode // AllNamespaces
	WatchNamespaces []string            // sorted; empty means all namespaces
	OperatorGroup   string              // "og"; empty where there is none
	Approval        string              // "Automatic", "Manual"
	Hold            string              // the reason; empty where not held
	Config          []byte              // spec.config as canonical JSON; nil where there is none
	RequestedBy     []Request           // sorted
	Replaces        string              // the bundle this one took the place of; empty on a fresh install
	Skipped         []string            // states passed over with --hops, oldest first
	RemainingHops   []string            // bundle names up to the reachable head, nearest first; empty at the head
	RelatedImages   []catalog.RelatedImage
	Properties      []catalog.Property // what the catalog says it provides and requires, so that a pin outlives its catalog entry
	Declaration     catalog.Digest     // of the declarations that it answers
	Pos             diag.Pos           // of the block, in the file it was parsed from
	Fields          diag.Fields        // likewise, of the names of what the block says: "version"
}

// Request is one reason why a package is pinned.
type Request struct {
	Subscription string // "my-etcd/etcd", for a declaration
	Pin          string // "ns/package" of the pin that requires it, for a dependency
	Requirement  string // "olm.gvk.required etcd.database.coreos.com/v1beta2 EtcdCluster"
}
