package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/certificates"
)

// ArgoCD has Applications, or ApplicationSets, apply the tree.
const ArgoCD Name = "argocd"

const (
	argoWave    = "argocd.argoproj.io/sync-wave"
	argoOptions = "argocd.argoproj.io/sync-options"

	// localServer is the cluster that Argo CD itself runs in.
	localServer = "https://kubernetes.default.svc"

	// largeObject is the size in bytes from which kubectl's annotation of the
	// last applied state, at most 256 KiB with all others, may not fit.
	largeObject = 200 << 10
)

type argoCD struct{}

// Adorn sets the sync wave and what a sync must mind.
func (argoCD) Adorn(o kobj.Object) kobj.Object {
	var options []string
	switch {
	case kobj.IsCRD(o) && textSize(map[string]any(o)) > largeObject:
		options = append([]string{"ServerSideApply=true"}, confirmed()...)
	case keepsData(o):
		options = confirmed()
	case !BuiltinGroup(o.Group()):
		options = []string{"SkipDryRunOnMissingResource=true"}
	}
	o = kobj.Annotate(o, map[string]string{argoWave: strconv.Itoa(wave(o))})
	merged := mergeOptions(kobj.Text(o, "metadata", "annotations", argoOptions), options)
	if merged == "" {
		return o
	}
	return kobj.With(o, merged, "metadata", "annotations", argoOptions)
}

// AdornInstallation puts an Installation before the reporter: that it does not
// run is no reason for them to wait.
func (argoCD) AdornInstallation(o kobj.Object) kobj.Object {
	return kobj.Annotate(o, map[string]string{argoWave: "-1"})
}

func (argoCD) Namespace() string { return "argocd" }
func (argoCD) Kind() string      { return "an Application" }

func (argoCD) Needed(g GitOps) []Field {
	return []Field{{"repoURL", g.RepoURL}, {"revision", g.Revision}, {"path", g.Path}, {"namespace", g.Namespace}, {"project", g.Project}}
}

// Apply returns an Application of the CRDs, a plain directory that no overlay
// touches, and one of the overlay; for several clusters an ApplicationSet of
// each kind.
func (argoCD) Apply(t Tree) ([]kobj.Object, map[string][]byte) {
	type part struct {
		name string
		wave int
	}
	parts := []part{{"crds", -1}, {"operators", 0}}
	if t.Reporter != nil {
		parts = append(parts, part{reporterDir, 1})
	}
	var out []kobj.Object
	for _, part := range parts {
		if len(t.Clusters) > 1 {
			out = append(out, applicationSet(t, part.name, part.wave))
			continue
		}
		c := t.Clusters[0]
		o := kobj.New("argoproj.io/v1alpha1", "Application", t.GitOps.Namespace, kobj.Fit("quayside-"+c.Name+"-"+part.name, kobj.MaxLabel))
		o = kobj.Annotate(o, map[string]string{argoWave: strconv.Itoa(part.wave)})
		o["spec"] = applicationSpec(t, part.name, c.Name, cmp.Or(c.Server, localServer))
		out = append(out, o)
	}
	if !t.HealthChecks {
		return out, nil
	}
	return out, map[string][]byte{"argocd-cm-patch.yaml": healthScripts(t)}
}

// applicationSet returns one that makes an Application for each cluster.
func applicationSet(t Tree, part string, wave int) kobj.Object {
	var clusters []any
	for _, c := range t.Clusters {
		clusters = append(clusters, map[string]any{"cluster": c.Name, "server": cmp.Or(c.Server, localServer)})
	}
	o := kobj.New("argoproj.io/v1alpha1", "ApplicationSet", t.GitOps.Namespace, "quayside-"+part)
	o["spec"] = map[string]any{
		"goTemplate": true, "goTemplateOptions": kobj.Values("missingkey=error"),
		"generators": []any{map[string]any{"list": map[string]any{"elements": clusters}}},
		"template": map[string]any{
			"metadata": map[string]any{"name": "quayside-{{.cluster}}-" + part, "annotations": map[string]any{argoWave: strconv.Itoa(wave)}},
			"spec":     applicationSpec(t, part, "{{.cluster}}", "{{.server}}"),
		},
	}
	return o
}

