package plan_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// newOperator returns an operator that OLM installed: live objects of all kinds, and rendered objects.
func newOperator(ns, pkg string) (live []k8s.Object, tree []render.Rendered) {
	version := pkg + ".v1"
	add := func(apiVersion, kind, namespace, name string, labels map[string]string, fields map[string]any, owners ...k8s.Object) k8s.Object {
		o := k8s.Label(k8s.With(k8s.New(apiVersion, kind, namespace, name), any(kind+"/"+namespace+"/"+name), "metadata", "uid"), labels)
		var refs []any
		for _, by := range owners {
			refs = append(refs, map[string]any{"apiVersion": by.APIVersion(), "kind": by.Kind(), "name": by.Name(), "uid": k8s.Text(by, "metadata", "uid")})
		}
		if refs != nil {
			o = k8s.With(o, any(refs), "metadata", "ownerReferences")
		}
		maps.Copy(o, fields)
		live = append(live, o)
		return o
	}
	keep := func(o k8s.Object) {
		tree = append(tree, render.Rendered{Object: k8s.Without(k8s.Without(k8s.Without(o, "metadata", "uid"), "metadata", "labels"), "metadata", "ownerReferences"), Path: "operators/" + ns + "." + pkg + "/" + o.Kind() + o.Name() + ".yaml"})
	}
	component := map[string]string{"olm.managed": "true", olm + "/" + pkg + "." + ns: ""}
	owned := func(namespace string) map[string]string {
		return map[string]string{"olm.owner": version, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace}
	}
	csv := add(olm+"/v1alpha1", "ClusterServiceVersion", ns, version, component, map[string]any{"status": map[string]any{"phase": "Succeeded"}})
	sub := add(olm+"/v1alpha1", "Subscription", ns, pkg, component, map[string]any{"spec": map[string]any{"name": pkg}, "status": map[string]any{"installedCSV": version}})
	add(olm+"/v1", "OperatorGroup", ns, "og", nil, map[string]any{"status": map[string]any{"namespaces": []any{"t"}}})
	step := func(kind, name string) any {
		return map[string]any{"resolving": version, "resource": map[string]any{"kind": kind, "name": name}}
	}
	add(olm+"/v1alpha1", "InstallPlan", ns, "install-"+pkg, nil, map[string]any{
		"spec":   map[string]any{"clusterServiceVersionNames": []any{version}},
		"status": map[string]any{"phase": "Complete", "plan": []any{step("ServiceAccount", pkg), step("Service", pkg)}},
	}, sub)
	container := map[string]any{"name": "c", "image": "i"}
	keep(add("apps/v1", "Deployment", ns, pkg, owned(ns), map[string]any{"spec": map[string]any{"selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}, csv))
	keep(add("v1", "ServiceAccount", ns, pkg, component, nil, csv))
	keep(add("v1", "Service", ns, pkg, component, map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(443)}}}}, csv))
	add("v1", "Secret", ns, pkg+"-service-cert", component, map[string]any{"data": map[string]any{"olmCAKey": "LS0t"}}, csv)
	add(rbacV1, "ClusterRole", "", version+"-x", owned(ns), nil)
	crd := add("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+pkg+".example", component, map[string]any{"spec": map[string]any{
		"group": pkg + ".example", "names": map[string]any{"kind": "Thing", "plural": "things"},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"caBundle": "LS0t", "service": map[string]any{"namespace": ns, "name": pkg}}}},
	}})
	tree = append(tree, render.Rendered{Object: k8s.Without(crd, "metadata", "uid"), Path: "crds/" + pkg + "/crd.yaml"})
	add(rbacV1, "ClusterRole", "", crd.Name()+"-v1-admin", map[string]string{"olm.managed": "true"}, nil, crd)
	condition := add(olm+"/v2", "OperatorCondition", ns, version, nil, nil, csv)
	add(rbacV1, "Role", ns, version, nil, nil, condition)
	copied := add(olm+"/v1alpha1", "ClusterServiceVersion", "t", version, map[string]string{"olm.copiedFrom": ns}, nil)
	there := owned("t")
	there["olm.copiedFrom"] = ns
	add(rbacV1, "Role", "t", version+"-x", there, nil, copied)
	add("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", pkg+"-v", owned(ns), map[string]any{"webhooks": []any{map[string]any{"name": "w", "clientConfig": map[string]any{"caBundle": "LS0t"}}}})
	add(olm+"/v1", "Operator", "", pkg+"."+ns, nil, map[string]any{"status": map[string]any{"components": map[string]any{"refs": []any{map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": ns, "name": pkg}}}}})
	return live, tree
}

// oddValues generates values of any type.
func oddValues() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{nil, "", "x", strings.Repeat("a", 300), true, int64(-1), 1.5, []any{}, []any{nil}, []any{"x", map[string]any{}}, map[string]any{}, map[string]any{"a": nil}})
}

// spoilValue returns a copy of a value in which one part is replaced by a value of another type.
func spoilValue(t *rapid.T, v any) any {
	m, ok := v.(map[string]any)
	if list, isList := v.([]any); isList && len(list) > 0 && rapid.Bool().Draw(t, "below") {
		out := slices.Clone(list)
		i := rapid.IntRange(0, len(list)-1).Draw(t, "item")
		out[i] = spoilValue(t, list[i])
		return out
	}
	if !ok || len(m) == 0 || !rapid.Bool().Draw(t, "below") {
		return oddValues().Draw(t, "odd")
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(t, "key")
	return k8s.With(m, spoilValue(t, m[key]), key)
}

// bendObjects changes objects in ways that an API server does not permit but that occur in edited dumps.
func bendObjects(t *rapid.T, live []k8s.Object) []k8s.Object {
	live = slices.Clone(live)
	for range rapid.IntRange(0, 6).Draw(t, "bends") {
		i, j := rapid.IntRange(0, len(live)-1).Draw(t, "one"), rapid.IntRange(0, len(live)-1).Draw(t, "other")
		o := live[i]
		switch rapid.IntRange(0, 8).Draw(t, "how") {
		case 0, 1:
			if len(live) > 1 {
				live = slices.Delete(live, i, i+1)
			}
			continue
		case 2:
			o = k8s.Without(o, "metadata", "labels")
		case 3:
			o = k8s.Without(o, "metadata", "ownerReferences")
		case 4: // possibly with a cycle
			to := live[j]
			o = k8s.With(o, any([]any{map[string]any{"apiVersion": to.APIVersion(), "kind": to.Kind(), "name": to.Name(), "uid": k8s.Text(to, "metadata", "uid")}}), "metadata", "ownerReferences")
		case 5:
			o = k8s.With(o, any(k8s.TextMap(live[j], "metadata", "labels")), "metadata", "labels")
		case 6:
			live = append(live, k8s.With(o, any(rapid.SampledFrom([]string{o.Name(), o.Name() + "-again", strings.Repeat("n", 300)}).Draw(t, "name")), "metadata", "name"))
			continue
		default:
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(o))).Draw(t, "field")
			o = k8s.With(o, spoilValue(t, o[key]), key)
		}
		live[i] = o
	}
	return live
}

// TestBentClusters inspects clusters with objects that are missing, duplicate, foreign or malformed, and makes
// their plans. Every object must be in one class. Operators without the objects that they need must not be
// adopted. Nothing may panic.
func TestBentClusters(t *testing.T) {
	states := map[adopt.State]int{}
	rapid.Check(t, func(t *rapid.T) {
		live := []k8s.Object{k8s.With(k8s.New("v1", "Namespace", "", "kube-system"), any("system"), "metadata", "uid")}
		var tree []render.Rendered
		var pins []lockfile.Pin
		for _, at := range [][2]string{{"a", "x"}, {"a", "y"}, {"b", "z"}} {
			objects, rendered := newOperator(at[0], at[1])
			live, tree = append(live, objects...), append(tree, rendered...)
			pins = append(pins, lockfile.Pin{Namespace: at[0], Package: at[1], Bundle: at[1] + ".v1", Version: "1.0.0"})
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": bendObjects(t, live)})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{})
		if err != nil {
			return // an invalid object is reported
		}
		lock := adopt.Begin(seen, lockfile.New(pins))
		lock, tree = adopt.Record(seen, lockfile.New(pins), lock, tree)
		rep := adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: tree, GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return nil, nil }})
		for _, op := range rep.Operators {
			states[op.State]++
		}
		inOneClass(t, seen, rep)
		hasWhatItNeeds(t, seen, tree, rep)
		mode := rapid.SampledFrom([]plan.Mode{plan.Stopped, plan.Live}).Draw(t, "mode")
		p, err := plan.Make(plan.Input{Snapshot: seen, Report: rep, Lock: lock, Rendered: tree, Mode: mode, Manager: "quayside"})
		if err != nil {
			return
		}
		for _, taken := range p.Operators {
			if i := slices.IndexFunc(rep.Operators, func(op adopt.Operator) bool {
				return op.Namespace == taken.Namespace && op.Package == taken.Package
			}); rep.Operators[i].State.StaysWithOLM() {
				t.Fatalf("%v is blocked, but planned: %v", taken, rep.Operators[i].Reasons)
			}
		}
		if _, err := plan.Parse("plan.yaml", plan.Format(p)); err != nil {
			t.Fatal(err)
		}
		if err := p.CheckLimits(); err != nil {
			t.Fatal(err)
		}
	})
	if states[adopt.Adoptable] == 0 || states[adopt.CannotLeave]+states[adopt.NeedsDecision]+states[adopt.MustWait]+states[adopt.NotSelected] == 0 {
		t.Errorf("%v: too many or too few malformed objects", states)
	}
}

