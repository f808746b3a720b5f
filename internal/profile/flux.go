package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// Flux is the profile for Flux, which renders Kustomizations.
const Flux Name = "flux"

const (
	fluxPrefix = "kustomize.toolkit.fluxcd.io/"
	// stageKey is an annotation of objects in the overlay of a cluster. It marks the objects that the first and
	// the last Kustomization of the overlay apply. The last Kustomization also applies the user's own objects,
	// which have no labels of quayside.
	stageKey   = "quayside.dev/stage"
	stageFirst = "first"
	stageLast  = "last"
)

type flux struct{ plain }

// FluxSettings are the fields of spec.gitops that only Flux uses.
type FluxSettings struct {
	SourceRef SourceRef `json:"sourceRef" doc:"Flux source of the tree. The flux profile needs its name."`
}

// SourceRef refers to a Flux source.
type SourceRef struct {
	Kind      sourceKind `json:"kind" default:"\"GitRepository\"" form:"enum=GitRepository|OCIRepository|Bucket" doc:"Kind of the source."`
	Name      string     `json:"name" doc:"Name of the source."`
	Namespace string     `json:"namespace" doc:"Namespace of the source. Default: spec.gitops.namespace."`
}

// sourceKind is the kind of a Flux source.
type sourceKind string

// UnmarshalText parses the kind of a source. An empty text is valid; an unknown kind is an error.
func (k *sourceKind) UnmarshalText(text []byte) error {
	kinds := []string{"GitRepository", "OCIRepository", "Bucket"}
	if *k = sourceKind(text); *k != "" && !slices.Contains(kinds, string(text)) {
		return fmt.Errorf("spec.gitops.sourceRef.kind: %q: must be one of %s%s", text, strings.Join(kinds, ", "), diag.DidYouMean(string(text), kinds))
	}
	return nil
}

// FluxCluster has the fields that only Flux uses, in an entry of spec.clusters.
type FluxCluster struct {
	KubeConfig string `json:"kubeConfig" doc:"Secret in spec.gitops.namespace with the kubeconfig of this cluster, for a Flux that runs in another cluster. Default: Flux runs in this cluster."`
}

// Annotate returns o with annotations that protect o from pruning and from variable substitution, that keep
// an injected CA, and that assign o to a stage. The first stage contains Namespaces, operators that issue
// certificates, and the stopped workloads of replaced operators. The last stage contains operators that
// require others. An object that will move to a later stage is protected, because Flux would otherwise
// delete the object as soon as it leaves its present stage.
func (flux) Annotate(o k8s.Object, at ApplyPosition) k8s.Object {
	more := map[string]string{}
	if keepsData(o) || at.MovesLater || at.Kept && isKeepable(o) {
		more[fluxPrefix+"prune"] = "disabled"
	}
	if at.Recreated {
		more[fluxPrefix+"force"] = "enabled"
	}
	if containsText(map[string]any(o), "${") {
		more[fluxPrefix+"substitute"] = "disabled"
	}
	if certificates.Injector(o) != "" {
		more[fluxPrefix+"ssa"] = "Merge"
	}
	if at.Hook != nil && o.Is("batch", "Job") {
		more[fluxPrefix+"force"] = "enabled" // recreates the Job if it changes: its fields are immutable
	}
	o = k8s.Without(o, "metadata", "annotations", stageKey)
	switch {
	case at.InPiece, k8s.IsCRD(o):
	case o.Is("", "Namespace"), at.Issuer, at.Stopped:
		more[stageKey] = stageFirst
	case at.Level > 0:
		more[stageKey] = stageLast
	}
	return k8s.Annotate(o, more)
}

