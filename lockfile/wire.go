package lockfile

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/jsonschema"
)

// wireFile is the file with its blocks unread: each is read by itself, so that
// a fault in one hides none in another.
type wireFile struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Catalogs   []*yaml.Node `json:"catalogs"`
	Namespaces []*yaml.Node `json:"namespaces"`
	Pins       []*yaml.Node `json:"pins"`
	Accepted   []*yaml.Node `json:"accepted"`
}

// shape is the whole file, for the schema.
type shape struct {
	APIVersion string          `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string          `json:"kind" form:"required const=Lock" doc:"Lock"`
	Catalogs   []wireCatalog   `json:"catalogs" form:"required" doc:"The catalogs that the pins came from, by namespace and name."`
	Namespaces []wireNamespace `json:"namespaces" doc:"The Namespaces that are declared, by name. Absent where there are none."`
	Pins       []wirePin       `json:"pins" form:"required" doc:"One block per installed package, by namespace and package."`
	Accepted   []wireAccepted  `json:"accepted" doc:"What reviewers have let each operator have. Absent where no budget is kept."`
}

type wireCatalog struct {
	Namespace string `json:"namespace" doc:"Namespace of the CatalogSource. Absent for a ClusterCatalog."`
	Name      string `json:"name" form:"required nonempty" doc:"Name of the CatalogSource or ClusterCatalog."`
	Source    string `json:"source" form:"required nonempty" doc:"Canonical reference, never a mirror's."`
	Digest    string `json:"digest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of what the source named."`
	Identity  string `json:"identity" doc:"Who signed it, where a signature is demanded."`
	Checksum  string `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

type wireNamespace struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the Namespace."`
	Labels      map[string]string `json:"labels" doc:"Labels, as declared."`
	Annotations map[string]string `json:"annotations" doc:"Annotations, as declared."`
	Checksum    string            `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

type wirePin struct {
	Namespace       string          `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Package         string          `json:"package" form:"required nonempty" doc:"Name of the package."`
	Version         string          `json:"version" form:"required nonempty" doc:"Version of the bundle."`
	Channel         string          `json:"channel" doc:"Channel that the bundle was taken from."`
	Bundle          string          `json:"bundle" form:"required nonempty" doc:"Name of the bundle."`
	Image           string          `json:"image" doc:"The bundle's image, by digest. Absent where the catalog embeds the content."`
	Identity        string          `json:"identity" doc:"Who signed the image, where a signature is demanded."`
	ContentDigest   string          `json:"contentDigest" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Digest of the bundle's manifests."`
	Catalog         string          `json:"catalog" doc:"namespace/name, or name, of the catalog that the bundle came from."`
	Subscription    string          `json:"subscription" doc:"Name of the declaration that is answered, or of the one that OLM would generate."`
	Generated       bool            `json:"generated" doc:"Whether nobody declared it: a dependency."`
	Approval        string          `json:"approval" form:"enum=Automatic|Manual" doc:"Manual: moved only when named."`
	Hold            string          `json:"hold" doc:"Why the operator does not move."`
	InstallMode     string          `json:"installMode" form:"enum=AllNamespaces|MultiNamespace|SingleNamespace|OwnNamespace" doc:"Install mode."`
	WatchNamespaces []string        `json:"watchNamespaces" form:"nonempty" doc:"Namespaces that the operator watches. Absent: all."`
	OperatorGroup   string          `json:"operatorGroup" doc:"Name of the OperatorGroup."`
	Replaces        string          `json:"replaces" doc:"The bundle that this one took the place of."`
	Skipped         []string        `json:"skipped" form:"nonempty" doc:"Bundles passed over on the way here, oldest first."`
	RemainingHops   []string        `json:"remainingHops" form:"nonempty" doc:"Bundles up to the head that can be reached, nearest first."`
	Config          json.RawMessage `json:"config" doc:"As spec.config of OLM's Subscription."`
	RequestedBy     []wireRequest   `json:"requestedBy" doc:"Why the package is pinned."`
	RelatedImages   []wireImage     `json:"relatedImages" doc:"Every image that the bundle needs, by digest."`
	Properties      []wireProperty  `json:"properties" doc:"What the catalog says of the bundle."`
	Declaration     string          `json:"declaration" form:"pattern=^sha256:[0-9a-f]{64}$" doc:"Hash of the declarations that this pin answers."`
	Checksum        string          `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

type wireRequest struct {
	Subscription string `json:"subscription" doc:"namespace/name of a declaration."`
	Pin          string `json:"pin" doc:"namespace/package of a pin that requires it."`
	Requirement  string `json:"requirement" doc:"What that pin requires."`
}

type wireImage struct {
	Name  string `json:"name" doc:"Name that the bundle gives the image."`
	Image string `json:"image" doc:"The image."`
}

type wireProperty struct {
	Type  string          `json:"type" form:"required" doc:"Type of the property, such as olm.gvk."`
	Value json.RawMessage `json:"value" doc:"Value of the property."`
}

// Schema returns the JSON schema of quayside.lock, as it is shipped.
func Schema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/lock.schema.json", "quayside lock", shape{})
}
