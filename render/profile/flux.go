package profile

import (
	"path"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/render/certificates"
)

// Flux has its Kustomizations apply the tree.
const Flux Name = "flux"

const (
	fluxPrefix = "kustomize.toolkit.fluxcd.io/"
	// stageKey with one of these values is on what the first and the last of the
	// Kustomizations of a cluster's overlay apply. The last one also applies what is
	// the user's own, which carries no label of quayside's.
	stageKey   = "quayside.dev/stage"
	stageFirst = "first"
	stageLast  = "last"
)

type flux struct{}

// Adorn guards what must not be pruned or substituted, lets others write the CA
// that they inject, and says what is applied first, Namespaces and the operators
// that issue certificates, and what last: the operators that need others. What an
// operator that is followed ran by stops with the first, which the others wait
// for. An object that is to come later than before is kept: Flux finds on it, when
// it has left the stage before, that it must not delete it.
func (flux) Adorn(o kobj.Object, at Place) kobj.Object {
	more := map[string]string{}
	if keepsData(o) || at.Moving {
		more[fluxPrefix+"prune"] = "disabled"
	}
	if holdsText(map[string]any(o), "${") {
		more[fluxPrefix+"substitute"] = "disabled"
	}
	if certificates.Injector(o) != "" {
		more[fluxPrefix+"ssa"] = "Merge"
	}
	o = kobj.Without(o, "metadata", "annotations", stageKey)
	switch {
	case at.Alone, kobj.IsCRD(o):
	case o.Is("", "Namespace"), at.First, at.Stopped:
		more[stageKey] = stageFirst
	case at.Level > 0:
		more[stageKey] = stageLast
	}
	return kobj.Annotate(o, more)
}

func (flux) Manager() string { return "kustomize-controller" }

func (flux) Guard(o kobj.Object) kobj.Object {
	return kobj.With(o, "disabled", "metadata", "annotations", fluxPrefix+"prune")
}

