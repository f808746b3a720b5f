package profile

import (
	"path"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/certificates"
)

// Flux has its Kustomizations apply the tree.
const Flux Name = "flux"

const (
	fluxPrefix = "kustomize.toolkit.fluxcd.io/"
	// stageKey with the value stageFirst is on what the first of a cluster's two
	// Kustomizations applies.
	stageKey   = "quayside.dev/stage"
	stageFirst = "first"
)

type flux struct{}

// Adorn guards what must not be pruned or substituted, lets others write the CA
// that they inject, and says what is applied first: Namespaces, and what belongs
// to operators that others need.
func (flux) Adorn(o kobj.Object, first bool) kobj.Object {
	more := map[string]string{}
	if keepsData(o) {
		more[fluxPrefix+"prune"] = "disabled"
	}
	if holdsText(map[string]any(o), "${") {
		more[fluxPrefix+"substitute"] = "disabled"
	}
	if certificates.Injected(o) {
		more[fluxPrefix+"ssa"] = "Merge"
	}
	if o.Is("", "Namespace") || first && !kobj.IsCRD(o) {
		more[stageKey] = stageFirst
	} else {
		o = kobj.Without(o, "metadata", "annotations", stageKey)
	}
	return kobj.Annotate(o, more)
}

func (flux) AdornInstallation(o kobj.Object) kobj.Object { return o }
func (flux) Namespace() string                           { return "flux-system" }
func (flux) Kind() string                                { return "a Kustomization" }

// Faults wants to know the source, and each cluster to be reached in its own
// way.
func (flux) Faults(g GitOps, clusters []Cluster) []Fault {
	out := missing(Flux, "a Kustomization", map[string]string{
		"name": g.Name, "sourceRef.kind": g.SourceRef.Kind, "sourceRef.name": g.SourceRef.Name, "path": g.Path, "namespace": g.Namespace,
	})
	return append(out, twice(clusters, func(c Cluster) (field, place string) { return "kubeConfig", c.KubeConfig })...)
}

// Apply returns, in a directory for each cluster, a Kustomization of the CRDs, one
// of what comes first and one of the rest, each of which waits for the one before
// it. Both parts of the overlay are always there, so that nothing is ever without
// a Kustomization that applies it.
func (flux) Apply(t Tree) (map[string][]kobj.Object, map[string][]byte) {
	out := map[string][]kobj.Object{}
	for _, c := range t.Clusters {
		overlay := path.Join("clusters", c.Name)
		crds := fluxKustomization(t.GitOps, c, crdsDir, t.crdsDir(c.Name), nil)
		first := fluxKustomization(t.GitOps, c, "platform", overlay, crds)
		rest := fluxKustomization(t.GitOps, c, "operators", overlay, first)
		kobj.Map(first, "spec")["patches"] = leaveOut(stageKey + "!=" + stageFirst)
		kobj.Map(rest, "spec")["patches"] = leaveOut(stageKey + "=" + stageFirst)
		if expressions := healthExpressions(t); t.HealthChecks && len(expressions) > 0 {
			kobj.Map(first, "spec")["healthCheckExprs"], kobj.Map(rest, "spec")["healthCheckExprs"] = expressions, expressions
		}
		out[c.Name] = []kobj.Object{crds, first, rest}
		if t.Reporter != nil {
			out[c.Name] = append(out[c.Name], fluxReporter(t.GitOps, c, crds, *t.Reporter))
		}
	}
	return out, nil
}

// leaveOut returns the patches by which a Kustomization does not apply what an
// annotation selector selects.
func leaveOut(annotations string) []any {
	return []any{map[string]any{
		"patch":  "$patch: delete\napiVersion: any/v1\nkind: Any\nmetadata:\n  name: any\n",
		"target": map[string]any{"annotationSelector": annotations},
	}}
}

// fluxReporter returns the Kustomization of the reporter. It waits for no
// operator, for the reporter is there to say why one is not ready, and nothing
// waits for it. Of its own it asks only that the program runs: an Installation
// is ready when its operator is. Before the operators' namespaces are there it
// cannot be applied, so it tries again soon.
func fluxReporter(g GitOps, c Cluster, crds kobj.Object, w Workload) kobj.Object {
	o := fluxKustomization(g, c, reporterDir, path.Join("clusters", c.Name, reporterDir), crds)
	spec := kobj.Map(o, "spec")
	spec["wait"], spec["retryInterval"] = false, "30s"
	spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
	return o
}

// fluxKustomization returns the Kustomization of one part of a cluster, which lies
// in a directory of the tree and waits for another one; nil: for none.
func fluxKustomization(g GitOps, c Cluster, part, dir string, after kobj.Object) kobj.Object {
	o := g.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", g.namedOf(c.Name, part))
	source := map[string]any{"kind": g.SourceRef.Kind, "name": g.SourceRef.Name}
	if ns := g.SourceRef.Namespace; ns != "" && ns != g.Namespace {
		source["namespace"] = ns
	}
	spec := map[string]any{
		"interval": "1h", "retryInterval": "2m", "timeout": "10m", "prune": true, "wait": true,
		"path": "./" + path.Join(g.Path, dir), "sourceRef": source,
	}
	if g.RemovedClusters != Delete {
		spec["deletionPolicy"] = "Orphan"
	}
	if c.KubeConfig != "" {
		spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": c.KubeConfig}}
	}
	if after != nil {
		spec["dependsOn"] = []any{map[string]any{"name": after.Name()}}
	}
	o["spec"] = spec
	return o
}

// healthExpressions says in CEL when a custom resource of a provided API is
// ready: by its Ready or Available condition, where it has one.
func healthExpressions(t Tree) []any {
	var out []any
	for _, api := range t.APIs {
		out = append(out, map[string]any{
			"apiVersion": api.Group + "/" + api.Version, "kind": api.Kind,
			"current": "!has(status.conditions) || !status.conditions.exists(c, c.type in ['Ready', 'Available']) || status.conditions.exists(c, c.type in ['Ready', 'Available'] && c.status == 'True')",
			"failed":  "has(status.conditions) && status.conditions.exists(c, c.type in ['Degraded', 'Failed'] && c.status == 'True')",
		})
	}
	return out
}
