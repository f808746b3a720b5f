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

// InstallMode is an install mode of OLM, such as AllNamespaces.
type InstallMode = catalog.InstallMode

// Property is a property of a bundle: a provided API, a requirement or a constraint.
type Property = catalog.Property

// RelatedImage is an image that a bundle needs at run time.
type RelatedImage = catalog.RelatedImage

// File is the content of a lock. In the results of New and Parse, the lists are sorted.
type File struct {
	Namespaces []Namespace // declared Namespaces, by name; nil if there are none
	Pins       []Pin       // sorted by namespace, then package
	Leaving    []Leaving   // operators that are replaced or being uninstalled; sorted as Pins; nil if there are none
}

// The types below and their tags define the format of the file: Format writes the fields in this
// order, Parse decodes them, and JSONSchema describes them. docs/lock.md lists the use of each field.

// Catalog is the catalog of a pin at the time when the bundle was pinned. Pins from the same catalog may have
// different digests of the catalog: a block contains only data of its own pin, so that Git can merge upgrades
// of two operators.
type Catalog struct {
	ID       ID     `json:"name" form:"required" doc:"namespace/name, or name."`
	Source   string `json:"source" doc:"Canonical reference, never a mirror's, without the digest: image:quay.io/operatorhubio/catalog:latest, oci:catalogs/operatorhubio."`
	Digest   Digest `json:"digest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the image's manifest, or of the directory's content, when the bundle was pinned."`
	Identity string `json:"identity" doc:"Signer, if a signature is required."`
}

// NewCatalog returns the data to record about a catalog. It removes a digest from source, because the field
// Digest contains it.
func NewCatalog(id ID, source string, digest Digest) Catalog {
	return Catalog{ID: id, Source: SourceName(source), Digest: digest}
}

// SourceName returns a source without its digest. A source without a digest is returned unchanged.
func SourceName(source string) string {
	name, _, _ := strings.Cut(source, "@sha256:")
	return name
}

// IsAt reports whether c has this source and this digest. It returns false if c has no digest.
func (c Catalog) IsAt(source string, digest Digest) bool {
	return c.Digest != "" && c.Digest == digest && c.Source == SourceName(source)
}

// Namespace is a declared Namespace. Rendering writes it.
type Namespace struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the Namespace."`
	Labels      map[string]string `json:"labels" doc:"Labels, as declared."`
	Annotations map[string]string `json:"annotations" doc:"Annotations, as declared."`
	Pos         diag.Pos          `json:"-"`
	Fields      diag.Fields       `json:"-"`
}

