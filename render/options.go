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

// Options are the settings for rendering. The zero value renders a tree for no specific GitOps
// tool, with certificates from cert-manager, and for one cluster named "default".
type Options struct {
	Profile             profile.Name      // GitOps tool; "": plain (none)
	Certificates        certificates.Name // provider of certificates; "": cert-manager
	CertificateSettings certificates.ProviderSettings
	KubernetesVersion   string // such as "1.34"; empty: unknown, assume that only current APIs are served
	// StorageMigration is the version of storagemigration.k8s.io that the clusters serve, or
	// "none". For "auto" and "", it is derived from the Kubernetes version of the clusters.
	StorageMigration  string
	OpenShift         bool                 // whether the clusters run OpenShift, which has the CRDs of OLM
	Recreate          []profile.Recreation // objects that the GitOps tool recreates
	AllowNames        []string             // reserved names that bundles may use, such as "ClusterRole/cluster-admin"
	Clusters          []profile.Cluster
	OverlaysDir       string          // directory of the clusters' overlays, for messages; "": overlays
	OverlaysInside    bool            // whether the overlays are in the tree's directory overlays, instead of beside the tree
	GitOps            *profile.GitOps // nil: render no objects of the GitOps tool
	Proxy             Proxy
	Mirrors           []Mirror
	ImagePullSecrets  []string        // names of image pull secrets for every ServiceAccount
	CSVAnnotations    bool            // whether to copy all annotations of the CSV to the pod templates, as OLM does
	PodLabels         bool            // whether to also add the labels of the operator to pod templates
	HealthChecks      bool            // whether to render health checks of the provided APIs for the GitOps tool
	NoAggregatedRoles bool            // whether to omit the aggregated ClusterRoles of the provided APIs
	Reporter          *Reporter       // nil: render no reporter
	AcceptedCRDs      map[string]bool // digests of CRDs that need no check, from Result.AcceptedCRDs
	ObjectsOnly       bool            // leave the files of objects in Tree empty, and do not check CRDs

	profile  profile.Profile // set by defaults
	provider certificates.Provider
	types    *admit.Types
}

// overlaysDir returns the path of the clusters' overlays from the root of the tree.
func (o Options) overlaysDir() string {
	if o.OverlaysInside {
		return layout.Overlays
	}
	return path.Join("..", layout.Overlays)
}

// Proxy is the proxy configuration of all containers in Deployments. It does not apply to an operator if the
// config of the operator sets one of the three variables.
type Proxy struct {
	HTTP, HTTPS, None string
}

// Mirror is an alternative repository that clusters pull images from.
type Mirror struct {
	Source     string // prefix of image names, such as "quay.io/strimzi" or "quay.io/strimzi/operator"
	Mirror     string // replacement, such as "registry.example.com/strimzi"
	DigestOnly bool   // only for references by digest (ImageDigestMirrorSet)
	TagOnly    bool   // only for references by tag (ImageTagMirrorSet)
}

// defaults returns the options with their documented defaults. It returns an error for an unknown
// profile or certificate provider.
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

// allNamespaces reports whether an operator with this install mode watches the whole cluster.
func allNamespaces(mode catalog.InstallMode, watch []string) bool {
	return mode == catalog.AllNamespaces || len(watch) == 0
}

// prefix returns the path prefix for the pieces of a cluster: "" if the cluster uses the base unchanged,
// otherwise the cluster's own directory. It depends only on settings.
func (o Options) prefix(c profile.Cluster) string {
	separate := len(o.Clusters) > 1 && profile.NeedsSeparateDirs(o.GitOps)
	if c.GetsAll() && !separate && c.ObjectSettings() == "" && len(c.Overlays) == 0 {
		return ""
	}
	return path.Join(layout.Clusters, c.Name) + "/"
}

// byCluster reports whether the objects of a cluster are applied as one unit. This is the case if the workspace
// configures this, or if the tool that applies the tree is unknown.
func (o Options) byCluster() bool {
	return !profile.PerPiece(o.profile, o.GitOps)
}

// hasEngine reports whether the tree contains objects that make a GitOps engine apply it.
func (o Options) hasEngine() bool { return o.GitOps != nil && o.profile.About().Kind != "" }
