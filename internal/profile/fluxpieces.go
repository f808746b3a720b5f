package profile

import (
	"path"
	"slices"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// Directories in layout.Pieces with Kustomizations that several clusters share: clusters that run
// Flux themselves, and clusters that Flux manages from a hub. A cluster cannot have one of these
// names, because names of clusters begin with a letter or digit.
const (
	sharedPieces = "_shared"
	hubPieces    = "_hub"
)

// Variables in the shared Kustomizations for a hub. The parent Kustomization of each cluster sets
// them.
const (
	ownerVariable      = "${quayside_owner}"
	kubeConfigVariable = "${quayside_kubeconfig}"
)

// fluxPieces returns a Kustomization for each piece, and a parent Kustomization for each cluster.
// Clusters whose pieces do not differ share the Kustomizations of pieces.
func fluxPieces(t Tree) map[string][]k8s.Object {
	g := t.GitOps
	out := map[string][]k8s.Object{}
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
		if _, ok := out[dir]; !ok {
			cluster := fluxCluster{name: c.Name, owner: owner, prefix: c.Prefix, kubeConfig: kubeConfig}
			if len(substitute) > 0 {
				cluster.owner, cluster.kubeConfig = ownerVariable, kubeConfigVariable
			}
			out[dir] = cluster.kustomizations(t)
		}
		o := fluxObject(g, objectName(owner, parentPiece), path.Join(g.Path, dir), "")
		spec := k8s.Map(o, "spec")
		// If the parent is deleted, Flux deletes the Kustomizations of the pieces, but keeps the
		// objects that they applied.
		spec["deletionPolicy"] = "MirrorPrune"
		spec["wait"] = false // do not wait: an unhealthy piece must not block the others
		spec["retryInterval"] = "30s"
		if len(substitute) > 0 {
			spec["postBuild"] = map[string]any{"substitute": substitute}
		}
		out[path.Join(string(Flux), c.Name)] = []k8s.Object{o}
	}
	return out
}

// fluxCluster is one cluster, or several clusters that share Kustomizations.
type fluxCluster struct{ name, owner, prefix, kubeConfig string }

// kustomizations returns a Kustomization for each piece, and for each package with CRDs.
func (c fluxCluster) kustomizations(t Tree) []k8s.Object {
	var out []k8s.Object
	crds := map[string]bool{}
	for _, p := range t.Pieces {
		if !p.isFor(c.name) {
			continue
		}
		var after []string
		for _, dir := range p.CRDs {
			name := crdsObjectName(c.owner, dir)
			if !crds[dir] {
				crds[dir] = true
				out = append(out, fluxObject(t.GitOps, name, path.Join(t.GitOps.Path, dir), c.kubeConfig))
			}
			after = append(after, name)
		}
		for _, need := range p.Needs {
			if i := slices.IndexFunc(t.Pieces, func(p Piece) bool { return p.Name == need }); i >= 0 && t.Pieces[i].isFor(c.name) {
				after = append(after, objectName(c.owner, need))
			}
		}
		dir := path.Join(t.GitOps.Path, c.prefix+p.Dir)
		if p.Leaving {
			dir = path.Join(t.GitOps.Path, p.Dir)
		}
		o := fluxObject(t.GitOps, objectName(c.owner, p.Name), dir, c.kubeConfig)
		spec := k8s.Map(o, "spec")
		spec["retryInterval"], spec["timeout"] = "30s", "2m" // short: while Flux waits for unhealthy objects, it ignores a commit that repairs them
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
			// The reporter explains why an operator is not ready, so Flux must not wait for the
			// operator: check only the Deployment of the reporter.
			spec["wait"] = false
			if w := t.Reporter; w != nil && !p.Plain {
				spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
			}
		}
		out = append(out, o)
	}
	return out
}

// environmentKey is a label of the objects in inputs/. A ResourceSet can use it to select the objects of one
// environment.
const environmentKey = "quayside.dev/environment"

// Inputs returns a ResourceSetInputProvider of Flux Operator for each cluster. A ResourceSet can
// select these objects by their labels.
func (flux) Inputs(t Tree) ([]k8s.Object, map[string][]byte) {
	var out []k8s.Object
	for _, c := range t.Clusters {
		in := t.newInput(c, string(Flux), c.Name)
		o := t.GitOps.newObject("fluxcd.controlplane.io/v1", "ResourceSetInputProvider", t.GitOps.clusterPartName(c.Name, "inputs"))
		o = k8s.Label(o, map[string]string{environmentKey: t.GitOps.Name})
		o["spec"] = map[string]any{"type": "Static", "defaultValues": fieldMap(&in)}
		out = append(out, o)
	}
	return out, nil
}
