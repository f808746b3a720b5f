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

// File is a whole lock. Build it with New, which sorts.
type File struct {
	Namespaces []Namespace // by name; nil where none is declared
	Pins       []Pin       // by namespace, then package
	Leaving    []Leaving   // by namespace, then package; nil where nothing is left over

	// ReadSchema is the schema that Parse read the file in; 0 for one that New made.
	ReadSchema int
}

// The tags of the blocks below define the file: Format writes their fields in this
// order, Parse reads them, and Schema describes them. docs/lock.md names the reader
// of each field.

// Catalog is the catalog that a pin was taken from, as it was then. A later pin of
// the same catalog may have another digest: every byte of a pin depends on that pin
// or on settings alone, so that upgrades of two operators merge.
type Catalog struct {
	ID       catalog.ID     `json:"name" form:"required" doc:"namespace/name, or name."`
	Source   string         `json:"source" doc:"Canonical reference, never a mirror's, without the digest: image:quay.io/operatorhubio/catalog:latest, oci:catalogs/operatorhubio."`
	Digest   catalog.Digest `json:"digest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the image's manifest, or of the directory's content, when the bundle was pinned."`
	Identity string         `json:"identity" doc:"Signer, where a signature is demanded."`
}

// NewCatalog returns the record of a catalog. A digest in the source is dropped: it
// stands in the digest alone.
func NewCatalog(id catalog.ID, source string, digest catalog.Digest) Catalog {
	return Catalog{ID: id, Source: SourceName(source), Digest: digest}
}

// SourceName returns a source without the digest that it may end with.
func SourceName(source string) string {
	name, _, _ := strings.Cut(source, "@sha256:")
	return name
}

// IsAt reports whether the record is of this state of a catalog: the same source, at
// the same digest.
func (c Catalog) IsAt(source string, digest catalog.Digest) bool {
	return c.Digest != "" && c.Digest == digest && c.Source == SourceName(source)
}

// Namespace is a Namespace that stands among the declarations: only the rendered tree
// creates it in a cluster.
type Namespace struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the Namespace."`
	Labels      map[string]string `json:"labels" doc:"Labels, as declared."`
	Annotations map[string]string `json:"annotations" doc:"Annotations, as declared."`
	Pos         diag.Pos          `json:"-"`
	Fields      diag.Fields       `json:"-"`
}

