package render

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

const (
	conditionVariable = "OPERATOR_CONDITION_NAME"
	conditionGroup    = "operators.coreos.com"
	conditionCRD      = "operatorconditions." + conditionGroup
)

// conditionName is the name of the install's OperatorCondition. It stays the
// same from version to version, and with it what the operator reported; of an
// adopted one it is the name that OLM gave it.
func (in *install) conditionName() string {
	if in.pin.Adopted != nil {
		return in.pin.Adopted.Condition
	}
	return kobj.Fit(in.pin.Package, kobj.MaxSubdomain)
}

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
	rule := apiRule(conditionGroup, "operatorconditions", in.conditionName(), []string{"get", "update", "patch"})
	role := in.role("Role", in.pin.Namespace, in.localName("operator-condition"), []any{rule}, sorted...)
	return append([]Object{o}, role...), nil
}

// access is one of the kinds of ClusterRole that give users an operator's API.
type access struct {
	suffix string
	verbs  []string
}

func accesses() []access {
	return []access{
		{"admin", []string{"*"}},
		{"edit", []string{"create", "update", "patch", "delete"}},
		{"view", []string{"get", "list", "watch"}},
	}
}

// providedAPIRoles makes the ClusterRoles that let admins, editors and viewers
// of a namespace work with the operator's custom resources.
func providedAPIRoles(in *install) ([]Object, error) {
	if in.opt.NoAggregatedRoles {
		return nil, nil
	}
	var out []Object
	for _, p := range provided(in.b.CSV) {
		for _, a := range accesses() {
			out = append(out, in.apiRole(p, a, a.suffix, apiRule(p.Group, p.Name, "", a.verbs)))
		}
		if p.crd != "" {
			out = append(out, in.apiRole(p, accesses()[2], "crdview", apiRule("apiextensions.k8s.io", "customresourcedefinitions", p.crd, []string{"get"})))
		}
	}
	return out, nil
}

// providedAPI is an API that an operator owns: its Name is the plural.
type providedAPI struct {
	bundle.API
	crd string // the name of its CRD; empty for an API service
}

// provided returns the APIs that a CSV owns, those of CRDs first.
func provided(csv *bundle.CSV) []providedAPI {
	var out []providedAPI
	for _, api := range csv.OwnedCRDs {
		if plural, group, ok := strings.Cut(api.Name, "."); ok {
			out = append(out, providedAPI{bundle.API{Name: plural, Group: group, Version: api.Version, Kind: api.Kind}, api.Name})
		}
	}
	for _, api := range csv.OwnedAPIs {
		out = append(out, providedAPI{API: api})
	}
	return out
}

func apiRule(group, resource, name string, verbs []string) map[string]any {
	rule := map[string]any{"apiGroups": kobj.Values(group), "resources": kobj.Values(resource), "verbs": kobj.Values(verbs...)}
	if name != "" {
		rule["resourceNames"] = kobj.Values(name)
	}
	return rule
}

func (in *install) apiRole(p providedAPI, a access, suffix string, rule map[string]any) Object {
	o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", kobj.Fit(in.pin.Namespace+"."+p.Name+"."+p.Group+"-"+p.Version+"-"+suffix, kobj.MaxSubdomain))
	o["rules"] = []any{rule}
	return kobj.Label(o, map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-" + a.suffix: "true",
		p.aggregatesTo(a.suffix):                             "true",
	})
}

// aggregatesTo is the label by which OLM gathers the roles of one API.
func (p providedAPI) aggregatesTo(suffix string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Kind + "." + p.Version + "." + p.Group))
	return "olm.opgroup.permissions/aggregate-to-" + strconv.FormatUint(h.Sum64(), 16) + "-" + suffix
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

// aggregatedRoles returns the keys of all aggregated roles that a bundle may have
// where it is pinned: those of its APIs and those of its OperatorGroup.
func aggregatedRoles(b *bundle.Bundle, pin lockfile.Pin) map[Key]bool {
	in := &install{b: b, pin: pin}
	out := map[Key]bool{}
	for _, generate := range []generator{providedAPIRoles, operatorGroupRoles} {
		roles, _ := generate(in) // neither fails
		for _, o := range roles {
			out[o.Key()] = true
		}
	}
	return out
}

func aggregationSelectors(csv *bundle.CSV, suffix string) []any {
	keys := map[string]bool{}
	for _, p := range provided(csv) {
		keys[p.aggregatesTo(suffix)] = true
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
