package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/jsonschema"
)

// ID identifies a catalog: "namespace/name" or "name".
type ID = catalog.ID

// Digest is "sha256:" with 64 hexadecimal digits, or empty.
type Digest = catalog.Digest

// InstallMode is one of the four install modes of a ClusterServiceVersion.
type InstallMode = catalog.InstallMode

// Property is a property of a bundle: a provided API, a requirement or a constraint.
type Property = catalog.Property

// RelatedImage is an image that a bundle needs.
type RelatedImage = catalog.RelatedImage

// File is a complete lock. New returns a sorted one.
type File struct {
	Namespaces []Namespace // by name; nil if none is declared
	Pins       []Pin       // by namespace, then package
	Leaving    []Leaving   // by namespace, then package; nil if no operator is leaving

	// ReadSchema is the schema of the parsed file; 0 for a lock from New.
	ReadSchema int
}

// The types below and their tags define the format of the file: Format writes the fields in this
// order, Parse decodes them, and JSONSchema describes them. docs/lock.md lists the use of each field.

// Catalog is the catalog of a pin as it was when the bundle was pinned. Other pins of the same
// catalog may have another digest, because every byte of a pin depends only on this pin or on
// settings, so that Git can merge the upgrades of two operators.
type Catalog struct {
	ID       ID     `json:"name" form:"required" doc:"namespace/name, or name."`
	Source   string `json:"source" doc:"Canonical reference, never a mirror's, without the digest: image:quay.io/operatorhubio/catalog:latest, oci:catalogs/operatorhubio."`
	Digest   Digest `json:"digest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the image's manifest, or of the directory's content, when the bundle was pinned."`
	Identity string `json:"identity" doc:"Signer, if a signature is required."`
}

// NewCatalog returns the record of a catalog. It removes a digest from the source, because Digest
// contains it.
func NewCatalog(id ID, source string, digest Digest) Catalog {
	return Catalog{ID: id, Source: SourceName(source), Digest: digest}
}

// SourceName returns a source without its digest, if it has one.
func SourceName(source string) string {
	name, _, _ := strings.Cut(source, "@sha256:")
	return name
}

// IsAt reports whether the record has this source and this digest. It returns false if the record has
// no digest.
func (c Catalog) IsAt(source string, digest Digest) bool {
	return c.Digest != "" && c.Digest == digest && c.Source == SourceName(source)
}

// Namespace is a declared Namespace. The rendered tree contains it.
type Namespace struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the Namespace."`
	Labels      map[string]string `json:"labels" doc:"Labels, as declared."`
	Annotations map[string]string `json:"annotations" doc:"Annotations, as declared."`
	Pos         diag.Pos          `json:"-"`
	Fields      diag.Fields       `json:"-"`
}

