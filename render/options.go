package render

import (
	"encoding/json"

	"github.com/quayside/quayside/catalog"
)

// Profile is the GitOps tool that a tree is made for.
type Profile string

// The three profiles. Plain trees carry nothing that belongs to one tool.
const (
	Plain  Profile = "plain"
	ArgoCD Profile = "argocd"
	Flux   Profile = "flux"
)

// Provider is who makes the certificates of webhooks and API services.
type Provider string

// The three providers.
const (
	CertManager        Provider = "cert-manager"
	OpenShiftServiceCA Provider = "openshift-service-ca"
	SecretProvider     Provider = "secret"
)

// Options say how to render. The zero value renders plain trees with
// certificates by cert-manager, for one cluster named "default".
type Options struct {
	Profile           Profile  // "": Plain
	Certificates      Provider // "": CertManager
	CertificateSecret string   // SecretProvider: name of the Secret with tls.crt and tls.key; %s stands for the Service's name: "%s-cert"
	CABundle          []byte   // SecretProvider: the CA's certificates in PEM …
	CASecret          string   // … or "namespace/name" of a Secret that cert-manager's injector reads
	KubernetesVersion string   // "1.34"; empty: not said, current APIs are assumed
	Clusters          []Cluster
	GitOps            *GitOps // nil: no Application and no Flux Kustomization
	Proxy             Proxy
	Mirrors           []Mirror
	ImagePullSecrets  []string  // names, for every ServiceAccount
	Namespaces        []string  // declared elsewhere: not rendered
	CSVAnnotations    bool      // put every annotation of the CSV on the pod templates, as OLM does
	HealthChecks      bool      // health snippets for the provided APIs
	Reporter          *Reporter // nil: none
}

// Cluster is one overlay.
type Cluster struct {
	Name              string          // "prod"
	Server            string          // "https://kubernetes.default.svc", for an ApplicationSet
	KubernetesVersion string          // "1.34"; empty: that of the options
	Operators         []string        // globs over "namespace/package"; empty or "*": all
	Config            json.RawMessage // as a Subscription's spec.config, on top of each operator's own; canonical JSON
}

// GitOps is where the tree will live.
type GitOps struct {
	RepoURL    string // "https://git.example.com/fleet.git"
	Revision   string // "main"
	Path       string // "rendered"
	Namespace  string // "argocd"
	Project    string // "default"
	SourceKind string // "GitRepository"
	SourceName string // "fleet"

	SourceNamespace string // of the Flux source; empty: Namespace
}

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

// defaults returns the options with the documented defaults filled in.
func (o Options) defaults() Options {
	if o.Profile == "" {
		o.Profile = Plain
	}
	if o.Certificates == "" {
		o.Certificates = CertManager
	}
	if o.CertificateSecret == "" {
		o.CertificateSecret = "%s-cert"
	}
	if len(o.Clusters) == 0 {
		o.Clusters = []Cluster{{Name: "default"}}
	}
	return o
}

// allNamespaces reports whether an install watches the whole cluster.
func allNamespaces(mode catalog.InstallMode, watch []string) bool {
	return mode == catalog.AllNamespaces || len(watch) == 0
}
