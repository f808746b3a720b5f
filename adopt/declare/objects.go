package declare

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/selector"
	"github.com/quayside/quayside/subscription"
)

// Declaration is one object to be declared.
type Declaration struct {
	File     string // "etcd.yaml"
	Object   kobj.Object
	Operator *Operator // that it asks for; nil for what stands around it
}

// clusterFile is for what lies in no namespace.
const clusterFile = "cluster-scoped.yaml"

// Objects returns the declarations of the operators and of what stands around
// them, by file, each in the order in which they are read best. settled says of a
// catalog where else its content is named, "" where nowhere. What of OperatorGroups
// and catalogs is not declared is returned too.
func (c *Cluster) Objects(settled func(catalog.ID) string) ([]Declaration, []Left) {
	m := maker{Cluster: &Cluster{s: c.s, groups: c.groups}, settled: settled, namespaces: map[string]bool{}}
	for _, op := range c.Operators {
		m.namespaces[op.Namespace] = true
	}
	m.operatorGroups(c.Operators)
	m.catalogs(c.Operators)
	for _, ns := range slices.Sorted(maps.Keys(m.namespaces)) {
		m.namespace(ns)
	}
	for _, op := range c.Operators {
		m.operator(op)
	}
	rank := []string{"Namespace", "CatalogSource", "ClusterCatalog", "OperatorGroup", "Subscription", "ClusterExtension"}
	slices.SortStableFunc(m.out, func(a, b Declaration) int {
		if by := strings.Compare(a.File, b.File); by != 0 {
			return by
		}
		if by := slices.Index(rank, a.Object.Kind()) - slices.Index(rank, b.Object.Kind()); by != 0 {
			return by
		}
		return strings.Compare(a.Object.Name(), b.Object.Name())
	})
	return m.out, m.Left
}

// maker makes declarations.
type maker struct {
	*Cluster   // whose Left grows
	settled    func(catalog.ID) string
	namespaces map[string]bool // to be declared
	out        []Declaration
}

func (m *maker) add(file string, o kobj.Object, op *Operator) {
	m.out = append(m.out, Declaration{File: file, Object: o, Operator: op})
}

// theirs reports whether a label or an annotation was put there by OLM, the cluster
// or a tool that applies files.
func theirs(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch prefix {
	case "operators.coreos.com", "olm.operatorgroup.uid", "quayside.dev", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io":
		return true
	}
	return slices.Contains([]string{
		"kubernetes.io/metadata.name", "olm.operatorframework.io/metadata.name", "olm.managed", "olm.providedAPIs", "olm.generated-by", "operatorframework.io/generated-by",
		"kubectl.kubernetes.io/last-applied-configuration", "security.openshift.io/MinimallySufficientPodSecurityStandard",
	}, key) || strings.HasPrefix(key, "openshift.io/sa.scc.")
}

// fresh returns an object of the same name with the labels and annotations that are
// the user's, and a spec where there is one.
func fresh(o *snapshot.Object, body kobj.Object, spec map[string]any) kobj.Object {
	out := kobj.New(o.APIVersion, o.Kind, o.Namespace, o.Name)
	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		for key, value := range kobj.Map(body, "metadata", field) {
			if !theirs(key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			kobj.Map(out, "metadata")[field] = kept
		}
	}
	if spec != nil {
		out["spec"] = spec
	}
	return out
}

// without returns fields without those that have the value that is theirs anyway.
func without(fields, defaults map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range fields {
		if d, has := defaults[key]; !empty(value) && (!has || !kobj.Equal(d, value)) {
			out[key] = value
		}
	}
	return out
}

// empty reports whether a value says nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return value == nil || value == ""
}

// namespace declares a Namespace, unless the cluster or its vendor makes it.
func (m *maker) namespace(name string) {
	o := m.s.Get(kobj.Key{Kind: "Namespace", Name: name})
	if o == nil || kinds.ReservedNamespace(name) {
		return
	}
	m.add(name+".yaml", fresh(o, o.Body(), nil), nil)
}

// operator declares what is asked for.
func (m *maker) operator(op *Operator) {
	body := op.object.Body()
	spec := kobj.Map(body, "spec")
	switch {
	case op.Kind == "ClusterExtension":
		policy := []string{"source", "catalog", "upgradeConstraintPolicy"}
		if kobj.Text(spec, policy...) == string(subscription.CatalogProvided) { // as the API server fills it in
			spec = kobj.Without(spec, policy...)
		}
	case op.ByItself:
		own := map[string]any{"bundle": "image:" + op.Image}
		if approval := kobj.Text(spec, "installPlanApproval"); approval == string(subscription.Manual) {
			own["approval"] = approval
		}
		if config := without(kobj.Map(spec, "config"), nil); len(config) > 0 {
			own["config"] = config
		}
		o := fresh(op.object, body, own)
		o["apiVersion"] = string(subscription.Quayside) + "/v1alpha1"
		m.add(op.Namespace+".yaml", o, op)
		return
	default:
		spec = kobj.With(without(spec, nil), any(op.Bundle), "startingCSV")
	}
	m.add(op.Namespace+".yaml", fresh(op.object, body, without(spec, nil)), op)
}

