package verify_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

const (
	olm    = "operators.coreos.com"
	rights = "rbac.authorization.k8s.io"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// withOwner returns o with an ownerReference to owner.
func withOwner(o, owner k8s.Object) k8s.Object {
	return k8s.With(o, any([]any{map[string]any{
		"apiVersion": owner.APIVersion(), "kind": owner.Kind(), "name": owner.Name(), "uid": k8s.Text(owner, "metadata", "uid"),
	}}), "metadata", "ownerReferences")
}

// fakeCluster is a cluster in memory. It implements Reader.
type fakeCluster struct {
	objects map[k8s.Key]k8s.Object
	denies  func(verify.Review) bool // reviews to deny although RBAC permits them
	grants  func(verify.Review) bool // reviews to permit although RBAC denies them
	hides   string                   // a kind that may not be listed
	model   *k8s.Permissions         // permissions at the last call of updatePermissions
}

func newCluster(objects ...k8s.Object) *fakeCluster {
	c := &fakeCluster{objects: map[k8s.Key]k8s.Object{}}
	for _, o := range objects {
		c.put(o)
	}
	return c
}

func (c *fakeCluster) put(o k8s.Object) { c.objects[o.Key()] = o }

// copy returns a copy of the cluster that can be changed independently.
func (c *fakeCluster) copy() *fakeCluster {
	d := *c
	d.objects = maps.Clone(c.objects)
	return &d
}

// set changes a field of an object.
func (c *fakeCluster) set(key k8s.Key, v any, path ...string) {
	c.objects[key] = k8s.With(c.objects[key], v, path...)
}

func (c *fakeCluster) Get(_ context.Context, ref k8s.Ref) (k8s.Object, error) {
	return c.objects[ref.Key()], nil
}

func (c *fakeCluster) List(_ context.Context, apiVersion, kind, namespace, labels string) ([]k8s.Object, error) {
	if kind == c.hides {
		return nil, fmt.Errorf("%s: forbidden", kind)
	}
	var out []k8s.Object
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), k8s.Key.Compare) {
		if key.Group != k8s.Group(apiVersion) || key.Kind != kind || namespace != "" && key.Namespace != namespace {
			continue
		}
		o := c.objects[key]
		have := k8s.TextMap(o, "metadata", "labels")
		if labels == "" || !slices.ContainsFunc(strings.Split(labels, ","), func(pair string) bool {
			k, v, _ := strings.Cut(pair, "=")
			return have[k] != v
		}) {
			out = append(out, o)
		}
	}
	return out, nil
}

// updatePermissions computes the permissions that the current objects grant.
func (c *fakeCluster) updatePermissions() {
	var objects []map[string]any
	for _, o := range c.objects {
		objects = append(objects, o)
	}
	var err error
	if c.model, err = k8s.NewPermissions(objects); err != nil {
		panic(err)
	}
}

func (c *fakeCluster) Allowed(_ context.Context, r verify.Review) (bool, error) {
	parts := strings.Split(r.Account, ":")
	g := k8s.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name, URL: r.Path}
	if r.Subresource != "" {
		g.Resource += "/" + r.Subresource
	}
	if c.denies != nil && c.denies(r) {
		return false, nil
	}
	if c.grants != nil && c.grants(r) {
		return true, nil
	}
	return k8s.NewGrantSet(c.model.Of(k8s.Subject{Kind: "ServiceAccount", Namespace: parts[2], Name: parts[3]})).Covers(g), nil
}

// newFakeObject returns an object with a unique UID and the fields in more.
func newFakeObject(apiVersion, kind, namespace, name string, more map[string]any) k8s.Object {
	o := k8s.New(apiVersion, kind, namespace, name)
	o = k8s.With(o, any(kind+"/"+namespace+"/"+name), "metadata", "uid")
	maps.Copy(o, more)
	return o
}

// newVerbsRule returns a rule of a role for one resource.
func newVerbsRule(group, resource string, verbs ...string) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": k8s.Values(verbs...)}
}