// Pin is one installed package. Empty fields have these meanings:
//   - Channel: the declaration names none and the bundle is in several channels.
//   - Image: the catalog embeds the content.
//   - ContentDigest: the image pins the content.
//   - WatchNamespaces: the operator watches all namespaces.
//   - Replaces: a fresh install.
//
// Image is canonical and by digest, as in "quay.io/x/y@sha256:…". Config is canonical JSON.
// WatchNamespaces, RequestedBy and Requires are sorted. Properties are recorded so that the pin can
// still be resolved after the catalog drops its bundle. Pos and Fields are the positions of the block
// and of its field names in the parsed file, as in the other blocks.
type Pin struct {
	Namespace       string          `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Package         string          `json:"package" form:"required nonempty" doc:"Name of the package."`
	Version         string          `json:"version" form:"required nonempty" doc:"Version of the bundle."`
	Channel         string          `json:"channel" doc:"Channel from which the bundle was selected."`
	Bundle          string          `json:"bundle" form:"required nonempty" doc:"Name of the bundle."`
	Image           string          `json:"image" doc:"The bundle's image, by digest. Absent if the catalog embeds the content."`
	Identity        string          `json:"identity" doc:"Signer of the image, if a signature is required."`
	ContentDigest   Digest          `json:"contentDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the bundle's manifests. Absent if image is set."`
	Catalog         Catalog         `json:"catalog" doc:"The catalog from which the bundle was pinned, at that time."`
	RequestedBy     []string        `json:"requestedBy" form:"nonempty" doc:"The declarations that request the package, as namespace/name. Absent for a dependency."`
	Approval        string          `json:"approval" form:"enum=Automatic|Manual" default:"\"Automatic\"" doc:"Manual: upgraded only when requested by name."`
	Hold            string          `json:"hold" doc:"Reason why the operator is held at its version."`
	InstallMode     InstallMode     `json:"installMode" form:"enum=AllNamespaces|MultiNamespace|SingleNamespace|OwnNamespace" doc:"Install mode."`
	WatchNamespaces []string        `json:"watchNamespaces" form:"nonempty" doc:"Namespaces that the operator watches. Absent: all."`
	OperatorGroup   string          `json:"operatorGroup" doc:"Name of the OperatorGroup."`
	Replaces        string          `json:"replaces" doc:"The bundle from which this one was upgraded."`
	Skipped         []string        `json:"skipped" form:"nonempty" doc:"Bundles skipped in that upgrade, oldest first."`
	Config          json.RawMessage `json:"config" doc:"Same fields as spec.config of OLM's Subscription."`
	Requires        []Requirement   `json:"requires" doc:"The pins that meet the requirements of the bundle."`
	RelatedImages   []RelatedImage  `json:"relatedImages" doc:"Every image that the bundle needs, by digest."`
	Properties      []Property      `json:"properties" doc:"Properties of the bundle that constrain a resolution."`
	Declaration     Digest          `json:"declarationDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the declarations from which this pin was resolved."`
	Adopted         *Adopted        `json:"adopted" doc:"Settings of OLM's installation, kept until the operator is upgraded. Absent if OLM did not install it."`
	Storage         *Storage        `json:"storage" doc:"Step of the storage migration before an upgrade that removes versions in which objects may be stored. Absent if none is needed."`
	Pos             diag.Pos        `json:"-"`
	Fields          diag.Fields     `json:"-"`
}

// Requirement is a requirement of a bundle, such as "olm.gvk.required
// etcd.database.coreos.com/v1beta2 EtcdCluster", with the pin ("namespace/package") that meets
// it.
type Requirement struct {
	Requirement string `json:"requirement" form:"required nonempty" doc:"The requirement, as the bundle states it."`
	Pin         string `json:"pin" form:"required nonempty" doc:"namespace/package of the pin that meets it."`
}

// Leaving is the last pin of an operator that is replaced or uninstalled. If it is replaced, its
// leftover objects stay rendered until the successor is observed running. If it is uninstalled,
// the GitOps tool prunes its objects, and the block stays until the objects are observed to be deleted.
type Leaving struct {
	ReplacedBy string   `json:"replacedBy" form:"nonempty" doc:"Successor, as namespace/package, which is also in pins or leaving. Absent for an operator that is being uninstalled."`
	With       []string `json:"with" form:"nonempty" doc:"Remaining operators (namespace/package) of its piece. Absent if it had its own piece."`
	Pin        `json:",inline"`
}

// Adopted records the details of an operator that are rendered as OLM installed them, so that the
// adoption restarts no pods. It omits all details that can be derived from the bundle.
type Adopted struct {
	Condition    string       `json:"operatorCondition" form:"required nonempty" doc:"Value of OPERATOR_CONDITION_NAME in the pods."`
	Certificates []string     `json:"caCertificates" form:"nonempty" doc:"CA certificates of OLM's serving certificates, in DER and base64. Absent if the workspace's provider issues the certificates."`
	Annotations  []Annotation `json:"annotations" doc:"Annotations of pod templates that the bundle does not have."`
}

// Annotation is an annotation that the pods of a Deployment have or lack.
type Annotation struct {
	Deployment string `json:"deployment" form:"required nonempty" doc:"Name of the Deployment."`
	Name       string `json:"name" form:"required nonempty" doc:"Name of the annotation."`
	Value      string `json:"value" form:"required" doc:"Value of the annotation."`
	Absent     bool   `json:"absent" doc:"Whether the pods do not have the annotation, although the bundle does."`
}

// Storage is the storage migration before an upgrade to a bundle that drops stored versions. The
// pinned bundle has both the old and the new versions.
type Storage struct {
	Stage   StorageStage     `json:"stage" form:"required enum=store|migrate" doc:"store: new writes are stored in the other version. migrate: existing objects are also rewritten."`
	Objects []StoredVersions `json:"objects" form:"required" doc:"The objects, by CustomResourceDefinition and version."`
}

// StoredVersions is the migration of one CRD's objects from one version to another.
type StoredVersions struct {
	Definition string `json:"crd" form:"required nonempty" doc:"Name of the CustomResourceDefinition."`
	From       string `json:"from" form:"required nonempty" doc:"Version that the next bundle removes."`
	To         string `json:"to" form:"required nonempty" doc:"Storage version of the next bundle."`
}

// StorageStage is a stage of the storage migration.
type StorageStage string

// Stages of the storage migration, in order.
const (
	StorageStore   StorageStage = "store"
	StorageMigrate StorageStage = "migrate"
)

// String describes the migration step: "migrate (widgets.example.com v1alpha1 → v1)".
func (s *Storage) String() string {
	text := make([]string, len(s.Objects))
	for i, o := range s.Objects {
		text[i] = o.Definition + " " + o.From + " → " + o.To
	}
	return string(s.Stage) + " (" + strings.Join(text, ", ") + ")"
}

// fault returns the first fault of the migration step, or nil.
func (s *Storage) fault() error {
	switch {
	case s.Stage != StorageStore && s.Stage != StorageMigrate:
		return fmt.Errorf("storage: stage %q: must be one of %s, %s", s.Stage, StorageStore, StorageMigrate)
	case len(s.Objects) == 0:
		return errors.New("storage: no objects")
	}
	to := map[string]string{}
	for _, o := range s.Objects {
		if o.Definition == "" || o.From == "" || o.To == "" || o.From == o.To {
			return errors.New("storage: crd, from and to are required, with two different versions")
		}
		if other, ok := to[o.Definition]; ok && other != o.To {
			return fmt.Errorf("storage: objects of %s cannot be stored in both %s and %s", o.Definition, other, o.To)
		}
		to[o.Definition] = o.To
	}
	return nil
}

// block is a block of the lock. Its title identifies it in messages.
type block interface{ title() string }

func (n Namespace) title() string { return "Namespace " + strconv.Quote(n.Name) }
func (p Pin) title() string       { return "pin " + strconv.Quote(p.Key()) }
func (l Leaving) title() string   { return "leaving operator " + strconv.Quote(l.Key()) }

// blockWithChecksum is a block with its checksum, as in the file.
type blockWithChecksum[T block] struct {
	Block    T      `json:",inline"`
	Checksum string `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

// document is the whole file. Its type parameters are the types of the blocks.
type document[N, P, L any] struct {
	APIVersion string `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string `json:"kind" form:"required const=Lock" doc:"Lock"`
	Schema     int    `json:"schema" form:"required" doc:"Number of the schema: 1."`
	Namespaces []N    `json:"namespaces" doc:"The declared Namespaces, by name. Absent if there are none."`
	Pins       []P    `json:"pins" form:"required" doc:"One block per installed package, by namespace and package."`
	Leaving    []L    `json:"leaving" doc:"Replaced operators with objects that are still rendered, and operators that are being uninstalled, by namespace and package. Absent if there are none."`
}

// JSONSchema returns the JSON schema of quayside.lock.
func JSONSchema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/lock.schema.json", "quayside lock",
		document[blockWithChecksum[Namespace], blockWithChecksum[Pin], blockWithChecksum[Leaving]]{})
}
