package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

func dataRules() []Rule {
	const refused = "the API server refuses the change: the sync fails until the object is deleted and made anew"
	return []Rule{
		{"data.crd-removed", Critical, "custom resource definition goes", "deleting a definition deletes every object of its kind in every namespace, at once; their finalizers need an operator that still runs; with the argocd and the flux profile a definition that leaves the tree is not pruned"},
		{"data.crd-added", Info, "custom resource definition added", "a new kind in the whole cluster"},
		{"data.resource-orphaned", Critical, "custom resource in the repository loses its definition", "the object is deleted with the definition, and the file can no longer be applied"},
		{"data.namespace-removed", Critical, "namespace goes", "deleting a namespace deletes all that it holds, volumes and Secrets included"},
		{"data.volume-claim-removed", High, "volume claim goes", "with reclaim policy Delete, which is the default of most storage classes, the data goes with the claim"},
		{"data.stateful-set-removed", Medium, "StatefulSet goes", "its pods stop, and its claims stay or go by persistentVolumeClaimRetentionPolicy"},
		{"data.secret-removed", Medium, "Secret goes", "a credential or key that nothing else holds is lost"},
		{"data.policy-removed", Medium, "NetworkPolicy goes", "traffic that was blocked is allowed"},
		{"immutable.field-changed", High, "field that cannot be changed", refused},
	}
}

// compareDeletions reports objects that go and take something with them.
func compareDeletions(c *comparison) {
	c.each(func(p pair) {
		switch {
		case p.before == nil:
			c.add("data.crd-added", p.after, Finding{
				After: some(kinds.Define(p.after.Content).Served(), 8), Message: "new kind, " + kobj.Text(p.after.Content, "spec", "scope"), steps: path("metadata", "name"),
			})
		case p.after == nil:
			c.crdGone(p.before)
		}
	}, crdKind)
	words := map[string][2]string{
		"PersistentVolumeClaim":           {"data.volume-claim-removed", "the claim is deleted"},
		"StatefulSet.apps":                {"data.stateful-set-removed", "the StatefulSet is deleted"},
		"Secret":                          {"data.secret-removed", "the Secret is deleted"},
		"NetworkPolicy.networking.k8s.io": {"data.policy-removed", "the NetworkPolicy is deleted"},
	}
	c.each(func(p pair) {
		if p.after == nil {
			c.add("data.namespace-removed", p.before, Finding{Message: "the namespace leaves the tree: " + c.before.fate(p.before, "and all that it holds")})
		}
	}, "Namespace")
	for _, kind := range names(words) {
		c.each(func(p pair) {
			if p.after == nil && !leftBehind(c.before, c.after, p.before.Operator) {
				c.add(words[kind][0], p.before, Finding{Message: words[kind][1]})
			}
		}, kind)
	}
}

// fate says what becomes in the cluster of an object that leaves the tree, and of
// what goes with it, by what the object tells the tool that applies it. Argo CD
// does not track definitions, so that it never prunes one.
func (s *State) fate(o *Object, along string) string {
	switch {
	case !s.protects(o):
		return "it is deleted, " + along
	case !kobj.IsCRD(o.Content) && !s.keeps(o) && strings.Contains(kobj.Text(o.Content, "metadata", "annotations", "argocd.argoproj.io/sync-options"), "Prune=confirm"):
		return "Argo CD deletes it once somebody confirms, " + along
	}
	return "it is protected and stays; whoever deletes it deletes it " + along
}

// protects reports whether the tool that applies an object does not prune it without
// being told to.
func (s *State) protects(o *Object) bool {
	if s.keeps(o) {
		return true
	}
	annotations := kobj.Map(o.Content, "metadata", "annotations")
	options := kobj.Text(annotations, "argocd.argoproj.io/sync-options")
	return strings.Contains(options, "Prune=confirm") || strings.Contains(options, "Prune=false") ||
		kobj.Text(annotations, "kustomize.toolkit.fluxcd.io/prune") == "disabled"
}

// keeps reports whether nothing prunes an object, whatever it tells the engine: Argo CD
// tracks no CRDs, and the Namespace of an operator is a piece that is never emptied.
func (s *State) keeps(o *Object) bool {
	return s.KeepsDefinitions && kobj.IsCRD(o.Content) || s.ByOperator && o.Ref().is("Namespace")
}

func (c *comparison) crdGone(crd *Object) {
	serves := crd.serves()
	lost := c.after.of(serves)
	f := Finding{Before: some(kinds.Define(crd.Content).Served(), 8), Message: fmt.Sprintf("the definition of %s leaves the tree: %s", serves.Kind, c.before.fate(crd, "and every object of it in the cluster"))}
	if n := len(lost); n > 0 {
		f.Message += fmt.Sprintf("; %s of this repository among them", plural(n, "object", "objects"))
	}
	if kin := c.renamedTo(serves); kin != "" {
		f.Message += "; the kind exists in group " + kin + " now: objects have to be moved first"
	}
	worst := Critical
	if crd.Operator == "quayside" {
		worst = Low // OperatorCondition, of which only operators keep objects, goes with the last of them
	}
	c.add("data.crd-removed", crd, f, worst)
	for _, o := range lost {
		c.add("data.resource-orphaned", o, Finding{
			Operator: crd.Operator, Field: "kind", Message: fmt.Sprintf("no definition of %s is left", groupKind(serves.Group, serves.Kind)), steps: path("kind"),
		})
	}
}