func withResourceName(r map[string]any, name string) map[string]any {
	return k8s.With(r, any([]any{name}), "resourceNames")
}

// newRole returns a role, and a binding of the role to the ServiceAccount op/sa.
func newRole(namespace, name string, rules ...any) []k8s.Object {
	prefix := ""
	if namespace == "" {
		prefix = "Cluster"
	}
	return []k8s.Object{
		newFakeObject(rights+"/v1", prefix+"Role", namespace, name, map[string]any{"rules": rules}),
		newFakeObject(rights+"/v1", prefix+"RoleBinding", namespace, name, map[string]any{
			"roleRef":  map[string]any{"kind": prefix + "Role", "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "op", "name": "sa"}},
		}),
	}
}

// newCA returns a caBundle that contains a certificate for each name.
func newCA(names ...string) string {
	var text []byte
	for _, name := range names {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)})...)
	}
	return base64.StdEncoding.EncodeToString(text)
}

func newConversion(ca string) map[string]any {
	return map[string]any{"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{
		"caBundle": ca, "service": map[string]any{"namespace": "op", "name": "d-service", "path": "/convert", "port": int64(443)},
	}}}}
}

// world is a cluster with one operator that OLM installed in namespace op. The operator watches the namespaces
// a and b. world also contains the plan for adopting it, and the tree that this plan applies.
type world struct {
	*fakeCluster
	plan *plan.Plan
	tree []k8s.Object // objects that the plan applies
}

func newWorkload(namespace, name string) []k8s.Object {
	labels := map[string]any{"app": name}
	d := newFakeObject("apps/v1", "Deployment", namespace, name, map[string]any{
		"spec": map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"spec": map[string]any{"serviceAccountName": "sa", "containers": []any{map[string]any{"name": "c", "image": "i:1"}}}},
		},
		"status": map[string]any{"replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1), "observedGeneration": int64(1)},
	})
	d = k8s.With(d, any(int64(1)), "metadata", "generation")
	set := withOwner(newFakeObject("apps/v1", "ReplicaSet", namespace, name+"-1", nil), d)
	pod := withOwner(newFakeObject("v1", "Pod", namespace, name+"-1-x", map[string]any{"status": map[string]any{"containerStatuses": []any{map[string]any{"restartCount": int64(0)}}}}), set)
	pod = k8s.With(pod, any(labels), "metadata", "labels")
	return []k8s.Object{d, set, pod}
}

