package profile

import (
	"path"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/certificates"
)

// Flux has its Kustomizations apply the tree.
const Flux Name = "flux"

const fluxPrefix = "kustomize.toolkit.fluxcd.io/"

type flux struct{}

// Adorn guards what must not be pruned or substituted, and lets others write
// the CA that they inject.
func (flux) Adorn(o kobj.Object) kobj.Object {
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
	return kobj.Annotate(o, more)
}

func (flux) AdornInstallation(o kobj.Object) kobj.Object { return o }
func (flux) Namespace() string                           { return "flux-system" }
func (flux) Kind() string                                { return "a Kustomization" }

func (flux) Needed(g GitOps) []Field {
	return []Field{{"sourceRef.kind", g.SourceKind}, {"sourceRef.name", g.SourceName}, {"path", g.Path}, {"namespace", g.Namespace}}
}

// Apply returns, for each cluster, a Kustomization of the CRDs and one of the
// overlay that waits for it.
func (flux) Apply(t Tree) ([]kobj.Object, map[string][]byte) {
	g := t.GitOps
	var out []kobj.Object
	for _, c := range t.Clusters {
		crds := fluxKustomization(g, c, "crds", path.Join(g.Path, "crds"))
		operators := fluxKustomization(g, c, "operators", path.Join(g.Path, "clusters", c.Name))
		spec := kobj.Map(operators, "spec")
		spec["dependsOn"] = []any{map[string]any{"name": crds.Name()}}
		if expressions := healthExpressions(t); t.HealthChecks && len(expressions) > 0 {
			spec["healthCheckExprs"] = expressions
		}
		out = append(out, crds, operators)
		if t.Reporter != nil {
			out = append(out, fluxReporter(g, c, crds.Name(), *t.Reporter))
		}
	}
	return out, nil
}

// fluxReporter returns the Kustomization of the reporter. It waits for no
// operator, for the reporter is there to say why one is not ready, and nothing
// waits for it. Of its own it asks only that the program runs: an Installation
// is ready when its operator is. Before the operators' namespaces are there it
// cannot be applied, so it tries again soon.
func fluxReporter(g GitOps, c Cluster, crds string, w Workload) kobj.Object {
	o := fluxKustomization(g, c, reporterDir, path.Join(g.Path, "clusters", c.Name, reporterDir))
	spec := kobj.Map(o, "spec")
	spec["wait"], spec["retryInterval"] = false, "30s"
	spec["dependsOn"] = []any{map[string]any{"name": crds}}
	spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
	return o
}

func fluxKustomization(g GitOps, c Cluster, part, dir string) kobj.Object {
	o := kobj.New("kustomize.toolkit.fluxcd.io/v1", "Kustomization", g.Namespace, kobj.Fit("quayside-"+c.Name+"-"+part, kobj.MaxLabel))
	source := map[string]any{"kind": g.SourceKind, "name": g.SourceName}
	if g.SourceNamespace != "" && g.SourceNamespace != g.Namespace {
		source["namespace"] = g.SourceNamespace
	}
	o["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "2m", "timeout": "10m", "prune": true, "wait": true,
		"path": "./" + dir, "sourceRef": source,
	}
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