// inOneClass checks that each object is in exactly one class, and that the counts match.
func inOneClass(t *rapid.T, seen *snapshot.Snapshot, rep *adopt.Inspection) {
	all := slices.Clone(rep.Shared)
	for _, op := range rep.Operators {
		all = append(all, op.Objects...)
	}
	told := map[k8s.Key]bool{}
	live := 0
	for _, o := range all {
		if told[o.Key] || o.Class == "" || (o.Class == adopt.Added) != (seen.Get(o.Key) == nil) {
			t.Fatalf("%s is %q, but reported as %v", o.Key, o.Class, told[o.Key])
		}
		told[o.Key] = true
		if o.Class != adopt.Added {
			live++
		}
	}
	if c := rep.Counts; c.Live != live || c.Live != c.Equal+c.Changed+c.OLM+c.Unknown || c.Added != len(all)-live {
		t.Fatalf("%d objects, %d of them live: %+v", len(all), live, c)
	}
}

// hasWhatItNeeds checks that adoptable operators are installed completely.
func hasWhatItNeeds(t *rapid.T, seen *snapshot.Snapshot, tree []render.Rendered, rep *adopt.Inspection) {
	for _, op := range rep.Operators {
		if op.State != adopt.Adoptable && op.State != adopt.WithRestart {
			continue
		}
		for _, sub := range seen.Subscriptions() {
			installed := slices.ContainsFunc(seen.CSVs(), func(csv snapshot.CSV) bool {
				return csv.Namespace == op.Namespace && csv.Name == op.Pinned && csv.Phase == "Succeeded" && csv.CopiedFrom == ""
			})
			if sub.Namespace == op.Namespace && sub.Package == op.Package && !installed {
				t.Fatalf("%s/%s is %s, but %s is not installed", op.Namespace, op.Package, op.State, op.Pinned)
			}
		}
		for _, r := range tree {
			gone := strings.HasPrefix(r.Path, "operators/"+op.Namespace+"."+op.Package+"/") && seen.Get(r.Object.Key()) == nil
			if gone && r.Object.Is("apps", "Deployment") {
				t.Fatalf("%s/%s is %s, but %s is missing", op.Namespace, op.Package, op.State, r.Object.Key())
			}
			for _, p := range seen.InstallPlans() {
				for _, s := range p.Steps {
					if gone && op.CSV != "" && p.Namespace == op.Namespace && s.CSV == op.Pinned && s.Kind == r.Object.Kind() && s.Name == r.Object.Name() {
						t.Fatalf("%s/%s is %s, but %s of its InstallPlan is missing", op.Namespace, op.Package, op.State, r.Object.Key())
					}
				}
			}
		}
	}
}
