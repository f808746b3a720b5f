package profile

import (
	"cmp"
	"path"

	"github.com/quayside/quayside/internal/k8s"
)

const bargeKeep = "barge.example.com/keep"

// barge applies a tree by Cargos, one for each cluster.
type barge struct{ plain }

// BargeSettings are the fields of spec.gitops for barge.
type BargeSettings struct {
	Harbour string `json:"harbour" doc:"Barge: the harbour. Needed by the barge profile."`
	Flag    string `json:"flag" default:"\"blue\"" doc:"Barge: the flag."`
}

// BargeCluster are the fields of spec.clusters for barge.
type BargeCluster struct {
	Pier string `json:"pier" doc:"Barge: the pier that the cluster lies at."`
}

func (barge) About() About {
	return About{
		Tool: "Barge", Kind: "a Cargo", Namespace: "barges", Manager: "barge",
		Directives: []Directive{{Tool: "Barge", Domains: []string{"barge.example.com"}}},
		Appliers:   []Applier{{Group: "barge.example.com", Kind: "Cargo", Paths: []string{"spec.path"}}},
		Protects:   "sails past it", DirectoryPerCluster: true,
		Draft: []string{"harbour: north"}, IgnoreFile: ".bargeignore",
	}
}

func (barge) Defaults(g *GitOps) { g.Flag = cmp.Or(g.Flag, "blue") }

func (barge) Annotate(o k8s.Object, _ ApplyPosition) k8s.Object {
	if keepsData(o) {
		return k8s.Annotate(o, map[string]string{bargeKeep: "true"})
	}
	return o
}

func (barge) Removal(o k8s.Object) Removal {
	if k8s.Text(o, "metadata", "annotations", bargeKeep) == "true" {
		return RemovalConfirm
	}
	return RemovalPrune
}

func (barge) Faults(g GitOps, clusters []Cluster) []Fault {
	return append(missingFaults("barge", "a Cargo", map[string]string{"harbour": g.Harbour}),
		duplicateFaults(clusters, func(c Cluster) (field, place string) { return "pier", c.Pier })...)
}

func (barge) Apply(t Tree) (map[string][]k8s.Object, map[string][]byte) {
	out := map[string][]k8s.Object{}
	for _, c := range t.Clusters {
		o := t.GitOps.newObject("barge.example.com/v1", "Cargo", c.Name)
		o["spec"] = map[string]any{"path": path.Join(t.GitOps.Path, c.Prefix), "harbour": t.GitOps.Harbour, "flag": t.GitOps.Flag, "pier": c.Pier}
		out["barge/"+c.Name] = []k8s.Object{o}
	}
	return out, nil
}
