package render

import (
	"fmt"
	"path"
	"slices"
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

// applications returns, for each cluster, an Application of the CRDs, a plain
// directory that no overlay touches, and one of the overlay.
func (t *tree) applications(g *GitOps) ([]Object, error) {
	if err := needed("repoURL", g.RepoURL, "revision", g.Revision, "path", g.Path, "namespace", g.Namespace, "project", g.Project); err != nil {
		return nil, err
	}
	var out []Object
	for _, c := range t.opt.Clusters {
		if c.Server == "" {
			c.Server = "https://kubernetes.default.svc"
		}
		crds := map[string]any{"path": path.Join(g.Path, "crds"), "directory": map[string]any{"recurse": true}}
		out = append(out, t.application(g, c, "crds", crds, -1),
			t.application(g, c, "operators", map[string]any{"path": path.Join(g.Path, "clusters", c.Name)}, 0))
	}
	return out, nil
}

func (t *tree) application(g *GitOps, c Cluster, part string, source map[string]any, wave int) Object {
	source["repoURL"], source["targetRevision"] = g.RepoURL, g.Revision
	o := newObject("argoproj.io/v1alpha1", "Application", g.Namespace, fit("quayside-"+c.Name+"-"+part, maxLabel))
	o = annotate(o, map[string]string{argoWave: fmt.Sprint(wave)})
	spec := map[string]any{
		"project": g.Project, "source": source, "destination": map[string]any{"server": c.Server},
		"syncPolicy": map[string]any{"syncOptions": texts("ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true")},
	}
	if ignored := t.ignoredDifferences(part); len(ignored) > 0 {
		spec["ignoreDifferences"] = ignored
	}
	o["spec"] = spec
	return o
}

// ignoredDifferences names the fields that a controller fills in with a CA.
func (t *tree) ignoredDifferences(part string) []any {
	var out []any
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
		if t.opt.HealthChecks {
			spec["healthCheckExprs"] = t.healthExpressions()
		}
		out = append(out, crds, operators)
	}
	return out, nil
}

func (t *tree) fluxKustomization(g *GitOps, c Cluster, part, dir string) Object {
	o := newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", g.Namespace, fit("quayside-"+c.Name+"-"+part, maxLabel))
	o["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "2m", "timeout": "10m", "prune": true, "wait": true,
		"path": "./" + dir, "sourceRef": map[string]any{"kind": g.SourceKind, "name": g.SourceName},
	}
	return o
}

// healthExpressions says in CEL when a custom resource of a provided API is
// ready: by its Ready or Available condition, where it has one.
func (t *tree) healthExpressions() []any {
	var out []any
	seen := map[string]bool{}
	for _, in := range t.installs {
		for _, api := range in.b.CSV.OwnedCRDs {
			_, group, ok := strings.Cut(api.Name, ".")
			if key := group + "/" + api.Version + " " + api.Kind; ok && !seen[key] {
				seen[key] = true
				out = append(out, map[string]any{
					"apiVersion": group + "/" + api.Version, "kind": api.Kind,
					"current": "!has(status.conditions) || !status.conditions.exists(c, c.type in ['Ready', 'Available']) || status.conditions.exists(c, c.type in ['Ready', 'Available'] && c.status == 'True')",
					"failed":  "has(status.conditions) && status.conditions.exists(c, c.type in ['Degraded', 'Failed'] && c.status == 'True')",
				})
			}
		}
	}
	return out
}
