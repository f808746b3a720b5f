package render

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
)

const (
	conditionVariable = "OPERATOR_CONDITION_NAME"
	conditionGroup    = "operators.coreos.com"
	conditionCRD      = "operatorconditions." + conditionGroup
)

// conditionName is the name of the install's OperatorCondition. It stays the
// same from version to version, and with it what the operator reported.
func (in *install) conditionName() string { return kobj.Fit(in.pin.Package, kobj.MaxSubdomain) }

// operatorConditions makes the object in which an operator says that it must
// not be upgraded, and lets the operator's accounts write to it.
func operatorConditions(in *install) ([]Object, error) {
	accounts := map[string]bool{}
	for _, p := range slices.Concat(in.b.CSV.Permissions, in.b.CSV.ClusterPerms) {
		accounts[p.Account()] = true
	}
	var names []string
	for _, d := range in.b.CSV.Deployments {
		names = append(names, d.Name)
		accounts[deploymentAccount(d)] = true
	}
	sorted := slices.Sorted(maps.Keys(accounts))
	o := kobj.New(conditionGroup+"/v2", "OperatorCondition", in.pin.Namespace, in.conditionName())
	o["spec"] = map[string]any{"deployments": kobj.Values(names...), "serviceAccounts": kobj.Values(sorted...)}
	rule := map[string]any{
		"apiGroups": kobj.Values(conditionGroup), "resources": kobj.Values("operatorconditions"),
		"resourceNames": kobj.Values(in.conditionName()), "verbs": kobj.Values("get", "update", "patch"),
	}
	role := in.role("Role", in.pin.Namespace, in.localName("operator-condition"), []any{rule}, sorted...)
	return append([]Object{o}, role...), nil
}

// access is one of the kinds of ClusterRole that give users an operator's API.
type access struct {
	suffix, aggregate string
	verbs             []string
}

func accesses() []access {
	return []access{
		{"admin", "admin", []string{"*"}},
		{"edit", "edit", []string{"create", "update", "patch", "delete"}},
		{"view", "view", []string{"get", "list", "watch"}},
	}
}

// providedAPIRoles makes the ClusterRoles that let admins, editors and viewers
// of a namespace work with the operator's custom resources.
func providedAPIRoles(in *install) ([]Object, error) {
	if in.opt.NoAggregatedRoles {
		return nil, nil
	}
	var out []Object
	for _, crd := range in.b.CSV.OwnedCRDs {
		plural, group, ok := strings.Cut(crd.Name, ".")
		if !ok {
			continue
		}
		key := aggregationKey(group, crd.Version, crd.Kind)
		for _, a := range accesses() {
			out = append(out, in.apiRole(crd.Name+"-"+crd.Version, a, a.suffix, key, apiRule(group, plural, "", a.verbs)))
		}
		view := accesses()[2]
		out = append(out, in.apiRole(crd.Name+"-"+crd.Version, view, "crdview", key,
			apiRule("apiextensions.k8s.io", "customresourcedefinitions", crd.Name, []string{"get"})))
	}
	for _, api := range in.b.CSV.OwnedAPIs {
		key := aggregationKey(api.Group, api.Version, api.Kind)
		for _, a := range accesses() {
			out = append(out, in.apiRole(api.Name+"."+api.Group+"-"+api.Version, a, a.suffix, key, apiRule(api.Group, api.Name, "", a.verbs)))
		}
	}
	return out, nil
}

func apiRule(group, resource, name string, verbs []string) map[string]any {
	rule := map[string]any{"apiGroups": kobj.Values(group), "resources": kobj.Values(resource), "verbs": kobj.Values(verbs...)}
	if name != "" {
		rule["resourceNames"] = kobj.Values(name)
	}
	return rule
}

func (in *install) apiRole(api string, a access, suffix, key string, rule map[string]any) Object {
	o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", kobj.Fit(in.pin.Namespace+"."+api+"-"+suffix, kobj.MaxSubdomain))
	o["rules"] = []any{rule}
	return kobj.Label(o, map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-" + a.aggregate: "true",
		key + "-" + a.aggregate:                                 "true",
	})
}

// aggregationKey is the label by which OLM gathers the roles of one API.
func aggregationKey(group, version, kind string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + "." + version + "." + group))
	return "olm.opgroup.permissions/aggregate-to-" + strconv.FormatUint(h.Sum64(), 16)
}

// operatorGroupRoles makes the three ClusterRoles that gather the roles of all
// APIs that the operator provides, for those who bind them in a namespace of
// the OperatorGroup.
func operatorGroupRoles(in *install) ([]Object, error) {
	if in.pin.OperatorGroup == "" || in.opt.NoAggregatedRoles {
		return nil, nil
	}
	var out []Object
	for _, a := range accesses() {
		o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", in.globalName("og."+in.pin.OperatorGroup+"."+a.suffix))
		o["rules"] = []any{}
		if selectors := aggregationSelectors(in.b.CSV, a.suffix); len(selectors) > 0 {
			o["aggregationRule"] = map[string]any{"clusterRoleSelectors": selectors}
			delete(o, "rules") // the API server fills them
		}
		out = append(out, o)
	}
	return out, nil
}

func aggregationSelectors(csv *bundle.CSV, suffix string) []any {
	keys := map[string]bool{}
	for _, crd := range csv.OwnedCRDs {
		if _, group, ok := strings.Cut(crd.Name, "."); ok {
			keys[aggregationKey(group, crd.Version, crd.Kind)+"-"+suffix] = true
		}
	}
	for _, api := range csv.OwnedAPIs {
		keys[aggregationKey(api.Group, api.Version, api.Kind)+"-"+suffix] = true
	}
	var out []any
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, map[string]any{"matchLabels": map[string]any{key: "true"}})
	}
	return out
}

// operatorConditionCRD returns the CRD of OperatorCondition, which OLM would
// have brought.
func operatorConditionCRD() Object {
	text := map[string]any{"type": "string"}
	list := func(item map[string]any) map[string]any { return map[string]any{"type": "array", "items": item} }
	condition := map[string]any{
		"type":     "object",
		"required": kobj.Values("message", "reason", "status", "type"),
		"properties": map[string]any{
			"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
			"message":            text, "reason": text,
			"observedGeneration": map[string]any{"type": "integer", "format": "int64", "minimum": int64(0)},
			"status":             map[string]any{"type": "string", "enum": kobj.Values("True", "False", "Unknown")},
			"type":               text,
		},
	}
	version := func(name string, storage bool) map[string]any {
		spec := map[string]any{"deployments": list(text), "overrides": list(condition), "serviceAccounts": list(text)}
		if storage {
			spec["conditions"] = list(condition)
		}
		return map[string]any{
			"name": name, "served": true, "storage": storage,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type":        "object",
				"description": "OperatorCondition is where an operator reports conditions to whoever manages its lifecycle.",
				"properties": map[string]any{
					"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"},
					"spec":   map[string]any{"type": "object", "properties": spec},
					"status": map[string]any{"type": "object", "properties": map[string]any{"conditions": list(condition)}},
				},
			}},
		}
	}
	o := kobj.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", conditionCRD)
	o["spec"] = map[string]any{
		"group": conditionGroup,
		"names": map[string]any{
			"kind": "OperatorCondition", "listKind": "OperatorConditionList", "plural": "operatorconditions", "singular": "operatorcondition",
			"shortNames": kobj.Values("condition"), "categories": kobj.Values("olm"),
		},
		"scope":    "Namespaced",
		"versions": []any{version("v1", false), version("v2", true)},
	}
	return o
}