// About returns the properties of Flux.
func (flux) About() About {
	return About{
		Tool: "Flux", Kind: "a Kustomization", Namespace: "flux-system", Manager: "kustomize-controller",
		Directives: []Directive{{Tool: "Flux", Domains: []string{"fluxcd.io"}}},
		Appliers:   []Applier{{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization", Paths: []string{"spec.path"}, Ignores: ".sourceignore", Targets: []string{"spec.kubeConfig.secretRef.name"}, Sources: "source.toolkit.fluxcd.io"}},
		Protects:   "does not prune it", DirectoryPerCluster: true,
		Draft:      []string{"sourceRef:", "  kind: GitRepository", "  name: flux-system"},
		IgnoreFile: ".sourceignore",
	}
}

// Defaults sets the default kind and namespace of the source.
func (flux) Defaults(g *GitOps) {
	g.SourceRef.Kind = cmp.Or(g.SourceRef.Kind, "GitRepository")
	g.SourceRef.Namespace = cmp.Or(g.SourceRef.Namespace, g.Namespace)
}

// Removal returns the effect of removing o from the tree, according to the annotation that Guard
// sets.
func (flux) Removal(o k8s.Object) Removal {
	if k8s.Text(o, "metadata", "annotations", fluxPrefix+"prune") == "disabled" {
		return RemovalKeep
	}
	return RemovalPrune
}

func (flux) Guard(o k8s.Object) k8s.Object {
	return k8s.With(o, "disabled", "metadata", "annotations", fluxPrefix+"prune")
}

// Applier returns the Kustomization or HelmRelease in the labels of o.
func (flux) Applier(o k8s.Object) string {
	for _, by := range [][2]string{{fluxPrefix, "Kustomization"}, {"helm.toolkit.fluxcd.io/", "HelmRelease"}} {
		if name := k8s.Text(o, "metadata", "labels", by[0]+"name"); name != "" {
			return "Flux " + by[1] + " " + k8s.Text(o, "metadata", "labels", by[0]+"namespace") + "/" + name
		}
	}
	return ""
}

// Faults returns faults for missing settings, and for clusters with the same kubeconfig.
func (flux) Faults(g GitOps, clusters []Cluster) []Fault {
	out := missingFaults(Flux, "a Kustomization", map[string]string{
		"name": g.Name, "sourceRef.kind": string(g.SourceRef.Kind), "sourceRef.name": g.SourceRef.Name, "path": g.Path, "namespace": g.Namespace,
	})
	return append(out, duplicateFaults(clusters, func(c Cluster) (field, place string) { return "kubeConfig", c.KubeConfig })...)
}

// Apply returns the Kustomizations of a tree.
//
// With granularity operator, there is a Kustomization for each piece, and a parent for each cluster. With
// granularity cluster, each cluster has a directory with four Kustomizations: one for the CRDs and three for
// its overlay. Each Kustomization depends on the previous one. The number of Kustomizations is fixed, and the
// stage of an operator does not depend on which other operators are installed. Otherwise an object could move
// to a later Kustomization, and Flux would delete the object before the later Kustomization applies it.
func (flux) Apply(t Tree) (map[string][]k8s.Object, map[string][]byte) {
	if t.GitOps.Granularity != PerCluster {
		return fluxPieces(t), nil
	}
	out := map[string][]k8s.Object{}
	expressions := healthExpressions(t.APIs)
	for _, c := range t.Clusters {
		last := fluxKustomization(t.GitOps, c, layout.CRDs, t.crdsDir(c.Name), nil)
		all := []k8s.Object{last}
		if t.Reporter != nil {
			reporter := fluxReporter(t.GitOps, c, last, *t.Reporter)
			installations := fluxKustomization(t.GitOps, c, layout.Installations, c.Prefix+layout.Installations, reporter)
			k8s.Map(installations, "spec")["wait"] = false // do not wait: an Installation becomes ready only with its operator
			all = append(all, reporter, installations)
		}
		for _, stage := range fluxStages() {
			last = fluxKustomization(t.GitOps, c, stage.part, c.Prefix+layout.All, last)
			spec := k8s.Map(last, "spec")
			spec["patches"] = stage.exclusions
			if t.HealthChecks && len(expressions) > 0 {
				spec["healthCheckExprs"] = expressions
			}
			all = append(all, last)
		}
		out[path.Join(string(Flux), c.Name)] = all
	}
	return out, nil
}

// fluxStage is the part of the overlay of a cluster that one Kustomization applies.
type fluxStage struct {
	part       string
	exclusions []any // patches that remove the objects of other stages
}

// fluxStages returns the stages of an overlay, in order. Each object is in exactly one stage.
func fluxStages() []fluxStage {
	return []fluxStage{
		{"platform", []any{excludePatch(stageKey+"!="+stageFirst, "")}},
		{"independent", []any{excludePatch(stageKey+" in ("+stageFirst+", "+stageLast+")", ""), excludePatch("", "!"+k8s.LabelPackage)}},
		{"operators", []any{excludePatch(stageKey+"="+stageFirst, ""), excludePatch(stageKey+"!="+stageLast, k8s.LabelPackage)}},
	}
}

// excludePatch returns a patch that removes from a Kustomization the objects that both selectors match. An
// empty selector matches all objects.
func excludePatch(annotations, labels string) any {
	target := map[string]any{}
	for field, selector := range map[string]string{"annotationSelector": annotations, "labelSelector": labels} {
		if selector != "" {
			target[field] = selector
		}
	}
	return map[string]any{"patch": "$patch: delete\napiVersion: any/v1\nkind: Any\nmetadata:\n  name: any\n", "target": target}
}

// fluxReporter returns the Kustomization of the reporter. This Kustomization does not depend on operators,
// because the reporter explains why an operator is not ready. Its health check covers only the Deployment,
// because an Installation becomes ready only with its operator. The retry interval is short,
// because applying fails until the namespaces of the operators exist.
func fluxReporter(g GitOps, c Cluster, crds k8s.Object, w Workload) k8s.Object {
	o := fluxKustomization(g, c, layout.Reporter, c.Prefix+layout.Reporter, crds)
	spec := k8s.Map(o, "spec")
	spec["wait"], spec["retryInterval"] = false, "30s"
	spec["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": w.Name, "namespace": w.Namespace}}
	return o
}

// fluxKustomization returns the Kustomization for one part of the tree in one cluster. dir is the part's
// directory in the tree. after is the Kustomization that the result depends on, or nil.
func fluxKustomization(g GitOps, c Cluster, part, dir string, after k8s.Object) k8s.Object {
	o := fluxObject(g, g.clusterPartName(c.Name, part), path.Join(g.Path, dir), c.KubeConfig)
	if after != nil {
		k8s.Map(o, "spec")["dependsOn"] = []any{map[string]any{"name": after.Name()}}
	}
	return o
}

// fluxObject returns a Kustomization for a directory of the repository. kubeConfig is the name of
// the Secret with the kubeconfig of the target cluster. If kubeConfig is empty, the target is the cluster
// in which Flux runs.
func fluxObject(g GitOps, name, dir, kubeConfig string) k8s.Object {
	o := g.newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name)
	source := map[string]any{"kind": string(g.SourceRef.Kind), "name": g.SourceRef.Name}
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

// healthExpressions returns health checks, in CEL, for the custom resources of the operators. The condition
// Ready or Available, if it exists, determines the health.
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