// Pin is one installed package. These are empty: the channel where the declaration
// names none and the bundle is in several; the image where the catalog embeds the
// content, and the digest of the content where the image pins it; the watch namespaces
// where the operator watches all; the replaced bundle on a fresh install. The image is
// canonical and by digest, as in "quay.io/x/y@sha256:…", the config canonical JSON.
// Watch namespaces, requests and requirements are sorted. Properties are kept so that a
// pin whose bundle was dropped from the catalog stays valid. Pos and Fields are the
// positions of the block and of the names of its fields in the file that it was parsed
// from; so are those of the other blocks.
type Pin struct {
	Namespace       string                 `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Package         string                 `json:"package" form:"required nonempty" doc:"Name of the package."`
	Version         string                 `json:"version" form:"required nonempty" doc:"Version of the bundle."`
	Channel         string                 `json:"channel" doc:"Channel that the bundle was taken from."`
	Bundle          string                 `json:"bundle" form:"required nonempty" doc:"Name of the bundle."`
	Image           string                 `json:"image" doc:"The bundle's image, by digest. Absent where the catalog embeds the content."`
	Identity        string                 `json:"identity" doc:"Signer of the image, where a signature is demanded."`
	ContentDigest   catalog.Digest         `json:"contentDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the bundle's manifests. Absent where the image pins them."`
	Catalog         Catalog                `json:"catalog" doc:"The catalog that the bundle was taken from, as it was then."`
	RequestedBy     []string               `json:"requestedBy" form:"nonempty" doc:"The declarations that ask for the package, namespace/name. Absent: it is a dependency."`
	Approval        string                 `json:"approval" form:"enum=Automatic|Manual" default:"\"Automatic\"" doc:"Manual: upgraded only when named."`
	Hold            string                 `json:"hold" doc:"Reason why the operator is held at its version."`
	InstallMode     catalog.InstallMode    `json:"installMode" form:"enum=AllNamespaces|MultiNamespace|SingleNamespace|OwnNamespace" doc:"Install mode."`
	WatchNamespaces []string               `json:"watchNamespaces" form:"nonempty" doc:"Namespaces that the operator watches. Absent: all."`
	OperatorGroup   string                 `json:"operatorGroup" doc:"Name of the OperatorGroup."`
	Replaces        string                 `json:"replaces" doc:"The bundle that this one was upgraded from."`
	Skipped         []string               `json:"skipped" form:"nonempty" doc:"Bundles passed over in that upgrade, oldest first."`
	Config          json.RawMessage        `json:"config" doc:"As spec.config of OLM's Subscription."`
	Requires        []Requirement          `json:"requires" doc:"The pins that meet the requirements of the bundle."`
	RelatedImages   []catalog.RelatedImage `json:"relatedImages" doc:"Every image that the bundle needs, by digest."`
	Properties      []catalog.Property     `json:"properties" doc:"Properties of the bundle that constrain a resolution."`
	Declaration     catalog.Digest         `json:"declarationDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the declarations that this pin answers."`
	Adopted         *Adopted               `json:"adopted" doc:"What is kept as OLM installed it, until the operator is upgraded. Absent where OLM did not install it."`
	Storage         *Storage               `json:"storage" doc:"Migration step before an upgrade that drops versions in which objects may be stored. Absent where there is none."`
	Pos             diag.Pos               `json:"-"`
	Fields          diag.Fields            `json:"-"`
}

// Requirement is a requirement of a bundle, such as "olm.gvk.required
// etcd.database.coreos.com/v1beta2 EtcdCluster", and the pin, "namespace/package",
// that meets it.
type Requirement struct {
	Requirement string `json:"requirement" form:"required nonempty" doc:"The requirement, as the bundle states it."`
	Pin         string `json:"pin" form:"required nonempty" doc:"namespace/package of the pin that meets it."`
}

// Leaving is the last pin of an operator that is no longer installed: another one
// replaces it, and the block records its leftover objects until the successor is
// observed to run; or it is uninstalled, and the engine prunes what it applied until
// that is observed to be gone.
type Leaving struct {
	ReplacedBy string   `json:"replacedBy" form:"nonempty" doc:"namespace/package of the successor, which is pinned or leaving too. Absent for an operator that is uninstalled."`
	With       []string `json:"with" form:"nonempty" doc:"Operators (namespace/package) that were one piece with it and stay. Absent where it was one by itself."`
	Pin        `json:",inline"`
}

// Adopted is the part of an operator that is rendered as OLM installed it, so that its
// adoption restarts no pod. What follows from the bundle is not in it.
type Adopted struct {
	Condition    string       `json:"operatorCondition" form:"required nonempty" doc:"Name of the OperatorCondition that the pods are given."`
	Certificates []string     `json:"caCertificates" form:"nonempty" doc:"The CA of OLM's serving certificates, in DER and base64. Absent where the workspace's provider issues them."`
	Annotations  []Annotation `json:"annotations" doc:"Annotations of pod templates that the bundle does not have."`
}

// Annotation is one that the pods of a Deployment have, or lack.
type Annotation struct {
	Deployment string `json:"deployment" form:"required nonempty" doc:"Name of the Deployment."`
	Name       string `json:"name" form:"required nonempty" doc:"Name of the annotation."`
	Value      string `json:"value" form:"required" doc:"Value of the annotation."`
	Absent     bool   `json:"absent" doc:"Whether the pods lack it although the bundle has it."`
}

// Storage is the migration step of an operator whose next bundle drops versions in
// which objects may be stored. The pinned bundle has both versions.
type Storage struct {
	State   StorageState     `json:"stage" form:"required enum=store|migrate" doc:"store: objects written from now on are stored in the other version. migrate: those written before are rewritten, too."`
	Objects []StoredVersions `json:"objects" form:"required" doc:"The objects, by CustomResourceDefinition and version."`
}

// StoredVersions is a version out of which objects are migrated.
type StoredVersions struct {
	Definition string `json:"crd" form:"required nonempty" doc:"Name of the CustomResourceDefinition."`
	From       string `json:"from" form:"required nonempty" doc:"Version that the next bundle drops."`
	To         string `json:"to" form:"required nonempty" doc:"Version that the next bundle stores objects in."`
}

// StorageState is one of the states in which an operator waits.
type StorageState string

// The states, in their order.
const (
	StorageStore   StorageState = "store"
	StorageMigrate StorageState = "migrate"
)

// String describes the state in words: "migrate (widgets.example.com v1alpha1 → v1)".
func (s *Storage) String() string {
	text := make([]string, len(s.Objects))
	for i, o := range s.Objects {
		text[i] = o.Definition + " " + o.From + " → " + o.To
	}
	return string(s.State) + " (" + strings.Join(text, ", ") + ")"
}

// fault returns what is wrong with the state, nil where nothing is.
func (s *Storage) fault() error {
	switch {
	case s.State != StorageStore && s.State != StorageMigrate:
		return fmt.Errorf("storage: stage %q is none of %s, %s", s.State, StorageStore, StorageMigrate)
	case len(s.Objects) == 0:
		return errors.New("storage: no objects")
	}
	to := map[string]string{}
	for _, o := range s.Objects {
		if o.Definition == "" || o.From == "" || o.To == "" || o.From == o.To {
			return errors.New("storage: want crd, from and to, which is another version")
		}
		if other, ok := to[o.Definition]; ok && other != o.To {
			return fmt.Errorf("storage: objects of %s cannot be stored in both %s and %s", o.Definition, other, o.To)
		}
		to[o.Definition] = o.To
	}
	return nil
}

// block is one that a lock is made of. Its title is what messages call it.
type block interface{ title() string }

func (n Namespace) title() string { return "Namespace " + strconv.Quote(n.Name) }
func (p Pin) title() string       { return "pin " + strconv.Quote(p.Key()) }
func (l Leaving) title() string   { return "leaving operator " + strconv.Quote(l.Key()) }

// written is a block as it stands in the file.
type written[T block] struct {
	Block    T      `json:",inline"`
	Checksum string `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

// document is the whole file, of blocks in any form.
type document[N, P, L any] struct {
	APIVersion string `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string `json:"kind" form:"required const=Lock" doc:"Lock"`
	Schema     int    `json:"schema" form:"required" doc:"Number of the schema: 1."`
	Namespaces []N    `json:"namespaces" doc:"The declared Namespaces, by name. Absent where there are none."`
	Pins       []P    `json:"pins" form:"required" doc:"One block per installed package, by namespace and package."`
	Leaving    []L    `json:"leaving" doc:"Operators that others replace and of which objects are still rendered, and such that are being uninstalled, by namespace and package. Absent where there are none."`
}

// JSONSchema returns the JSON schema of quayside.lock, as it is shipped.
func JSONSchema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/lock.schema.json", "quayside lock",
		document[written[Namespace], written[Pin], written[Leaving]]{})
}