// applicationSpec returns the spec of one part's Application of a cluster.
func applicationSpec(t Tree, part, cluster, server string) map[string]any {
	g := t.GitOps
	source := map[string]any{"repoURL": g.RepoURL, "targetRevision": g.Revision, "path": path.Join(g.Path, "clusters", cluster)}
	switch part {
	case "crds":
		source["path"], source["directory"] = path.Join(g.Path, "crds"), map[string]any{"recurse": true}
	case reporterDir:
		source["path"] = path.Join(g.Path, "clusters", cluster, reporterDir)
	}
	spec := map[string]any{
		"project": g.Project, "source": source, "destination": map[string]any{"server": server},
		"syncPolicy": map[string]any{"syncOptions": kobj.Values("ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true")},
	}
	if ignored := ignoredDifferences(t, part); len(ignored) > 0 {
		spec["ignoreDifferences"] = ignored
	}
	return spec
}

// ignoredDifferences names the fields that a controller fills in with a CA.
func ignoredDifferences(t Tree, part string) []any {
	var out []any
	if part == reporterDir {
		return nil
	}
	for _, o := range t.Objects {
		if kobj.IsCRD(o) != (part == "crds") || !certificates.Injected(o) {
			continue
		}
		pointers := []string{"/spec/caBundle"}
		switch {
		case kobj.IsCRD(o):
			pointers = []string{"/spec/conversion/webhook/clientConfig/caBundle"}
		case o.Group() == "admissionregistration.k8s.io":
			pointers = nil
			for i := range kobj.Items(o, "webhooks") {
				pointers = append(pointers, fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i))
			}
		}
		out = append(out, map[string]any{"group": o.Group(), "kind": o.Kind(), "name": o.Name(), "jsonPointers": kobj.Values(pointers...)})
	}
	return out
}

// confirmed returns the options of what holds data. It goes last: while Argo CD
// waits for a person, it does nothing that belongs to the same sync wave or to a
// later one, such as the upgrade of another operator's CRD.
func confirmed() []string { return []string{"Prune=confirm", "PruneLast=true", "Delete=confirm"} }

// mergeOptions adds those of more whose name is not among the comma-separated
// options yet.
func mergeOptions(have string, more []string) string {
	var out, names []string
	for _, option := range append(strings.Split(have, ","), more...) {
		option = strings.TrimSpace(option)
		name, _, _ := strings.Cut(option, "=")
		if option != "" && !slices.Contains(names, name) {
			out, names = append(out, option), append(names, name)
		}
	}
	return strings.Join(out, ",")
}

// wave returns the sync wave of an object, by its place in phases.
func wave(o kobj.Object) int {
	switch {
	case o.Is("", "Namespace"):
		return -40
	case kobj.IsCRD(o):
		return -30
	case o.Is("cert-manager.io", "Issuer"), o.Is("cert-manager.io", "Certificate"):
		return -15
	}
	switch p := Phase(o); {
	case slices.Contains([]string{"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, o.Kind()) && BuiltinGroup(o.Group()):
		return -20
	case p < workloadPhase:
		return -10
	case p == workloadPhase:
		return 0
	case p < len(phases()):
		return 10
	default:
		return 20
	}
}

// healthScript says in Lua when a custom resource of a provided API is ready: by
// its Ready or Available condition, where it has one.
const healthScript = `local known, ready = false, false
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, c in ipairs(obj.status.conditions) do
    if (c.type == "Degraded" or c.type == "Failed") and c.status == "True" then
      return {status = "Degraded", message = c.message or c.reason or c.type}
    end
    if c.type == "Ready" or c.type == "Available" then
      known = true
      ready = ready or c.status == "True"
    end
  end
end
if known and not ready then
  return {status = "Progressing", message = "not ready yet"}
end
return {status = "Healthy"}
`

// healthScripts returns a patch of Argo CD's own settings that teaches it the
// health of the provided APIs. It is not part of what the tree applies.
func healthScripts(t Tree) []byte {
	data := map[string]any{}
	for _, api := range t.APIs {
		data["resource.customizations.health."+api.Group+"_"+api.Kind] = healthScript
	}
	o := kobj.New("v1", "ConfigMap", t.GitOps.Namespace, "argocd-cm")
	o["data"] = data
	return append([]byte("# A patch for Argo CD's settings; nothing in this tree applies it.\n"), yamlnode.Encode(o)...)
}

// textSize returns about as many bytes as v has in JSON.
func textSize(v any) int {
	size := 2
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			size += len(key) + 4 + textSize(e)
		}
	case []any:
		for _, e := range v {
			size += 1 + textSize(e)
		}
	case string:
		size += len(v)
	default:
		size += 4
	}
	return size
}
