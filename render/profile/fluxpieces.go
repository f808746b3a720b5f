package profile

import (
	"path"
	"slices"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
)

// Directories below layout.Pieces of what is the same for many clusters: for those that
// Flux runs in, and for those that it reaches from a hub. No cluster is called so,
// for a name of a cluster begins with a letter or a digit.
const (
	sharedPieces = "_shared"
	hubPieces    = "_hub"
)

// Variables of what is shared on a hub, which each cluster's parent fills in.
const (
	ownerVariable      = "${quayside_owner}"
	kubeConfigVariable = "${quayside_kubeconfig}"
)

func (flux) Member(_ GitOps, c Cluster) Member { return MemberOf(c) }

// fluxPieces returns a Kustomization for each piece, the same ones for all clusters
// in which nothing differs, and for each cluster the parent that has Flux apply
// these.
func fluxPieces(t Tree) map[string][]kobj.Object {
	g := t.GitOps
	out := map[string][]kobj.Object{}
	for _, c := range t.Clusters {
		owner, dir, kubeConfig := g.owner(), sharedPieces, c.KubeConfig
		substitute := map[string]any{}
		if kubeConfig != "" {
			owner, dir = g.ownerOf(c.Name), hubPieces
			substitute = map[string]any{"quayside_owner": owner, "quayside_kubeconfig": kubeConfig}
		}
		if c.Prefix != "" {
			dir, substitute = c.Name, nil
		}
		dir = path.Join(layout.Pieces, dir)
		if _, there := out[dir]; !there {
			of := fluxCluster{name: c.Name, owner: owner, prefix: c.Prefix, kubeConfig: kubeConfig}
			if len(substitute) > 0 {
				of.owner, of.kubeConfig = ownerVariable, kubeConfigVariable
			}
			out[dir] = of.pieces(t)
		}
		o := fluxObject(g, named(owner, parent), path.Join(g.Path, dir), "")
		spec := kobj.Map(o, "spec")
		// Where it goes, so do the Kustomizations, which leave what they applied.
		spec["deletionPolicy"] = "MirrorPrune"
		spec["wait"] = false // one piece that is not healthy is no matter of the others
		spec["retryInterval"] = "30s"
		if len(substitute) > 0 {
			spec["postBuild"] = map[string]any{"substitute": substitute}
		}
		out[path.Join(string(Flux), c.Name)] = []kobj.Object{o}
	}
	return out
}

// fluxCluster is a cluster, or several in which nothing differs.
type fluxCluster struct{ name, owner, prefix, kubeConfig string }

// pieces returns a Kustomization for each piece, and for each package with
// definitions.
func (c fluxCluster) pieces(t Tree) []kobj.Object {
	var out []kobj.Object
	crds := map[string]bool{}
	for _, p := range t.Pieces {
		if !p.gets(c.name) {
			continue
		}
		var after []string
		for _, dir := range p.CRDs {
			name := namedCRDs(c.owner, dir)
			if !crds[dir] {
				crds[dir] = true
				out = append(out, fluxObject(t.GitOps, name, path.Join(t.GitOps.Path, dir), c.kubeConfig))
			}
			after = append(after, name)
		}
		for _, need := range p.Needs {
			if i := slices.IndexFunc(t.Pieces, func(p Piece) bool { return p.Name == need }); i >= 0 && t.Pieces[i].gets(c.name) {
				after = append(after, named(c.owner, need))
			}
		}
		dir := path.Join(t.GitOps.Path, c.prefix+p.Dir)
		if p.Leaving {
			dir = path.Join(t.GitOps.Path, p.Dir)
		}
		o := fluxObject(t.GitOps, named(c.owner, p.Name), dir, c.kubeConfig)
		spec := kobj.Map(o, "spec")
		spec["retryInterval"], spec["timeout"] = "30s", "2m" // while it waits for what is not healthy, it does not look at the commit that mends it
		if len(after) > 0 {
			var list []any
			for _, name := range after {
				list = append(list, map[string]any{"name": name})
			}
			spec["dependsOn"] = list
		}
		if t.HealthChecks && len(p.APIs) > 0 {
			spec["healthCheckExprs"] = healthExpressions(p.APIs)
		}
		if p.Reports {
			// The reporter is there to say why an operator is not ready: of its own
			// Flux asks only that the program runs.
			spec["wait"] = false
			if w := t.Reporter; w != nil && !p.Plain {
				spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
			}
		}
		out = append(out, o)
	}
	return out
}
