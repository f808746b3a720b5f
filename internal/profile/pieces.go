package profile

import (
	"path"
	"slices"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/model"
)

// Piece is a unit that an engine builds, applies, watches, prunes and rolls back.
type Piece struct {
	Name     string      // unique in the tree: "my-etcd.etcd", "namespace-my-etcd", "reporter"
	Dir      string      // in the tree, and also below Cluster.Prefix: "operators/my-etcd.etcd"
	Plain    bool        // Dir holds manifests and no kustomization
	CRDs     []string    // directories of its CRDs: "crds/etcd"
	Needs    []string    // names of required pieces
	Clusters []string    // target clusters; nil: all
	Reports  bool        // it belongs to the reporter
	Leaving  bool        // Dir is empty, so the piece's objects are pruned
	APIs     []model.GVK // custom resources provided by its operators
}

// gets reports whether a cluster gets the piece.
func (p Piece) gets(cluster string) bool {
	return p.Clusters == nil || slices.Contains(p.Clusters, cluster)
}

// Granularities.
const (
	PerOperator = "operator"
	PerCluster  = "cluster"
)

// apart separates the owner from the name of a piece: neither contains it.
const apart = "--"

// Maximum lengths of a name's parts: together they have 63 bytes.
const (
	maxOwner = 28
	maxPiece = 63 - maxOwner - len(apart)
)

// objectName returns the name of the object that applies a piece, for an environment or one of
// its clusters. Different arguments have different names.
func objectName(owner, piece string) string {
	return owner + apart + k8s.FitWithout(apart, piece, maxPiece)
}

// namedCRDs returns the name of the object that applies a package's CRDs.
func namedCRDs(owner, dir string) string {
	return owner + apart + k8s.FitWithout(apart, path.Base(dir), maxPiece-len(apart+layout.CRDs)) + apart + layout.CRDs
}

// owner returns the prefix of the names of an environment's objects.
func (g GitOps) owner() string { return k8s.FitWithout(apart, g.Name, maxOwner) }

// ownerOf returns the prefix of the names of a cluster's objects on a hub. Environment names
// have no dot.
func (g GitOps) ownerOf(cluster string) string {
	return k8s.FitWithout(apart, g.Name+"."+cluster, maxOwner)
}

// parent is the name of the object that applies all pieces.
const parent = "pieces"

// Member is the entry of one cluster in clusters.yaml, for the generators of ApplicationSets and
// other readers of the tree. It depends only on settings.
type Member struct {
	Cluster  string `json:"cluster" doc:"Name of the cluster."`
	Prefix   string `json:"prefix" doc:"Prefix of the directories of its pieces in the tree: empty, or clusters/<name>/ if something differs in this cluster."`
	Overlays bool   `json:"overlays" doc:"Whether overlays/<name>/ has changes by the team."`
	ArgoCDMember
}

// PerPiece reports whether an engine applies each operator separately; g may be nil.
func PerPiece(p Profile, g *GitOps) bool {
	return g != nil && p.About().Kind != "" && g.Granularity != PerCluster
}

// MemberOf returns the fields of a cluster that all profiles have in common.
func MemberOf(c Cluster) Member {
	return Member{Cluster: c.Name, Prefix: c.Prefix, Overlays: len(c.Overlays) > 0}
}
