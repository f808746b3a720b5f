package extend

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// Declaration is an object to declare, with its file.
type Declaration struct {
	File   string // "etcd.yaml"
	Object k8s.Object
}

// clusterFile is the file for objects without a namespace.
const clusterFile = "cluster-scoped.yaml"

// Objects returns the declarations of operators and of their namespaces, OperatorGroups and catalogs, sorted by
// file, kind and name. It also returns the OperatorGroups and catalogs that are not declared. configuredBy
// returns the file that already configures a catalog, or "".
func (c *Installations) Objects(ops []Operator, configuredBy func(catalog.ID) string) ([]Declaration, []Skipped) {
	m := declarationBuilder{s: c.s, groups: c.groups, configuredBy: configuredBy, namespaces: map[string]bool{}}
	for _, op := range ops {
		m.namespaces[op.Namespace] = true
		m.add(op.Namespace+".yaml", op.Object())
	}
	m.addOperatorGroups(ops)
	m.addCatalogs(ops)
	for ns := range m.namespaces {
		m.addNamespace(ns)
	}
	rank := []string{"Namespace", "CatalogSource", "ClusterCatalog", "OperatorGroup", "Subscription", "ClusterExtension"}
	slices.SortStableFunc(m.out, func(a, b Declaration) int {
		return cmp.Or(
			strings.Compare(a.File, b.File),
			slices.Index(rank, a.Object.Kind())-slices.Index(rank, b.Object.Kind()),
			strings.Compare(a.Object.Name(), b.Object.Name()),
		)
	})
	return m.out, m.skipped
}

// declarationBuilder creates declarations.
type declarationBuilder struct {
	s            *snapshot.Snapshot
	groups       map[string]snapshot.OperatorGroup
	configuredBy func(catalog.ID) string
	namespaces   map[string]bool // namespaces to declare
	out          []Declaration
	skipped      []Skipped
}

func (m *declarationBuilder) add(file string, o k8s.Object) {
	m.out = append(m.out, Declaration{File: file, Object: o})
}

func (m *declarationBuilder) skip(o *snapshot.LiveObject, format string, args ...any) {
	m.skipped = append(m.skipped, newSkipped(o, false, format, args...))
}

// isGeneratedKey reports whether a label or annotation is set by OLM, by the cluster, or by a tool that applies
// files.
func isGeneratedKey(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch prefix {
	case k8s.OLMGroup, "olm.operatorgroup.uid", "quayside.dev":
		return true
	}
	return profile.IsToolKey(key) || slices.Contains([]string{
		"kubernetes.io/metadata.name", "olm.operatorframework.io/metadata.name", "olm.managed", "olm.providedAPIs", "olm.generated-by", "operatorframework.io/generated-by",
		"kubectl.kubernetes.io/last-applied-configuration", "security.openshift.io/MinimallySufficientPodSecurityStandard",
	}, key) || strings.HasPrefix(key, "openshift.io/sa.scc.")
}

// newObject returns a declaration with the kind and name of o, and the labels and annotations in body that
// users have set. If spec is not nil, the declaration has this spec.
func newObject(o *snapshot.LiveObject, body k8s.Object, spec map[string]any) k8s.Object {
	out := k8s.New(o.APIVersion, o.Kind, o.Namespace, o.Name)
	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		for key, value := range k8s.Map(body, "metadata", field) {
			if !isGeneratedKey(key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			k8s.Map(out, "metadata")[field] = kept
		}
	}
	if spec != nil {
		out["spec"] = spec
	}
	return out
}

// dropDefaults returns a copy of fields. It omits empty values, and values that are equal to those in defaults.
func dropDefaults(fields, defaults map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range fields {
		if d, has := defaults[key]; !isEmpty(value) && (!has || !k8s.Equal(d, value)) {
			out[key] = value
		}
	}
	return out
}

// isEmpty reports whether a value is nil or empty.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return value == nil || value == ""
}

// addNamespace declares a Namespace, unless the cluster lacks it or it is reserved.
func (m *declarationBuilder) addNamespace(name string) {
	o := m.s.Get(k8s.Key{Kind: "Namespace", Name: name})
	if o == nil || k8s.IsReservedNamespace(name) {
		return
	}
	m.add(name+".yaml", newObject(o, o.Body(), nil))
}

// Object returns the declaration of the operator.
func (o Operator) Object() k8s.Object {
	body := o.object.Body()
	spec := k8s.Map(body, "spec")
	switch {
	case o.isChart():
		out := k8s.New(string(declare.Quayside)+"/v1alpha1", "Subscription", o.Namespace, o.Name)
		out["spec"] = k8s.With(o.chart, any(o.Catalog.String()), "catalog")
		return out
	case o.Kind == "ClusterExtension":
		policy := []string{"source", "catalog", "upgradeConstraintPolicy"}
		if k8s.Text(spec, policy...) == string(declare.CatalogProvided) { // default of the API server
			spec = k8s.Without(spec, policy...)
		}
	case o.ByImage:
		own := map[string]any{"bundle": "image:" + o.Image}
		if approval := k8s.Text(spec, "installPlanApproval"); approval == string(declare.Manual) {
			own["approval"] = approval
		}
		if config := dropDefaults(k8s.Map(spec, "config"), nil); len(config) > 0 {
			own["config"] = config
		}
		out := newObject(o.object, body, own)
		out["apiVersion"] = string(declare.Quayside) + "/v1alpha1"
		return out
	default:
		spec = k8s.With(dropDefaults(spec, nil), any(o.Bundle), "startingCSV")
	}
	return newObject(o.object, body, dropDefaults(spec, nil))
}

