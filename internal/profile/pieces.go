package profile

import (
	"path"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// Piece is a part of the tree that the GitOps tool applies, prunes and rolls back separately, such
// as one operator.
type Piece struct {
	Name     string        // unique name: "my-etcd.etcd", "namespace-my-etcd" or "reporter"
	Dir      string        // directory, relative to the tree or to Cluster.Prefix: "operators/my-etcd.etcd"
	Plain    bool          // Dir contains manifests without a kustomization
	CRDs     []string      // directories with its CRDs: "crds/etcd"
	Needs    []string      // names of the pieces that it requires
	Clusters []string      // clusters that get the piece; nil means all
	Reports  bool          // the piece contains the reporter
	Leaving  bool          // Dir is empty, so that the tool prunes the piece's objects
	APIs     []catalog.GVK // APIs that its operators provide
}

// isFor reports whether a cluster gets the piece.
func (p Piece) isFor(cluster string) bool {
	return p.Clusters == nil || slices.Contains(p.Clusters, cluster)
}

// Values of GitOps.Granularity.
const (
	PerOperator = "operator"
	PerCluster  = "cluster"
)

// nameSeparator separates the owner and the piece in the name of an object. Neither the owner nor the piece
// contains the separator.
const nameSeparator = "--"

// Maximum lengths of the owner and the piece in a name, which has at most 63 bytes.
const (
	maxOwner = 28
	maxPiece = 63 - maxOwner - len(nameSeparator)
)

// objectName returns the name of the object that applies a piece. owner is the prefix for an
// environment or a cluster. Different arguments give different names.
func objectName(owner, piece string) string {
	return owner + nameSeparator + k8s.FitWithout(nameSeparator, piece, maxPiece)
}

// crdsObjectName returns the name of the object that applies the CRDs in dir.
func crdsObjectName(owner, dir string) string {
	return owner + nameSeparator + k8s.FitWithout(nameSeparator, path.Base(dir), maxPiece-len(nameSeparator+layout.CRDs)) + nameSeparator + layout.CRDs
}

// owner returns the prefix for the names of an environment's objects.
func (g GitOps) owner() string { return k8s.FitWithout(nameSeparator, g.Name, maxOwner) }

// ownerOf returns the prefix for the names of a cluster's objects on a hub. The prefix is unique, because
// names of environments contain no dot.
func (g GitOps) ownerOf(cluster string) string {
	return k8s.FitWithout(nameSeparator, g.Name+"."+cluster, maxOwner)
}

// parentPiece stands for the piece in the name of the object that applies all pieces.
const parentPiece = "pieces"

// Member is the entry of a cluster in clusters.yaml, for the generators of ApplicationSets and for
// other users of the tree. It depends only on settings.
type Member struct {
	Cluster  string `json:"cluster" doc:"Name of the cluster."`
	Prefix   string `json:"prefix" doc:"Prefix of the directories of its pieces in the tree: empty, or clusters/<name>/ if something differs in this cluster."`
	Overlays bool   `json:"overlays" doc:"Whether overlays/<name>/ has changes by the team."`
	ArgoCDMember
}

// PerPiece reports whether the tool of p applies each operator separately. g may be nil.
func PerPiece(p Profile, g *GitOps) bool {
	return g != nil && p.About().Kind != "" && g.Granularity != PerCluster
}

// MemberOf returns the entry of a cluster in clusters.yaml, without the fields of GitOps tools.
func MemberOf(c Cluster) Member {
	return Member{Cluster: c.Name, Prefix: c.Prefix, Overlays: len(c.Overlays) > 0}
}