// Applier knows the labels of a Kustomization and of a HelmRelease.
func (flux) Applier(o kobj.Object) string {
	for _, by := range [][2]string{{fluxPrefix, "Kustomization"}, {"helm.toolkit.fluxcd.io/", "HelmRelease"}} {
		if name := kobj.Text(o, "metadata", "labels", by[0]+"name"); name != "" {
			return "Flux " + by[1] + " " + kobj.Text(o, "metadata", "labels", by[0]+"namespace") + "/" + name
		}
	}
	return ""
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

// Apply returns, by piece, a Kustomization of each below a parent for each cluster.
// By cluster it returns, in a directory for each, a Kustomization of the CRDs and
// three of the overlay, each of which waits for the one before it. They are always
// there, and an operator's does not change with what else is installed: what goes
// from one Kustomization to a later one, Flux deletes before that applies it.
func (flux) Apply(t Tree) (map[string][]kobj.Object, map[string][]byte) {
	if t.GitOps.Granularity != PerCluster {
		return fluxPieces(t), nil
	}
	out := map[string][]kobj.Object{}
	expressions := healthExpressions(t.APIs)
	for _, c := range t.Clusters {
		last := fluxKustomization(t.GitOps, c, layout.CRDs, t.crdsDir(c.Name), nil)
		all := []kobj.Object{last}
		if t.Reporter != nil {
			reporter := fluxReporter(t.GitOps, c, last, *t.Reporter)
			installations := fluxKustomization(t.GitOps, c, layout.Installations, c.Prefix+layout.Installations, reporter)
			kobj.Map(installations, "spec")["wait"] = false // an Installation is ready when its operator is
			all = append(all, reporter, installations)
		}
		for _, stage := range fluxStages() {
			last = fluxKustomization(t.GitOps, c, stage.part, c.Prefix+layout.All, last)
			spec := kobj.Map(last, "spec")
			spec["patches"] = stage.leavesOut
			if t.HealthChecks && len(expressions) > 0 {
				spec["healthCheckExprs"] = expressions
			}
			all = append(all, last)
		}
		out[path.Join(string(Flux), c.Name)] = all
	}
	return out, nil
}

// fluxStage is a part of a cluster's overlay that one Kustomization applies.
type fluxStage struct {
	part      string
	leavesOut []any // patches
}

// fluxStages returns the parts of an overlay, in order. Each object is in one.
func fluxStages() []fluxStage {
	return []fluxStage{
		{"platform", []any{leaveOut(stageKey+"!="+stageFirst, "")}},
		{"independent", []any{leaveOut(stageKey+" in ("+stageFirst+", "+stageLast+")", ""), leaveOut("", "!"+kobj.LabelPackage)}},
		{"operators", []any{leaveOut(stageKey+"="+stageFirst, ""), leaveOut(stageKey+"!="+stageLast, kobj.LabelPackage)}},
	}
}

// leaveOut returns the patch by which a Kustomization does not apply what both
// selectors select, of annotations and of labels; an empty one selects all.
func leaveOut(annotations, labels string) any {
	target := map[string]any{}
	for field, selector := range map[string]string{"annotationSelector": annotations, "labelSelector": labels} {
		if selector != "" {
			target[field] = selector
		}
	}
	return map[string]any{"patch": "$patch: delete\napiVersion: any/v1\nkind: Any\nmetadata:\n  name: any\n", "target": target}
}

// fluxReporter returns the Kustomization of the reporter. It waits for no
// operator, for the reporter is there to say why one is not ready, and nothing
// waits for it. Of its own it asks only that the program runs: an Installation
// is ready when its operator is. Before the operators' namespaces are there it
// cannot be applied, so it tries again soon.
func fluxReporter(g GitOps, c Cluster, crds kobj.Object, w Workload) kobj.Object {
	o := fluxKustomization(g, c, layout.Reporter, c.Prefix+layout.Reporter, crds)
	spec := kobj.Map(o, "spec")
	spec["wait"], spec["retryInterval"] = false, "30s"
	spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
	return o
}

// fluxKustomization returns the Kustomization of one part of a cluster, which lies
// in a directory of the tree and waits for another one; nil: for none.
func fluxKustomization(g GitOps, c Cluster, part, dir string, after kobj.Object) kobj.Object {
	o := fluxObject(g, g.namedOf(c.Name, part), path.Join(g.Path, dir), c.KubeConfig)
	if after != nil {
		kobj.Map(o, "spec")["dependsOn"] = []any{map[string]any{"name": after.Name()}}
	}
	return o
}

// fluxObject returns a Kustomization of a directory of the repository, for the
// cluster that a Secret has the kubeconfig of; "" is the one that Flux runs in.
func fluxObject(g GitOps, name, dir, kubeConfig string) kobj.Object {
	o := g.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name)
	source := map[string]any{"kind": g.SourceRef.Kind, "name": g.SourceRef.Name}
	if ns := g.SourceRef.Namespace; ns != "" && ns != g.Namespace {
		source["namespace"] = ns
	}
	spec := map[string]any{
		"interval": "1h", "retryInterval": "2m", "timeout": "10m", "prune": true, "wait": true,
		"path": "./" + dir, "sourceRef": source,
	}
	if g.RemovedClusters != Delete {
		spec["deletionPolicy"] = "Orphan"
	}
	if kubeConfig != "" {
		spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": kubeConfig}}
	}
	o["spec"] = spec
	return o
}

// healthExpressions says in CEL when a custom resource of a provided API is
// ready: by its Ready or Available condition, where it has one.
func healthExpressions(apis []catalog.GVK) []any {
	var out []any
	for _, api := range apis {
		out = append(out, map[string]any{
			"apiVersion": api.Group + "/" + api.Version, "kind": api.Kind,
			"current": "!has(status.conditions) || !status.conditions.exists(c, c.type in ['Ready', 'Available']) || status.conditions.exists(c, c.type in ['Ready', 'Available'] && c.status == 'True')",
			"failed":  "has(status.conditions) && status.conditions.exists(c, c.type in ['Degraded', 'Failed'] && c.status == 'True')",
		})
	}
	return out
}