// renamedTo returns the group of a new definition of the same kind, or "".
func (c *comparison) renamedTo(gone kobj.Key) string {
	var out []string
	for k := range c.after.crds {
		if k.Kind == gone.Kind && k.Group != gone.Group && c.before.crds[k] == nil {
			out = append(out, k.Group)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// fixed is a kind and the fields of it that the API server does not let change.
type fixed struct {
	kind   string
	fields []string // dotted
	except []string // below fields: these may change
}

// fixedFields lists what the validation of each kind refuses on update
// (kubernetes pkg/apis/*/validation, the Validate…Update functions).
func fixedFields() []fixed {
	return []fixed{
		{"Deployment.apps", []string{"spec.selector"}, nil},
		{"ReplicaSet.apps", []string{"spec.selector"}, nil},
		{"DaemonSet.apps", []string{"spec.selector"}, nil},
		{"StatefulSet.apps", []string{"spec"}, []string{"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}},
		{"Job.batch", []string{"spec.selector", "spec.completionMode", "spec.template", "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy", "spec.successPolicy"}, nil},
		{"Service", []string{"spec.clusterIP", "spec.ipFamilies"}, nil},
		{"RoleBinding.rbac.authorization.k8s.io", []string{"roleRef"}, nil},
		{"ClusterRoleBinding.rbac.authorization.k8s.io", []string{"roleRef"}, nil},
		{"PersistentVolumeClaim", []string{"spec"}, []string{"resources", "volumeAttributesClassName"}},
		{"StorageClass.storage.k8s.io", []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}, nil},
		{"PriorityClass.scheduling.k8s.io", []string{"value", "preemptionPolicy"}, nil},
		{"IngressClass.networking.k8s.io", []string{"spec.controller"}, nil},
		{"RuntimeClass.node.k8s.io", []string{"handler"}, nil},
		{"Secret", []string{"type"}, nil},
	}
}

// compareImmutable reports changes that the API server would refuse.
func compareImmutable(c *comparison) {
	for _, k := range fixedFields() {
		c.each(func(p pair) {
			if !p.both() {
				return
			}
			for _, f := range k.fields {
				c.fixed(p, k, strings.Split(f, "."))
			}
		}, k.kind)
	}
	c.each(func(p pair) {
		if !p.both() || !kobj.True(p.before.Content, "immutable") {
			return
		}
		for _, f := range []string{"data", "binaryData", "stringData", "immutable"} {
			c.fixed(p, fixed{}, []string{f})
		}
	}, "Secret", "ConfigMap")
}

func (c *comparison) fixed(p pair, k fixed, where []string) {
	a, b := kobj.At(p.before.Content, where...), kobj.At(p.after.Content, where...)
	if k.except != nil {
		for _, name := range union(asMap(a), asMap(b)) {
			if !slices.Contains(k.except, name) {
				c.fixed(p, fixed{kind: k.kind}, append(slices.Clone(where), name))
			}
		}
		return
	}
	name := strings.Join(where, ".")
	if reflect.DeepEqual(a, b) || implied(k.kind, name, a, b) {
		return
	}
	f := Finding{Field: name, Before: show(a), After: show(b), Message: name + " cannot be changed", steps: path(where...)}
	if p.after.Ref().Kind == "Secret" && name != "type" {
		f.Before, f.After = "", "" // never show what a Secret holds
	}
	c.add("immutable.field-changed", p.after, f)
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

// implied reports whether the difference is only what the API server fills in,
// or lets through.
func implied(kind, field string, a, b any) bool {
	if kind == "Service" { // spec.clusterIP and spec.ipFamilies are given out
		return a == nil || b == nil || a == "" || b == ""
	}
	instead, ok := map[string]string{
		"Secret type": "Opaque",
		"StatefulSet.apps spec.podManagementPolicy":        "OrderedReady",
		"StorageClass.storage.k8s.io reclaimPolicy":        "Delete",
		"StorageClass.storage.k8s.io volumeBindingMode":    "Immediate",
		"PriorityClass.scheduling.k8s.io preemptionPolicy": "PreemptLowerPriority",
		"Job.batch spec.completionMode":                    "NonIndexed",
	}[kind+" "+field]
	given := func(v any) any {
		if v == nil || v == "" {
			return instead
		}
		return v
	}
	return ok && reflect.DeepEqual(given(a), given(b))
}
