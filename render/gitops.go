package render

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// gitops writes the objects that make the GitOps tool apply the tree, in a
// directory of their own that is not part of the tree's base.
func (t *tree) gitops() error {
	g := t.opt.GitOps
	if g == nil || t.opt.Profile == Plain {
		return nil
	}
	var objects []Object
	var err error
	switch t.opt.Profile {
	case ArgoCD:
		objects, err = t.applications(g)
	case Flux:
		objects, err = t.fluxKustomizations(g)
	case Plain:
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(t.objects, func(r Rendered) bool { return isCRD(r.Object) }) {
		if err := t.files.Add("crds/README.md", []byte(noDefinitions)); err != nil {
			return err
		}
	}
	dir := string(t.opt.Profile)
	var files []string
	for _, o := range objects {
		o = owned(o, map[string]any{})
		file := fileName(o.Kind()+"-"+o.Name()) + ".yaml"
		if err := t.files.Add(path.Join(dir, file), Encode(map[string]any(o))); err != nil {
			return err
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return t.kustomization(dir, files)
}

// noDefinitions keeps a directory, which Git would not do, for the GitOps tool:
// it prunes nothing of a directory that is not there.
const noDefinitions = "No operator is installed, so there is no custom resource definition here.\n"

// needed refuses a GitOps setting that the profile cannot do without.
func needed(fields ...string) error {
	var missing []string
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			missing = append(missing, "gitops."+fields[i])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s is needed to render for the GitOps tool", strings.Join(missing, " and "))
	}
	return nil
}

// applications returns an Application of the CRDs, a plain directory that no
// overlay touches, and one of the overlay; for several clusters an
// ApplicationSet of each kind.
func (t *tree) applications(g *GitOps) ([]Object, error) {
	if err := needed("repoURL", g.RepoURL, "revision", g.Revision, "path", g.Path, "namespace", g.Namespace, "project", g.Project); err != nil {
		return nil, err
	}
	if t.opt.HealthChecks {
		if err := t.files.Add("argocd/argocd-cm-patch.yaml", t.healthScripts(g)); err != nil {
			return nil, err
		}
	}
	type part struct {
		name string
		wave int
	}
	parts := []part{{"crds", -1}, {"operators", 0}}
	if t.opt.Reporter != nil {
		parts = append(parts, part{reporterDir, 1})
	}
	var out []Object
	for _, part := range parts {
		if len(t.opt.Clusters) > 1 {
			out = append(out, t.applicationSet(g, part.name, part.wave))
			continue
		}
		c := t.opt.Clusters[0]
		o := newObject("argoproj.io/v1alpha1", "Application", g.Namespace, fit("quayside-"+c.Name+"-"+part.name, maxLabel))
		o = annotate(o, map[string]string{argoWave: strconv.Itoa(part.wave)})
		o["spec"] = t.applicationSpec(g, part.name, c.Name, cmp.Or(c.Server, localServer))
		out = append(out, o)
	}
	return out, nil
}

// localServer is the cluster that Argo CD itself runs in.
const localServer = "https://kubernetes.default.svc"

// applicationSet returns one that makes an Application for each cluster.
func (t *tree) applicationSet(g *GitOps, part string, wave int) Object {
	var clusters []any
	for _, c := range t.opt.Clusters {
		clusters = append(clusters, map[string]any{"cluster": c.Name, "server": cmp.Or(c.Server, localServer)})
	}
	o := newObject("argoproj.io/v1alpha1", "ApplicationSet", g.Namespace, "quayside-"+part)
	o["spec"] = map[string]any{
		"goTemplate": true, "goTemplateOptions": texts("missingkey=error"),
		"generators": []any{map[string]any{"list": map[string]any{"elements": clusters}}},
		"template": map[string]any{
			"metadata": map[string]any{"name": "quayside-{{.cluster}}-" + part, "annotations": map[string]any{argoWave: strconv.Itoa(wave)}},
			"spec":     t.applicationSpec(g, part, "{{.cluster}}", "{{.server}}"),
		},
	}
	return o
}

// applicationSpec returns the spec of one part's Application of a cluster.
func (t *tree) applicationSpec(g *GitOps, part, cluster, server string) map[string]any {
	source := map[string]any{"repoURL": g.RepoURL, "targetRevision": g.Revision, "path": path.Join(g.Path, "clusters", cluster)}
	switch part {
	case "crds":
		source["path"], source["directory"] = path.Join(g.Path, "crds"), map[string]any{"recurse": true}
	case reporterDir:
		source["path"] = path.Join(g.Path, "clusters", cluster, reporterDir)
	}
	spec := map[string]any{
		"project": g.Project, "source": source, "destination": map[string]any{"server": server},
		"syncPolicy": map[string]any{"syncOptions": texts("ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true")},
	}
	if ignored := t.ignoredDifferences(part); len(ignored) > 0 {
		spec["ignoreDifferences"] = ignored
	}
	return spec
}

// ignoredDifferences names the fields that a controller fills in with a CA.
func (t *tree) ignoredDifferences(part string) []any {
	var out []any
	if part == reporterDir {
		return nil
	}
	for _, r := range t.objects {
		o := r.Object
		if isCRD(o) != (part == "crds") || !injected(o) {
			continue
		}
		pointers := []string{"/spec/caBundle"}
		switch {
		case isCRD(o):
			pointers = []string{"/spec/conversion/webhook/clientConfig/caBundle"}
		case o.Group() == "admissionregistration.k8s.io":
			pointers = nil
			for i := range items(o, "webhooks") {
				pointers = append(pointers, fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i))
			}
		}
		out = append(out, map[string]any{"group": o.Group(), "kind": o.Kind(), "name": o.Name(), "jsonPointers": texts(pointers...)})
	}
	return out
}

// fluxKustomizations returns, for each cluster, a Kustomization of the CRDs
// and one of the overlay that waits for it.
func (t *tree) fluxKustomizations(g *GitOps) ([]Object, error) {
	if err := needed("sourceRef.kind", g.SourceKind, "sourceRef.name", g.SourceName, "path", g.Path, "namespace", g.Namespace); err != nil {
		return nil, err
	}
	var out []Object
	for _, c := range t.opt.Clusters {
		crds := t.fluxKustomization(g, c, "crds", path.Join(g.Path, "crds"))
		operators := t.fluxKustomization(g, c, "operators", path.Join(g.Path, "clusters", c.Name))
		spec := sub(operators, "spec")
		spec["dependsOn"] = []any{map[string]any{"name": crds.Name()}}
		if expressions := t.healthExpressions(); t.opt.HealthChecks && len(expressions) > 0 {
			spec["healthCheckExprs"] = expressions
		}
		out = append(out, crds, operators)
		if t.opt.Reporter != nil {
			out = append(out, t.fluxReporter(g, c, crds.Name()))
		}
	}
	return out, nil
}

// fluxReporter returns the Kustomization of the reporter. It waits for no
// operator, for the reporter is there to say why one is not ready, and nothing
// waits for it. Of its own it asks only that the program runs: an Installation
// is ready when its operator is. Before the operators' namespaces are there it
// cannot be applied, so it tries again soon.
func (t *tree) fluxReporter(g *GitOps, c Cluster, crds string) Object {
	o := t.fluxKustomization(g, c, reporterDir, path.Join(g.Path, "clusters", c.Name, reporterDir))
	spec := sub(o, "spec")
	spec["wait"], spec["retryInterval"] = false, "30s"
	spec["dependsOn"] = []any{map[string]any{"name": crds}}
	spec["healthChecks"] = []any{map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "name": reporterName, "namespace": t.opt.Reporter.Namespace,
	}}
	return o
}

func (t *tree) fluxKustomization(g *GitOps, c Cluster, part, dir string) Object {
	o := newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", g.Namespace, fit("quayside-"+c.Name+"-"+part, maxLabel))
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
