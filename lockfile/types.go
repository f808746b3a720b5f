package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/jsonschema"
)

// File is a whole lock. Build it with New, which sorts.
type File struct {
	Catalogs   []Catalog   // by namespace, then name
	Namespaces []Namespace // by name; nil where none is declared
	Pins       []Pin       // by namespace, then package
	Leaving    []Leaving   // by namespace, then package; nil where nothing is left over
}

// The tags of the blocks below say how the file has them: Format writes their
// fields in this order, Parse reads them, and Schema describes them.

// Catalog is one catalog that a pin came from. Its source is as in
// "image:quay.io/operatorhubio/catalog:latest" or "oci:catalogs/operatorhubio",
// its digest that of the image's manifest or of the directory's content. Pos and
// Fields say where the block and the names of its fields stand in the file that
// it was parsed from; so do those of the other blocks.
type Catalog struct {
	ID       catalog.ID     `json:",inline"`
	Source   string         `json:"source" form:"required nonempty" doc:"Canonical reference, never a mirror's."`
	Digest   catalog.Digest `json:"digest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of what the source named."`
	Identity string         `json:"identity" doc:"Who signed it, where a signature is demanded."`
	Pos      diag.Pos       `json:"-"`
	Fields   diag.Fields    `json:"-"`
}

// Namespace is a Namespace that stands among the declarations: nothing but what
// is rendered would put it into a cluster.
type Namespace struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the Namespace."`
	Labels      map[string]string `json:"labels" doc:"Labels, as declared."`
	Annotations map[string]string `json:"annotations" doc:"Annotations, as declared."`
	Pos         diag.Pos          `json:"-"`
	Fields      diag.Fields       `json:"-"`
}

// Pin is one installed package. What says nothing is empty: the channel where the
// declaration names none and the bundle is in several; the image where the
// catalog embeds the content, and the digest of the content where the image pins
// it; the watch namespaces where it is all of them; what was replaced on a fresh
// install; the remaining hops at the head. The image is canonical and by digest,
// as in "quay.io/x/y@sha256:…", the config canonical JSON. Watch namespaces and
// requests are sorted. Properties are kept so that a pin outlives its entry in
// the catalog.
type Pin struct {
	Namespace       string                 `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Package         string                 `json:"package" form:"required nonempty" doc:"Name of the package."`
	Version         string                 `json:"version" form:"required nonempty" doc:"Version of the bundle."`
	Channel         string                 `json:"channel" doc:"Channel that the bundle was taken from."`
	Bundle          string                 `json:"bundle" form:"required nonempty" doc:"Name of the bundle."`
	Image           string                 `json:"image" doc:"The bundle's image, by digest. Absent where the catalog embeds the content."`
	Identity        string                 `json:"identity" doc:"Who signed the image, where a signature is demanded."`
	ContentDigest   catalog.Digest         `json:"contentDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the bundle's manifests."`
	Catalog         catalog.ID             `json:"catalog" doc:"namespace/name, or name, of the catalog that the bundle came from."`
	Subscription    string                 `json:"subscription" doc:"Name of the declaration that is answered, or of the one that OLM would generate."`
	Generated       bool                   `json:"generated" doc:"Whether nobody declared it: a dependency."`
	Approval        string                 `json:"approval" form:"enum=Automatic|Manual" doc:"Manual: moved only when named."`
	Hold            string                 `json:"hold" doc:"Why the operator does not move."`
	InstallMode     catalog.InstallMode    `json:"installMode" form:"enum=AllNamespaces|MultiNamespace|SingleNamespace|OwnNamespace" doc:"Install mode."`
	WatchNamespaces []string               `json:"watchNamespaces" form:"nonempty" doc:"Namespaces that the operator watches. Absent: all."`
	OperatorGroup   string                 `json:"operatorGroup" doc:"Name of the OperatorGroup."`
	Replaces        string                 `json:"replaces" doc:"The bundle that this one took the place of."`
	Skipped         []string               `json:"skipped" form:"nonempty" doc:"Bundles passed over on the way here, oldest first."`
	RemainingHops   []string               `json:"remainingHops" form:"nonempty" doc:"Bundles up to the head that can be reached, nearest first."`
	HeldBack        HeldBack               `json:"heldBack" form:"enum=approval|hold|range|downgrade|stranded|dropped|installMode|clusterVersion|conflict" doc:"Why an upgrade of everything would leave it where it is. Absent where it would move, or need not."`
	Config          json.RawMessage        `json:"config" doc:"As spec.config of OLM's Subscription."`
	RequestedBy     []Request              `json:"requestedBy" doc:"Why the package is pinned."`
	RelatedImages   []catalog.RelatedImage `json:"relatedImages" doc:"Every image that the bundle needs, by digest."`
	Properties      []catalog.Property     `json:"properties" doc:"What the catalog says of the bundle."`
	Lifecycle       *lifecycle.Version     `json:"lifecycle" doc:"How long the version is supported, and on what, as the catalog says. Absent where it says nothing."`
	Declaration     catalog.Digest         `json:"declaration" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Hash of the declarations that this pin answers."`
	Adopted         *Adopted               `json:"adopted" doc:"What is kept as OLM left it, until the pin moves to another bundle. Absent where OLM did not install it."`
	Storage         *Storage               `json:"storage" doc:"In which state the operator waits for an upgrade that drops versions in which objects may be stored. Absent where it waits for none."`
	Pos             diag.Pos               `json:"-"`
	Fields          diag.Fields            `json:"-"`
}

