package render

import (
	"errors"
	"path"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// Options are the settings of a rendering. The zero value renders plain trees with certificates
// from cert-manager, for one cluster named "default".
type Options struct {
	Profile             profile.Name      // "": plain
	Certificates        certificates.Name // "": cert-manager
	CertificateSettings certificates.ProviderSettings
	KubernetesVersion   string // "1.34"; empty: unknown, current APIs are assumed
	// StorageMigration is the version of storagemigration.k8s.io in the clusters, or "none". For
	// "auto" and "", it is derived from the Kubernetes version of the clusters.
	StorageMigration  string
	OpenShift         bool     // the clusters run OpenShift, which has the CRDs of OLM
	AllowNames        []string // reserved names that bundles may use: "ClusterRole/cluster-admin"
	Clusters          []profile.Cluster
	OverlaysDir       string          // path of the clusters' overlays in messages; "": overlays
	GitOps            *profile.GitOps // nil: no Application and no Flux Kustomization
	Proxy             Proxy
	Mirrors           []Mirror
	ImagePullSecrets  []string        // names of pull secrets for every ServiceAccount
	CSVAnnotations    bool            // copy all CSV annotations to the pod templates, as OLM does
	HealthChecks      bool            // health snippets for the provided APIs
	NoAggregatedRoles bool            // omit the aggregated ClusterRoles for the provided APIs
	Reporter          *Reporter       // nil: none
	AcceptedCRDs      map[string]bool // CRDs that are not checked again, as in Result.AcceptedCRDs
	ObjectsOnly       bool            // leave files of objects in Tree empty, and do not check CRDs

	profile  profile.Profile // set by defaults
	provider certificates.Provider
	types    *admit.Types
}

// Proxy is the proxy configuration of every container in every Deployment, unless the operator's
// own config sets one of the three variables.
type Proxy struct {
	HTTP, HTTPS, None string
}

// Mirror is an alternative repository for images.
type Mirror struct {
	Source     string // "quay.io/strimzi", "quay.io/strimzi/operator"
	Mirror     string // "registry.example.com/strimzi"
	DigestOnly bool   // only for references by digest (ImageDigestMirrorSet)
	TagOnly    bool   // only for references by tag (ImageTagMirrorSet)
}

// defaults returns the options with the documented defaults. It fails for an unknown profile or
// certificate provider.
func (o Options) defaults() (Options, error) {
	var unknown [2]error
	o.profile, unknown[0] = profile.Lookup(o.Profile)
	o.provider, unknown[1] = certificates.NewProvider(o.Certificates, o.CertificateSettings)
	if o.types == nil {
		o.types = admit.NewTypes()
	}
	if len(o.Clusters) == 0 {
		o.Clusters = []profile.Cluster{{Name: "default"}}
	}
	return o, errors.Join(unknown[:]...)
}

// allNamespaces reports whether an install watches the whole cluster.
func allNamespaces(mode catalog.InstallMode, watch []string) bool {
	return mode == catalog.AllNamespaces || len(watch) == 0
}

// prefix returns the path prefix of a cluster's pieces in the tree: "" if the cluster uses the
// base unchanged, otherwise the cluster's own directory. The result depends on settings only.
func (o Options) prefix(c profile.Cluster) string {
	separate := len(o.Clusters) > 1 && profile.NeedsSeparateDirs(o.GitOps)
	if c.GetsAll() && !separate && c.ObjectSettings() == "" && len(c.Overlays) == 0 {
		return ""
	}
	return path.Join(layout.Clusters, c.Name) + "/"
}

// byCluster reports whether all objects of a cluster are applied as one unit: either the workspace
// configures this, or the tool that applies the tree is unknown.
func (o Options) byCluster() bool {
	return !profile.PerPiece(o.profile, o.GitOps)
}

// hasEngine reports whether the tree contains objects that make an engine apply it.
func (o Options) hasEngine() bool { return o.GitOps != nil && o.profile.About().Kind != "" }