// operatorGroups declares the OperatorGroups that operators are installed under.
func (m *maker) operatorGroups(ops []*Operator) {
	used := map[string]bool{}
	for _, op := range ops {
		used[op.Namespace] = used[op.Namespace] || op.Kind == "Subscription"
	}
	for _, g := range m.s.OperatorGroups() {
		switch {
		case !used[g.Namespace]:
			m.leave(g.Object, false, "no operator is imported in its namespace")
		case m.groups[g.Namespace].Name != g.Name:
			m.leave(g.Object, false, "the operators in its namespace were installed under OperatorGroup %s", m.groups[g.Namespace].Name)
		default:
			m.operatorGroup(g)
		}
	}
}

// operatorGroup declares an OperatorGroup. It selects by labels only where that
// comes to what OLM found.
func (m *maker) operatorGroup(g snapshot.OperatorGroup) {
	body := g.Body()
	spec := without(kobj.Map(body, "spec"), map[string]any{"upgradeStrategy": "Default", "staticProvidedAPIs": false})
	if len(g.Namespaces) > 0 {
		if names, ok := m.selected(g); ok && slices.Equal(names, g.Namespaces) {
			for _, ns := range names {
				m.namespaces[ns] = true
			}
		} else {
			delete(spec, "selector")
			delete(spec, "targetNamespaces")
			if g.Namespaces[0] != "" {
				spec["targetNamespaces"] = kobj.Values(g.Namespaces...)
			}
		}
	}
	m.add(g.Namespace+".yaml", fresh(g.Object, body, spec), nil)
}

// selected returns the Namespaces that an OperatorGroup selects by their labels;
// false where it selects none so, or one that is never declared.
func (m *maker) selected(g snapshot.OperatorGroup) ([]string, bool) {
	var sel selector.Selector
	if data, err := json.Marshal(g.Selector); err != nil || json.Unmarshal(data, &sel) != nil || sel.Empty() || len(g.Targets) > 0 {
		return nil, false
	}
	var names []string
	for _, ns := range m.s.Kind("", "Namespace") {
		labels := maps.Clone(ns.Labels)
		maps.DeleteFunc(labels, func(key, _ string) bool { return theirs(key) && key != "kubernetes.io/metadata.name" })
		if sel.Matches(labels) {
			if kinds.ReservedNamespace(ns.Name) {
				return nil, false
			}
			names = append(names, ns.Name)
		}
	}
	return names, true
}

// catalogs declares the catalogs that operators come from.
func (m *maker) catalogs(ops []*Operator) {
	used, extensions := map[catalog.ID]bool{}, false
	for _, op := range ops {
		if !op.ByItself {
			used[op.Catalog] = true
			extensions = extensions || op.Kind == "ClusterExtension"
		}
	}
	for _, c := range m.s.CatalogSources() {
		id := catalog.ID{Namespace: c.Namespace, Name: c.Name}
		place := m.settled(id)
		switch {
		case place != "":
			m.leave(c.Object, false, "%s says where its content is", place)
		case c.Image == "" && c.Address != "":
			m.leave(c.Object, false, "it is served at %s, which only the cluster can reach: name its content with --catalog %s=SOURCE", c.Address, id)
		case c.Image == "":
			m.leave(c.Object, false, "it names no image: name its content with --catalog %s=SOURCE", id)
		case !used[id]:
			m.leave(c.Object, false, "no operator is imported that comes from it")
		default:
			body := c.Body()
			spec := without(kobj.Map(body, "spec"), map[string]any{"priority": int64(0), "icon": map[string]any{"base64data": "", "mediatype": ""}})
			m.add(c.Namespace+".yaml", fresh(c.Object, body, spec), nil)
		}
	}
	for _, o := range m.s.Kind(snapshot.OLMv1, "ClusterCatalog") {
		switch place := m.settled(catalog.ID{Name: o.Name}); {
		case place != "":
			m.leave(o, false, "%s says where its content is", place)
		case !extensions:
			m.leave(o, false, "no operator is imported that comes from it")
		default:
			body := o.Body()
			m.add(clusterFile, fresh(o, body, without(kobj.Map(body, "spec"), map[string]any{"priority": int64(0), "availabilityMode": "Available"})), nil)
		}
	}
}