// Pin is one installed operator: the bundle that was selected for a package in a namespace. An
// empty field means:
//
//   - Channel: the declaration names no channel, and the bundle is in several channels.
//   - Image: the catalog embeds the bundle.
//   - ContentDigest: the digest in Image identifies the content.
//   - WatchNamespaces: the operator watches all namespaces.
//   - Replaces: it is a new install, not an upgrade.
//
// Image is a canonical reference by digest, such as "quay.io/x/y@sha256:…". Config is canonical JSON.
// WatchNamespaces, RequestedBy and Requires are sorted. The lock contains the Properties, so that quayside can
// still resolve when the catalog no longer has the bundle. Pos and Fields are the positions of the block and of
// its fields in the parsed file, as in other types of blocks.
type Pin struct {
	Namespace       string          `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Package         string          `json:"package" form:"required nonempty" doc:"Name of the package."`
	Version         string          `json:"version" form:"required nonempty" doc:"Version of the bundle."`
	Channel         string          `json:"channel" doc:"Channel from which the bundle was selected."`
	Bundle          string          `json:"bundle" form:"required nonempty" doc:"Name of the bundle."`
	Image           string          `json:"image" doc:"The bundle's image, by digest. Absent if the catalog embeds the content."`
	Identity        string          `json:"identity" doc:"Signer of the image, if a signature is required."`
	ContentDigest   Digest          `json:"contentDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the bundle's manifests. Absent if image is set."`
	Commit          string          `json:"commit" form:"pattern=^[0-9a-f]{40}$" doc:"Commit of the content. Absent if it is not from a Git repository."`
	Format          string          `json:"format" doc:"Format of the content: helm or manifests. Absent for a bundle of OLM (registry+v1)."`
	Template        *Template       `json:"template" doc:"Input of the templates of a chart. Absent for other formats."`
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
	OutsideWindow   string          `json:"outsideWindow" doc:"Reason why the bundle was pinned outside of its windows."`
	Pos             diag.Pos        `json:"-"`
	Fields          diag.Fields     `json:"-"`
}

// Template is the input of a chart's templates. Rendering uses no other settings for the templates.
type Template struct {
	Release           string          `json:"release" form:"required nonempty" doc:"Name of the release."`
	KubernetesVersion string          `json:"kubernetesVersion" doc:"Version of Kubernetes that the templates see. Absent: 1.34."`
	APIVersions       []string        `json:"apiVersions" form:"nonempty" doc:"APIs of the cluster that the templates check for, without those of Kubernetes itself."`
	Values            json.RawMessage `json:"values" doc:"The user's values, merged. The defaults of the chart are not repeated."`
}

// Requirement is a requirement of a bundle, such as "olm.gvk.required etcd.database.coreos.com/v1beta2
// EtcdCluster", and the pin ("namespace/package") that meets the requirement.
type Requirement struct {
	Requirement string `json:"requirement" form:"required nonempty" doc:"The requirement, as the bundle states it."`
	Pin         string `json:"pin" form:"required nonempty" doc:"namespace/package of the pin that meets it."`
}

// Leaving is the last pin of an operator that is replaced or being uninstalled. The leftover objects of a
// replaced operator stay rendered until the successor is observed running. The objects of an operator that is
// being uninstalled are no longer rendered, and the GitOps tool prunes them. The block of such an operator
// stays until the deletion of its objects is observed.
type Leaving struct {
	ReplacedBy string   `json:"replacedBy" form:"nonempty" doc:"Successor, as namespace/package, which is also in pins or leaving. Absent for an operator that is being uninstalled."`
	With       []string `json:"with" form:"nonempty" doc:"Operators (namespace/package) that were in the same unit of the tree and remain. Absent if there are none."`
	Pin        `json:",inline"`
}

// Adopted records those settings of an operator's OLM installation that do not follow from the bundle.
// Rendering keeps these settings, so that adopting the operator restarts no pods.
type Adopted struct {
	Condition    string       `json:"operatorCondition" form:"required nonempty" doc:"Value of OPERATOR_CONDITION_NAME in the pods."`
	Certificates []string     `json:"caCertificates" form:"nonempty" doc:"CA certificates of OLM's serving certificates, in DER and base64. Absent if the workspace's provider issues the certificates."`
	Annotations  []Annotation `json:"annotations" doc:"Annotations of pod templates that the bundle does not have."`
}

// Annotation is an annotation that only the pods of a Deployment have, or only their template in the bundle.
type Annotation struct {
	Deployment string `json:"deployment" form:"required nonempty" doc:"Name of the Deployment."`
	Name       string `json:"name" form:"required nonempty" doc:"Name of the annotation."`
	Value      string `json:"value" form:"required" doc:"Value of the annotation."`
	Absent     bool   `json:"absent" doc:"Whether the pods do not have the annotation, although the bundle does."`
}

// Storage describes the storage migration that must precede an upgrade to a bundle that drops stored versions
// of a CRD. The pinned bundle has both the old and the new versions.
type Storage struct {
	Stage   StorageStage     `json:"stage" form:"required enum=store|migrate" doc:"store: new writes are stored in version to. migrate: existing objects are also rewritten."`
	Objects []StoredVersions `json:"objects" form:"required" doc:"The objects, by CustomResourceDefinition and version."`
}

// StoredVersions is the migration of the objects of one CRD from one stored version to another.
type StoredVersions struct {
	Definition string `json:"crd" form:"required nonempty" doc:"Name of the CustomResourceDefinition."`
	From       string `json:"from" form:"required nonempty" doc:"Version that the next bundle removes."`
	To         string `json:"to" form:"required nonempty" doc:"Storage version of the next bundle."`
}

// StorageStage is a stage of a storage migration.
type StorageStage string

// Stages of a storage migration, in order.
const (
	StorageStore   StorageStage = "store"
	StorageMigrate StorageStage = "migrate"
)

// String formats the stage and the versions, such as "migrate (widgets.example.com v1alpha1 → v1)".
func (s *Storage) String() string {
	text := make([]string, len(s.Objects))
	for i, o := range s.Objects {
		text[i] = o.Definition + " " + o.From + " → " + o.To
	}
	return string(s.Stage) + " (" + strings.Join(text, ", ") + ")"
}

// fault returns an error if s is invalid.
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

// blockWithChecksum is a block and its checksum, as in the file.
type blockWithChecksum[T block] struct {
	Block    T      `json:",inline"`
	Checksum string `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

// document is the format of the whole file. The type parameters are the types of the blocks.
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