// Leaving is the pin of an operator that another one follows, as it was. It is
// not installed any more: it says what is left of the operator until the one that
// follows it was seen to run.
type Leaving struct {
	FollowedBy string `json:"followedBy" form:"required nonempty" doc:"namespace/package of the pin that follows it, or of what is leaving too."`
	Pin        `json:",inline"`
}

// Adopted is what rendering keeps of an operator as OLM installed it, so that to
// take it over restarts no pod. What follows from the bundle is not in it.
type Adopted struct {
	Condition    string       `json:"condition" form:"required nonempty" doc:"Name of the OperatorCondition that the pods are told."`
	Certificates []string     `json:"certificates" form:"nonempty" doc:"The CA of OLM's serving certificates, in DER and base64. Absent where the workspace's provider makes them."`
	Annotations  []Annotation `json:"annotations" doc:"Annotations of pod templates that the bundle does not tell."`
}

// Annotation is one that the pods of a Deployment have, or have not.
type Annotation struct {
	Deployment string `json:"deployment" form:"required nonempty" doc:"Name of the Deployment."`
	Name       string `json:"name" form:"required nonempty" doc:"Name of the annotation."`
	Value      string `json:"value" form:"required" doc:"Value of the annotation."`
	Absent     bool   `json:"absent" doc:"Whether the pods do not have it, though the bundle tells it."`
}

// Storage is how far the objects of an operator are on their way out of versions
// that its next bundle no longer has. The bundle that is pinned has both.
type Storage struct {
	State   StorageState     `json:"state" form:"required enum=store|migrate" doc:"store: what is written from now on is stored in the other version. migrate: what was written before is rewritten, too."`
	Objects []StoredVersions `json:"objects" form:"required" doc:"Which objects, by definition and version."`
}

// StoredVersions is a version that objects of a definition are to leave.
type StoredVersions struct {
	Definition string `json:"definition" form:"required nonempty" doc:"Name of the CustomResourceDefinition."`
	From       string `json:"from" form:"required nonempty" doc:"Version that the next bundle no longer has."`
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
		return fmt.Errorf("storage: state %q is none of %s, %s", s.State, StorageStore, StorageMigrate)
	case len(s.Objects) == 0:
		return errors.New("storage: no objects")
	}
	to := map[string]string{}
	for _, o := range s.Objects {
		if o.Definition == "" || o.From == "" || o.To == "" || o.From == o.To {
			return errors.New("storage: want definition, from and to, which is another version")
		}
		if other, ok := to[o.Definition]; ok && other != o.To {
			return fmt.Errorf("storage: objects of %s cannot be stored in both %s and %s", o.Definition, other, o.To)
		}
		to[o.Definition] = o.To
	}
	return nil
}

// HeldBack is what keeps a pin from its next hop, or from the head of its channel.
type HeldBack string

// What an operator waits for: the declaration, then the catalogs, then the cluster
// and the other operators.
const (
	HeldByApproval    HeldBack = "approval"       // Manual: only an upgrade that names it moves it
	HeldByHold        HeldBack = "hold"           // its declaration says so
	HeldByRange       HeldBack = "range"          // its declaration asks for other versions than the next one
	HeldByVersions    HeldBack = "downgrade"      // the only way on goes down
	HeldByCatalog     HeldBack = "stranded"       // no edge leads on, or its channel or package is no longer there
	HeldByDrop        HeldBack = "dropped"        // likewise, and its catalog no longer has the version
	HeldByInstallMode HeldBack = "installMode"    // the next one does not support what its OperatorGroup wants
	HeldByCluster     HeldBack = "clusterVersion" // the next one does not run on that version of the cluster
	HeldByConflict    HeldBack = "conflict"       // the next one does not go together with something else
)

// Request is one reason why a package is pinned: a declaration such as
// "my-etcd/etcd", or a pin and what it requires, as in "olm.gvk.required
// etcd.database.coreos.com/v1beta2 EtcdCluster".
type Request struct {
	Subscription string `json:"subscription" doc:"namespace/name of a declaration."`
	Pin          string `json:"pin" doc:"namespace/package of a pin that requires it."`
	Requirement  string `json:"requirement" doc:"What that pin requires."`
}

// block is one that a lock is made of. Its title is what messages call it.
type block interface{ title() string }

func (c Catalog) title() string   { return "catalog " + strconv.Quote(c.ID.String()) }
func (n Namespace) title() string { return "Namespace " + strconv.Quote(n.Name) }
func (p Pin) title() string       { return "pin " + strconv.Quote(p.Key()) }
func (l Leaving) title() string   { return "what is left of " + strconv.Quote(l.Key()) }

// written is a block as it stands in the file.
type written[T block] struct {
	Block    T      `json:",inline"`
	Checksum string `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

// document is the whole file, of blocks in any form.
type document[C, N, P, L any] struct {
	APIVersion string `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string `json:"kind" form:"required const=Lock" doc:"Lock"`
	Catalogs   []C    `json:"catalogs" form:"required" doc:"The catalogs that the pins came from, by namespace and name."`
	Namespaces []N    `json:"namespaces" doc:"The Namespaces that are declared, by name. Absent where there are none."`
	Pins       []P    `json:"pins" form:"required" doc:"One block per installed package, by namespace and package."`
	Leaving    []L    `json:"leaving" doc:"Operators that others follow, of which something is still rendered, by namespace and package. Absent where there are none."`
}

// Schema returns the JSON schema of quayside.lock, as it is shipped.
func Schema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/lock.schema.json", "quayside lock",
		document[written[Catalog], written[Namespace], written[Pin], written[Leaving]]{})
}