func newWorld() *world {
	csv := newFakeObject(olm+"/v1alpha1", "ClusterServiceVersion", "op", "x.v1", map[string]any{"status": map[string]any{"phase": "Succeeded"}})
	csv = k8s.With(csv, any([]any{olm + "/csv-cleanup"}), "metadata", "finalizers")
	condition := withOwner(newFakeObject(olm+"/v2", "OperatorCondition", "op", "x.v1", nil), csv)
	c := newCluster(
		csv, condition,
		newFakeObject("v1", "Namespace", "", "kube-system", nil),
		newFakeObject(olm+"/v1alpha1", "Subscription", "op", "x", nil),
		newFakeObject(olm+"/v1", "OperatorGroup", "op", "og", map[string]any{"status": map[string]any{"namespaces": []any{"a", "b"}}}),
		withOwner(newFakeObject("v1", "ServiceAccount", "op", "sa", nil), csv),
		withOwner(newFakeObject("v1", "Secret", "op", "d-service-cert", nil), csv),
		newFakeObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "xs.example", map[string]any{"spec": newConversion(newCA("olm"))}),
		newFakeObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "ys.example", map[string]any{"spec": newConversion("")}),
		newFakeObject("apiregistration.k8s.io/v1", "APIService", "", "v1.x.example", map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}}),
	)
	w := &world{fakeCluster: c}
	for i, o := range newWorkload("op", "d") {
		if i == 0 {
			o = withOwner(o, csv)
		}
		c.put(o)
	}
	for _, o := range newWorkload("olm", "olm-operator") {
		c.put(o)
	}
	for _, ns := range []string{"a", "b"} {
		copied := newFakeObject(olm+"/v1alpha1", "ClusterServiceVersion", ns, "x.v1", nil)
		c.put(copied)
		for _, o := range newRole(ns, "x.v1-hash", newVerbsRule("", "configmaps", "get", "update")) {
			c.put(withOwner(o, copied))
		}
		w.tree = append(w.tree, newRole(ns, "op.x.sa."+ns, newVerbsRule("", "configmaps", "get", "update"))...)
	}
	for _, o := range slices.Concat(
		newRole("", "x.v1-hash", newVerbsRule("x.example", "xs", "*"), map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}),
		newRole("op", "d-service-cert", withResourceName(newVerbsRule("", "secrets", "get"), "d-service-cert")),
	) {
		c.put(o)
	}
	for _, o := range newRole("op", "x.v1", withResourceName(newVerbsRule(olm, "operatorconditions", "get", "update"), "x.v1")) {
		c.put(withOwner(o, condition))
	}
	for _, o := range newRole("op", "x.v1-local", newVerbsRule("", "pods", "get")) {
		if o.Kind() == "RoleBinding" { // like OLM, without a namespace for the subject
			o["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "default"}}
		}
		c.put(o)
	}
	local := newRole("op", "x.default", newVerbsRule("", "pods", "get"))
	local[1]["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "op", "name": "default"}}
	w.tree = append(w.tree, local...)
	w.tree = append(w.tree, newRole("", "op.x.sa", newVerbsRule("x.example", "xs", "*"), map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}})...)
	w.tree = append(w.tree, newRole("op", "x.operator-condition", withResourceName(newVerbsRule(olm, "operatorconditions", "get", "update"), "x"))...)
	w.plan = w.leave()
	return w
}

// leave returns the plan that adopts the operator from OLM.
func (w *world) leave() *plan.Plan {
	at := func(do plan.Verb, apiVersion, kind, namespace, name string) plan.Action {
		ref := k8s.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
		return plan.Action{Do: do, Object: ref, UID: k8s.Text(w.objects[ref.Key()], "metadata", "uid")}
	}
	csv := func(do plan.Verb, ns string) plan.Action {
		a := at(do, olm+"/v1alpha1", "ClusterServiceVersion", ns, "x.v1")
		a.Finalizer = olm + "/csv-cleanup"
		return a
	}
	scale := func(from, to int64) plan.Action {
		a := at(plan.Scale, "apps/v1", "Deployment", "olm", "olm-operator")
		a.From, a.To = from, to
		return a
	}
	tree := []plan.Action{
		at(plan.Apply, "apps/v1", "Deployment", "op", "d"), at(plan.Apply, "v1", "ServiceAccount", "op", "sa"),
		at(plan.Apply, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "xs.example"), at(plan.Apply, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "ys.example"), at(plan.Apply, "apiregistration.k8s.io/v1", "APIService", "", "v1.x.example"),
	}
	var prepare []plan.Action
	for _, o := range w.tree {
		prepare = append(prepare, plan.Action{Do: plan.Apply, Object: k8s.RefTo(o)})
	}
	var clean []plan.Action
	for _, ns := range []string{"a", "b", ""} {
		kind := map[bool]string{true: "ClusterRole", false: "Role"}[ns == ""]
		clean = append(clean, at(plan.Delete, rights+"/v1", kind+"Binding", ns, "x.v1-hash"), at(plan.Delete, rights+"/v1", kind, ns, "x.v1-hash"))
	}
	clean = append(
		clean, at(plan.Delete, rights+"/v1", "RoleBinding", "op", "x.v1-local"), at(plan.Delete, rights+"/v1", "Role", "op", "x.v1-local"),
		at(plan.Delete, rights+"/v1", "RoleBinding", "op", "d-service-cert"), at(plan.Delete, rights+"/v1", "Role", "op", "d-service-cert"),
		at(plan.Delete, olm+"/v2", "OperatorCondition", "op", "x.v1"), at(plan.Delete, olm+"/v1", "OperatorGroup", "op", "og"),
	)
	secret := at(plan.Save, "v1", "Secret", "op", "d-service-cert")
	steps := []plan.Step{
		{Name: plan.Guard, Actions: []plan.Action{at(plan.Annotate, olm+"/v1alpha1", "Subscription", "op", "x")}},
		{Name: plan.Prepare, Actions: prepare},
		{Name: plan.Stop, Actions: []plan.Action{scale(1, 0)}},
		{Name: plan.Backup, Actions: []plan.Action{secret}},
		{Name: plan.Detach, Actions: []plan.Action{
			at(plan.Orphan, olm+"/v1alpha1", "Subscription", "op", "x"),
			csv(plan.Unfinalize, "op"), csv(plan.Orphan, "op"), csv(plan.Orphan, "a"), csv(plan.Orphan, "b"),
		}},
		{Name: plan.Tree, Actions: tree},
		{Name: plan.Start, Actions: []plan.Action{scale(0, 1)}},
		{Name: plan.CleanUp, Actions: clean},
	}
	steps[0].Actions[0].Set = map[string]string{"argocd.argoproj.io/sync-options": "Prune=false"}
	for i := range steps {
		steps[i].Number, steps[i].Namespace = i+1, "op"
	}
	controller := at(plan.Scale, "apps/v1", "Deployment", "olm", "olm-operator")
	return &plan.Plan{
		Mode: plan.Stopped, ClusterUID: "Namespace//kube-system", Manager: "argocd-controller",
		OLM:       []plan.Workload{{Object: controller.Object, UID: controller.UID, Replicas: 1}},
		Operators: []plan.Operator{{Namespace: "op", Package: "x", CSV: "x.v1"}}, Steps: steps,
	}
}

