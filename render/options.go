package render

import (
	"encoding/json"
	"errors"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/render/certificates"
	"github.com/quayside/quayside/render/profile"
)

// Options say how to render. The zero value renders plain trees with
// certificates by cert-manager, for one cluster named "default".
type Options struct {
	Profile           profile.Name      // "": plain
	Certificates      certificates.Name // "": cert-manager
	CertificateSecret string            // by secret: name of the Secret with tls.crt and tls.key; %s stands for the Service's name: "%s-cert"
	CABundle          []byte            // by secret: the CA's certificates in PEM …
	CASecret          string            // … or "namespace/name" of a Secret that cert-manager's injector reads
	KubernetesVersion string            // "1.34"; empty: not said, current APIs are assumed
	StorageMigration  string            // version of storagemigration.k8s.io that clusters have; "none": they have it not; "auto", "": by their Kubernetes version
	OpenShift         bool              // the clusters are OpenShift's, which brings the CRDs of OLM itself
	AllowNames        []string          // names of the cluster's own that bundles may take: "ClusterRole/cluster-admin"
	Clusters          []Cluster
	OverlaysDir       string  // the path of the clusters' overlays in messages; "": overlays
	GitOps            *GitOps // nil: no Application and no Flux Kustomization
	Proxy             Proxy
	Mirrors           []Mirror
	ImagePullSecrets  []string  // names, for every ServiceAccount
	CSVAnnotations    bool      // put every annotation of the CSV on the pod templates, as OLM does
	HealthChecks      bool      // health snippets for the provided APIs
	NoAggregatedRoles bool      // leave out the ClusterRoles that give the cluster's admins, editors and viewers the provided APIs
	Reporter          *Reporter // nil: none
	Taken             Taken     // nil: nothing is known
	ObjectsOnly       bool      // for who looks at Objects alone: Tree has the names of its files, and of objects no content; whether the API server takes the CRDs is not looked at

	profile  profile.Profile // of defaults
	provider certificates.Provider
	types    *admit.Types
}

// Taken remembers CRDs that the API server takes, by their text. To find that out
// takes longer than to render the rest of a bundle, and is the same every time.
type Taken interface {
	Known(text []byte) bool
	Note(text []byte)
}

// Cluster is one that gets the tree, or some of it.
type Cluster struct {
	Name              string            // "prod"
	Server            string            // "https://prod.example.com:6443", where Argo CD has the cluster …
	Destination       string            // … or the name by which it has it; the cluster that it runs in where both are empty
	KubeConfig        string            // name of the Secret by which Flux on another cluster reaches it; empty: its own Flux applies it
	Values            map[string]string // what GitOps.Inputs says of it beside
	KubernetesVersion string            // "1.34"; empty: that of the options
	Operators         []string          // globs over "namespace/package"; empty or "*": all
	Overlays          []string          // what the team changes in overlays/<name>/: "" for all pieces, the names of single ones, "resources"
	Config            json.RawMessage   // as a Subscription's spec.config, on top of each operator's own; canonical JSON
}

// GitOps is where the tree will live.
type GitOps = profile.GitOps

// Proxy is set on every container of every Deployment, unless the operator's
// own config sets one of the three.
type Proxy struct {
	HTTP, HTTPS, None string
}

// Mirror is one place to pull images from instead of another.
type Mirror struct {
	Source     string // "quay.io/strimzi", "quay.io/strimzi/operator"
	Mirror     string // "registry.example.com/strimzi"
	DigestOnly bool   // only for references by digest (ImageDigestMirrorSet)
	TagOnly    bool   // only for references by tag (ImageTagMirrorSet)
}

// defaults returns the options with the documented defaults filled in. The error
// names a profile or a provider that there is not.
func (o Options) defaults() (Options, error) {
	var unknown [2]error
	o.profile, unknown[0] = profile.Of(o.Profile)
	o.provider, unknown[1] = certificates.Of(o.Certificates, certificates.Settings{Secret: o.CertificateSecret, CABundle: o.CABundle, CASecret: o.CASecret})
	if o.types == nil {
		o.types = admit.NewTypes()
	}
	if len(o.Clusters) == 0 {
		o.Clusters = []Cluster{{Name: "default"}}
	}
	return o, errors.Join(unknown[:]...)
}

// allNamespaces reports whether an install watches the whole cluster.
func allNamespaces(mode catalog.InstallMode, watch []string) bool {
	return mode == catalog.AllNamespaces || len(watch) == 0
}
