package render

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

const (
	conditionVariable = "OPERATOR_CONDITION_NAME"
	conditionCRD      = "operatorconditions." + k8s.OLMGroup
)

// conditionName returns the name of the operator's OperatorCondition. The name does not contain the version, so
// that conditions survive an upgrade. An adopted operator keeps the name that OLM chose.
func (in *install) conditionName() string {
	if in.pin.Adopted != nil {
		return in.pin.Adopted.Condition
	}
	return k8s.Fit(in.pin.Package, k8s.MaxSubdomain)
}

// operatorConditions generates the OperatorCondition and a Role. With the OperatorCondition, an operator can
// block its own upgrade. The Role permits the operator's accounts to write the OperatorCondition.
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
	o := k8s.New(k8s.OLMGroup+"/v2", "OperatorCondition", in.pin.Namespace, in.conditionName())
	o["spec"] = map[string]any{"deployments": k8s.Values(names...), "serviceAccounts": k8s.Values(sorted...)}
	rule := apiRule(k8s.OLMGroup, "operatorconditions", in.conditionName(), []string{"get", "update", "patch"})
	role := in.roleWithBinding("Role", in.pin.Namespace, in.localName("operator-condition"), []any{rule}, sorted...)
	return append([]Object{o}, role...), nil
}

// accessLevel is a level of access for users to the provided APIs of an operator, such as edit.
type accessLevel struct {
	suffix string
	verbs  []string
}

func accessLevels() []accessLevel {
	return []accessLevel{
		{"admin", []string{"*"}},
		{"edit", []string{"create", "update", "patch", "delete"}},
		{"view", []string{"get", "list", "watch"}},
	}
}

// providedAPIRoles generates the ClusterRoles that give admins, editors and viewers of a namespace
// access to the operator's custom resources.
func providedAPIRoles(in *install) ([]Object, error) {
	if in.opt.NoAggregatedRoles {
		return nil, nil
	}
	var out []Object
	for _, p := range providedAPIs(in.b.CSV) {
		for _, a := range accessLevels() {
			out = append(out, in.apiRole(p, a, a.suffix, apiRule(p.Group, p.Name, "", a.verbs)))
		}
		if p.crd != "" {
			out = append(out, in.apiRole(p, accessLevels()[2], "crdview", apiRule(k8s.CRDGroup, "customresourcedefinitions", p.crd, []string{"get"})))
		}
	}
	return out, nil
}

// providedAPI is an API that an operator owns. Name is its plural name.
type providedAPI struct {
	bundle.API
	crd string // name of the CRD; empty for an APIService
}

// providedAPIs returns the APIs that a ClusterServiceVersion owns: first CRDs, then APIServices.
func providedAPIs(csv *bundle.CSV) []providedAPI {
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
	rule := map[string]any{"apiGroups": k8s.Values(group), "resources": k8s.Values(resource), "verbs": k8s.Values(verbs...)}
	if name != "" {
		rule["resourceNames"] = k8s.Values(name)
	}
	return rule
}

func (in *install) apiRole(p providedAPI, a accessLevel, suffix string, rule map[string]any) Object {
	o := k8s.New(k8s.RBACGroup+"/v1", "ClusterRole", "", k8s.Fit(in.pin.Namespace+"."+p.Name+"."+p.Group+"-"+p.Version+"-"+suffix, k8s.MaxSubdomain))
	o["rules"] = []any{rule}
	return k8s.Label(o, map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-" + a.suffix: "true",
		p.aggregationLabel(a.suffix):                         "true",
	})
}

// aggregationLabel returns OLM's label for aggregating the roles of an API.
func (p providedAPI) aggregationLabel(suffix string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Kind + "." + p.Version + "." + p.Group))
	return "olm.opgroup.permissions/aggregate-to-" + strconv.FormatUint(h.Sum64(), 16) + "-" + suffix
}

// operatorGroupRoles generates the three ClusterRoles that aggregate the roles of all APIs of the
// operator. Users can bind them in the namespace of the OperatorGroup.
func operatorGroupRoles(in *install) ([]Object, error) {
	if in.pin.OperatorGroup == "" || in.opt.NoAggregatedRoles {
		return nil, nil
	}
	var out []Object
	for _, a := range accessLevels() {
		o := k8s.New(k8s.RBACGroup+"/v1", "ClusterRole", "", in.globalName("og."+in.pin.OperatorGroup+"."+a.suffix))
		o["rules"] = []any{}
		if selectors := aggregationSelectors(in.b.CSV, a.suffix); len(selectors) > 0 {
			o["aggregationRule"] = map[string]any{"clusterRoleSelectors": selectors}
			delete(o, "rules") // a controller of Kubernetes sets the rules
		}
		out = append(out, o)
	}
	return out, nil
}

// aggregatedRoles returns the keys of all aggregated roles that can be generated for a pinned bundle: the
// roles for its APIs, and the roles for its OperatorGroup.
func aggregatedRoles(b *bundle.Bundle, pin lockfile.Pin) map[Key]bool {
	in := &install{b: b, pin: pin}
	out := map[Key]bool{}
	for _, generate := range []generator{providedAPIRoles, operatorGroupRoles} {
		roles, _ := generate(in) // these generators never return an error
		for _, o := range roles {
			out[o.Key()] = true
		}
	}
	return out
}

func aggregationSelectors(csv *bundle.CSV, suffix string) []any {
	keys := map[string]bool{}
	for _, p := range providedAPIs(csv) {
		keys[p.aggregationLabel(suffix)] = true
	}
	var out []any
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, map[string]any{"matchLabels": map[string]any{key: "true"}})
	}
	return out
}

// operatorConditionCRD returns the CRD of OperatorCondition, which OLM would install otherwise.
func operatorConditionCRD() Object {
	text := map[string]any{"type": "string"}
	list := func(item map[string]any) map[string]any { return map[string]any{"type": "array", "items": item} }
	condition := map[string]any{
		"type":     "object",
		"required": k8s.Values("message", "reason", "status", "type"),
		"properties": map[string]any{
			"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
			"message":            text, "reason": text,
			"observedGeneration": map[string]any{"type": "integer", "format": "int64", "minimum": int64(0)},
			"status":             map[string]any{"type": "string", "enum": k8s.Values("True", "False", "Unknown")},
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
	o := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", conditionCRD)
	o["spec"] = map[string]any{
		"group": k8s.OLMGroup,
		"names": map[string]any{
			"kind": "OperatorCondition", "listKind": "OperatorConditionList", "plural": "operatorconditions", "singular": "operatorcondition",
			"shortNames": k8s.Values("condition"), "categories": k8s.Values("olm"),
		},
		"scope":    "Namespaced",
		"versions": []any{version("v1", false), version("v2", true)},
	}
	return o
}