// do executes a step on the cluster, including the resulting garbage collection.
func (w *world) do(s plan.Step) {
	for _, a := range s.Actions {
		key := a.Object.Key()
		switch a.Do {
		case plan.Apply:
			for _, o := range w.tree {
				if o.Key() == key {
					w.put(o)
				}
			}
			w.set(key, "x", "metadata", "labels", "quayside.dev/package")
		case plan.Scale:
			w.scale(key, a.To)
		case plan.Annotate:
			for k, v := range a.Set {
				w.set(key, v, "metadata", "annotations", k)
			}
		case plan.Unfinalize:
			w.set(key, []any{}, "metadata", "finalizers")
		case plan.Orphan, plan.Delete:
			w.remove(key, a.Do == plan.Orphan)
		case plan.Save, plan.Create, plan.RestartPods, plan.Restore, plan.TransferFields, plan.Unlabel, plan.Disown, plan.SuspendRelease, plan.ResumeRelease:
		}
	}
	w.updatePermissions()
}

func (w *world) scale(key k8s.Key, n int64) {
	w.set(key, n, "spec", "replicas")
	for _, field := range []string{"replicas", "readyReplicas", "updatedReplicas"} {
		w.set(key, n, "status", field)
	}
	pod := k8s.Key{Kind: "Pod", Namespace: key.Namespace, Name: key.Name + "-1-x"}
	if delete(w.objects, pod); n > 0 {
		w.put(newWorkload(key.Namespace, key.Name)[2])
	}
}

// remove deletes an object. The objects that it owns are deleted, too, or orphaned.
func (w *world) remove(key k8s.Key, orphan bool) {
	uid := k8s.Text(w.objects[key], "metadata", "uid")
	delete(w.objects, key)
	for k, o := range w.objects {
		for _, ref := range k8s.Items(o, "metadata", "ownerReferences") {
			switch {
			case k8s.Text(ref, "uid") != uid:
			case orphan:
				w.objects[k] = k8s.Without(o, "metadata", "ownerReferences")
			default:
				w.remove(k, false)
			}
		}
	}
}
