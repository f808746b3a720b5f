package profile

import (
	"path"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
)

// Piece is what an engine builds, applies, watches, prunes and rolls back
// together.
type Piece struct {
	Name     string        // unique among those of the tree: "my-etcd.etcd", "namespace-my-etcd", "reporter"
	Dir      string        // in the tree, and below Cluster.Prefix likewise: "operators/my-etcd.etcd"
	Plain    bool          // Dir holds manifests and no kustomization
	CRDs     []string      // directories of the definitions that go with it: "crds/etcd"
	Needs    []string      // names of pieces without which it does not work
	Clusters []string      // that get it; nil: all
	Reports  bool          // it is the reporter's
	Leaving  bool          // Dir holds nothing, so that what the piece applied is pruned
	APIs     []catalog.GVK // custom resources that its operators provide
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

// apart stands between what a name is of and the name of a piece: neither has it.
const apart = "--"

// How long the parts of a name are at most: together they have 63 bytes.
const (
	maxOwner = 28
	maxPiece = 63 - maxOwner - len(apart)
)

// named returns the name of what applies a piece, for an environment or for one
// cluster of it. Names differ where either differs.
func named(owner, piece string) string {
	return owner + apart + kobj.FitWithout(apart, piece, maxPiece)
}

// namedCRDs returns the name of what applies the definitions of a package.
func namedCRDs(owner, dir string) string {
	return owner + apart + kobj.FitWithout(apart, path.Base(dir), maxPiece-len(apart+layout.CRDs)) + apart + layout.CRDs
}

// owner returns what the names of an environment's objects begin with.
func (g GitOps) owner() string { return kobj.FitWithout(apart, g.Name, maxOwner) }

// ownerOf returns what the names of a cluster's objects begin with on a hub: no
// environment has a dot in its name.
func (g GitOps) ownerOf(cluster string) string {
	return kobj.FitWithout(apart, g.Name+"."+cluster, maxOwner)
}

// parent is the name of what applies all pieces.
const parent = "pieces"

// Member is what clusters.yaml says of one cluster: for the generators of
// ApplicationSets, and for whoever reads the tree. It depends on settings alone.
type Member struct {
	Cluster     string `json:"cluster" doc:"Name of the cluster."`
	Prefix      string `json:"prefix" doc:"What stands before the directories of its pieces in the tree: empty, or clusters/<name>/ where something differs there."`
	Overlays    bool   `json:"overlays" doc:"Whether the team changes something in overlays/<name>/."`
	Application string `json:"application,omitempty" doc:"Argo CD: what the names of its Applications begin with."`
	Server      string `json:"server,omitempty" doc:"Argo CD: URL of the API server …"`
	Name        string `json:"name,omitempty" doc:"Argo CD: … or the name by which it has the cluster."`
}

// PerPiece reports whether an engine applies each operator by itself; g may be nil.
func PerPiece(p Profile, g *GitOps) bool {
	return g != nil && p.Kind() != "" && g.Granularity != PerCluster
}

// MemberOf returns what everybody is told of a cluster.
func MemberOf(c Cluster) Member {
	return Member{Cluster: c.Name, Prefix: c.Prefix, Overlays: c.Overlays}
}
