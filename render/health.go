package render

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// providedAPIs returns the custom resources that the operators provide, each
// once, sorted.
func (t *tree) providedAPIs() []catalog.GVK {
	var out []catalog.GVK
	for _, in := range t.installs {
		for _, api := range in.b.CSV.OwnedCRDs {
			if _, group, ok := strings.Cut(api.Name, "."); ok {
				out = append(out, catalog.GVK{Group: group, Version: api.Version, Kind: api.Kind})
			}
		}
	}
	slices.SortFunc(out, catalog.GVK.Compare)
	return slices.Compact(out)
}

// healthExpressions says in CEL, for Flux, when a custom resource of a
// provided API is ready: by its Ready or Available condition, where it has one.
func (t *tree) healthExpressions() []any {
	var out []any
	for _, api := range t.providedAPIs() {
		out = append(out, map[string]any{
			"apiVersion": api.Group + "/" + api.Version, "kind": api.Kind,
			"current": "!has(status.conditions) || !status.conditions.exists(c, c.type in ['Ready', 'Available']) || status.conditions.exists(c, c.type in ['Ready', 'Available'] && c.status == 'True')",
			"failed":  "has(status.conditions) && status.conditions.exists(c, c.type in ['Degraded', 'Failed'] && c.status == 'True')",
		})
	}
	return out
}

// healthScript says the same in Lua, for Argo CD.
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
func (t *tree) healthScripts(g *GitOps) []byte {
	data := map[string]any{}
	for _, api := range t.providedAPIs() {
		data["resource.customizations.health."+api.Group+"_"+api.Kind] = healthScript
	}
	o := newObject("v1", "ConfigMap", g.Namespace, "argocd-cm")
	o["data"] = data
	return append([]byte("# A patch for Argo CD's settings; nothing in this tree applies it.\n"), Encode(map[string]any(o))...)
}