// addOperatorGroups declares the OperatorGroups in the namespaces of imported operators.
func (m *declarationBuilder) addOperatorGroups(ops []Operator) {
	used := map[string]bool{}
	for _, op := range ops {
		used[op.Namespace] = used[op.Namespace] || op.Kind == "Subscription"
	}
	for _, g := range m.s.OperatorGroups() {
		switch {
		case !used[g.Namespace]:
			m.skip(g.LiveObject, "no operator is imported in its namespace")
		case m.groups[g.Namespace].Name != g.Name:
			m.skip(g.LiveObject, "the operators in this namespace were installed with another OperatorGroup, %s", m.groups[g.Namespace].Name)
		default:
			m.addOperatorGroup(g)
		}
	}
}

// addOperatorGroup declares an OperatorGroup. If its label selector no longer selects exactly the namespaces in
// the status, the declaration lists these namespaces instead.
func (m *declarationBuilder) addOperatorGroup(g snapshot.OperatorGroup) {
	body := g.Body()
	spec := dropDefaults(k8s.Map(body, "spec"), map[string]any{"upgradeStrategy": "Default", "staticProvidedAPIs": false})
	if len(g.Namespaces) > 0 {
		if names, ok := m.selectedNamespaces(g); ok && slices.Equal(names, g.Namespaces) {
			for _, ns := range names {
				m.namespaces[ns] = true
			}
		} else {
			delete(spec, "selector")
			delete(spec, "targetNamespaces")
			if g.Namespaces[0] != "" {
				spec["targetNamespaces"] = k8s.Values(g.Namespaces...)
			}
		}
	}
	m.add(g.Namespace+".yaml", newObject(g.LiveObject, body, spec))
}

// selectedNamespaces returns the Namespaces that the selector of an OperatorGroup selects. If there is no
// selector, or it selects a reserved namespace, selectedNamespaces returns false.
func (m *declarationBuilder) selectedNamespaces(g snapshot.OperatorGroup) ([]string, bool) {
	var sel k8s.Selector
	if data, err := json.Marshal(g.Selector); err != nil || json.Unmarshal(data, &sel) != nil || sel.Empty() || len(g.Targets) > 0 {
		return nil, false
	}
	var names []string
	for _, ns := range m.s.Kind("", "Namespace") {
		labels := maps.Clone(ns.Labels)
		maps.DeleteFunc(labels, func(key, _ string) bool { return isGeneratedKey(key) && key != "kubernetes.io/metadata.name" })
		if sel.Matches(labels) {
			if k8s.IsReservedNamespace(ns.Name) {
				return nil, false
			}
			names = append(names, ns.Name)
		}
	}
	return names, true
}

// addCatalogs declares the catalogs of imported operators.
func (m *declarationBuilder) addCatalogs(ops []Operator) {
	used, extensions := map[catalog.ID]bool{}, false
	for _, op := range ops {
		if !op.ByImage {
			used[op.Catalog] = true
			extensions = extensions || op.Kind == "ClusterExtension"
		}
	}
	for _, c := range m.s.CatalogSources() {
		id := catalog.ID{Namespace: c.Namespace, Name: c.Name}
		place := m.configuredBy(id)
		switch {
		case place != "":
			m.skip(c.LiveObject, "its content is set by %s", place)
		case c.Image == "" && c.Address != "":
			m.skip(c.LiveObject, "it is served at %s, which is reachable only from inside the cluster: give its content with --catalog %s=SOURCE", c.Address, id)
		case c.Image == "":
			m.skip(c.LiveObject, "it has no image: give its content with --catalog %s=SOURCE", id)
		case !used[id]:
			m.skip(c.LiveObject, "it contains no imported operator")
		default:
			body := c.Body()
			spec := dropDefaults(k8s.Map(body, "spec"), map[string]any{"priority": int64(0), "icon": map[string]any{"base64data": "", "mediatype": ""}})
			m.add(c.Namespace+".yaml", newObject(c.LiveObject, body, spec))
		}
	}
	for _, o := range m.s.Kind(k8s.OLMv1Group, "ClusterCatalog") {
		switch place := m.configuredBy(catalog.ID{Name: o.Name}); {
		case place != "":
			m.skip(o, "its content is set by %s", place)
		case !extensions:
			m.skip(o, "it contains no imported operator")
		default:
			body := o.Body()
			m.add(clusterFile, newObject(o, body, dropDefaults(k8s.Map(body, "spec"), map[string]any{"priority": int64(0), "availabilityMode": "Available"})))
		}
	}
}
