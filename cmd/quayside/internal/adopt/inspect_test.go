package adopt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// newSnapshot returns a snapshot of the objects.
func newSnapshot(t fataler, objects ...k8s.Object) *snapshot.Snapshot {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const olm = "operators.coreos.com"

// newObject returns an object with labels.
func newObject(apiVersion, kind, namespace, name string, labels map[string]string) k8s.Object {
	o := k8s.New(apiVersion, kind, namespace, name)
	o = k8s.With(o, any(kind+"/"+namespace+"/"+name), "metadata", "uid")
	return k8s.Label(o, labels)
}

// newInstalled returns OLM's objects for an operator x.v1 in a namespace.
func newInstalled(namespace, phase string) []k8s.Object {
	csv := newObject(olm+"/v1alpha1", "ClusterServiceVersion", namespace, "x.v1", map[string]string{olm + "/x." + namespace: ""})
	csv["status"] = map[string]any{"phase": phase}
	sub := newObject(olm+"/v1alpha1", "Subscription", namespace, "sub", nil)
	sub["spec"], sub["status"] = map[string]any{"name": "x"}, map[string]any{"installedCSV": "x.v1"}
	return []k8s.Object{csv, sub}
}

func newDeployment(namespace, image, condition string) k8s.Object {
	o := newObject("apps/v1", "Deployment", namespace, "d", map[string]string{"olm.owner": "x.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace})
	container := map[string]any{"name": "c", "image": image, "env": []any{map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": condition}}}
	o["spec"] = map[string]any{"selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
	return o
}

func newPin(namespace string) lockfile.Pin {
	return lockfile.Pin{Namespace: namespace, Package: "x", Bundle: "x.v1", Version: "1.0.0"}
}

// TestPartition draws clusters and trees. Every object of the tree, and every live object with a label of an
// operator, must have exactly one class. The counts must match.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces := []string{"a", "b"}
		var live, tree []k8s.Object
		var lock lockfile.File
		for _, ns := range namespaces {
			if rapid.Bool().Draw(t, "installed") {
				live = append(live, newInstalled(ns, rapid.SampledFrom([]string{"Succeeded", "Failed", ""}).Draw(t, "phase"))...)
			}
			if rapid.Bool().Draw(t, "pinned") {
				lock.Pins = append(lock.Pins, newPin(ns))
			}
		}
		marks := rapid.SampledFrom([]map[string]string{
			nil,
			{"olm.managed": "true"},
			{olm + "/x.a": ""},
			{olm + "/x.b": "", olm + "/x.a": ""},
			{olm + "/other.a": ""},
			{"olm.owner": "x.v1"},
			{"olm.owner": "x.v1", "olm.owner.namespace": "a", "olm.owner.kind": "ClusterServiceVersion"},
			{"olm.owner": "og", "olm.owner.namespace": "b", "olm.owner.kind": "OperatorGroup"},
			{"olm.owner": "x.v1", "olm.owner.namespace": "c", "olm.owner.kind": "ClusterServiceVersion", "olm.copiedFrom": "a"},
			{"app.kubernetes.io/managed-by": "quayside"},
		})
		kinds := [][2]string{{"v1", "ServiceAccount"}, {"v1", "Secret"}, {"apps/v1", "Deployment"}, {"rbac.authorization.k8s.io/v1", "Role"}, {"x.example/v1", "Odd"}, {olm + "/v1", "OperatorGroup"}}
		owners := []any{nil, "ClusterServiceVersion/a/x.v1", "ClusterServiceVersion/b/x.v1", "Role/a/n0", "gone"}
		for i := range rapid.IntRange(0, 12).Draw(t, "objects") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			o := newObject(kind[0], kind[1], rapid.SampledFrom(namespaces).Draw(t, "namespace"), fmt.Sprintf("n%d", i), marks.Draw(t, "marks"))
			if uid := rapid.SampledFrom(owners).Draw(t, "owner"); uid != nil {
				o = k8s.With(o, any([]any{map[string]any{"apiVersion": olm + "/v1alpha1", "kind": "ClusterServiceVersion", "name": "x.v1", "uid": uid}}), "metadata", "ownerReferences")
			}
			where := rapid.IntRange(1, 3).Draw(t, "where")
			if where&1 != 0 {
				live = append(live, o)
			}
			if where&2 != 0 {
				tree = append(tree, k8s.New(o.APIVersion(), o.Kind(), o.Namespace(), o.Name()))
			}
		}
		seen := newSnapshot(t, live...)
		var rendered []render.Rendered
		for _, o := range tree {
			rendered = append(rendered, render.Rendered{Object: o, Path: "operators/" + o.Namespace() + ".x/" + o.Name() + ".yaml"})
		}
		rep := adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock.With(lock.Pins), Rendered: rendered, GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return nil, nil }})
		told, all := map[k8s.Key]adopt.Class{}, rep.Shared
		for _, op := range rep.Operators {
			all = append(all, op.Objects...)
		}
		n := 0
		for _, o := range all {
			if told[o.Key] != "" || o.Class == "" {
				t.Fatalf("%s is %s and %s", o.Key, told[o.Key], o.Class)
			}
			told[o.Key] = o.Class
			if (seen.Get(o.Key) == nil) != (o.Class == adopt.Added) {
				t.Fatalf("%s is %s", o.Key, o.Class)
			}
			if o.Class != adopt.Added {
				n++
			}
		}
		for _, o := range tree {
			if class := told[o.Key()]; class == "" || class == adopt.OLMOnly {
				t.Fatalf("%s of the tree is %q", o.Key(), class)
			}
		}
		for _, op := range rep.Operators {
			for _, o := range live {
				if _, marked := k8s.Map(o, "metadata", "labels")[olm+"/"+op.Package+"."+op.Namespace]; marked && told[o.Key()] == "" {
					t.Fatalf("%s is not reported", o.Key())
				}
			}
		}
		c := rep.Counts
		if c.Live != n || c.Live != c.Equal+c.Changed+c.OLM+c.Unknown || c.Added != len(all)-n {
			t.Fatalf("%d objects, %+v", n, c)
		}
	})
}

// TestState checks an operator in each state.
func TestState(t *testing.T) {
	plan := newObject(olm+"/v1alpha1", "InstallPlan", "ns", "install-1", nil)
	plan["spec"], plan["status"] = map[string]any{"clusterServiceVersionNames": []any{"x.v1"}}, map[string]any{"phase": "Installing"}
	next := newObject(olm+"/v1alpha1", "ClusterServiceVersion", "ns", "x.v2", map[string]string{olm + "/x.ns": ""})
	next["status"] = map[string]any{"phase": "Pending"}
	ours := k8s.Label(k8s.Without(newDeployment("ns", "i", "x.v1"), "metadata", "labels"), map[string]string{"app.kubernetes.io/managed-by": "olm", "olm.owner": "x.v1", "quayside.dev/package": "x"})
	odd := newObject("x.example/v1", "Odd", "ns", "odd", map[string]string{"olm.owner": "x.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ns"})
	other := newPin("ns")
	other.Bundle = "x.v0"
	parent := newInstalled("ns", "")
	parent[0] = k8s.Annotate(parent[0], map[string]string{"olm.operatorNamespace": "elsewhere"})
	with := func(objects []k8s.Object, more ...k8s.Object) []k8s.Object { return append(objects, more...) }
	live := newDeployment("ns", "i", "x.v1")
	for name, c := range map[string]struct {
		live []k8s.Object
		tree []k8s.Object
		made k8s.Object
		pins []lockfile.Pin
		want string
	}{
		"as it is":         {with(newInstalled("ns", "Succeeded"), live), []k8s.Object{live}, nil, []lockfile.Pin{newPin("ns")}, "Adoptable"},
		"settings":         {with(newInstalled("ns", "Succeeded"), live), []k8s.Object{newDeployment("ns", "mirror/i", "x.v1")}, live, []lockfile.Pin{newPin("ns")}, "AdoptableWithRestart restart"},
		"edited":           {with(newInstalled("ns", "Succeeded"), newDeployment("ns", "edited", "x.v1")), []k8s.Object{live}, live, []lockfile.Pin{newPin("ns")}, "NeedsDecision unlike-bundle"},
		"lost":             {newInstalled("ns", "Succeeded"), []k8s.Object{live}, live, []lockfile.Pin{newPin("ns")}, "NeedsDecision lost"},
		"failed":           {newInstalled("ns", "Failed"), nil, nil, []lockfile.Pin{newPin("ns")}, "MustWait csv-not-succeeded"},
		"copy":             {parent, nil, nil, []lockfile.Pin{newPin("ns")}, "CannotLeave copy-as-parent"},
		"gone":             {newInstalled("ns", "")[1:], nil, nil, []lockfile.Pin{newPin("ns")}, "NeedsDecision installed-csv-gone"},
		"left, no tree":    {[]k8s.Object{newObject("rbac.authorization.k8s.io/v1", "Role", "ns", "r", map[string]string{"olm.managed": "true", olm + "/x.ns": "", "olm.owner": "x.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"})}, nil, nil, []lockfile.Pin{newPin("ns")}, "NotSelected not-in-tree"},
		"not in the tree":  {newInstalled("ns", "Succeeded"), nil, nil, []lockfile.Pin{newPin("ns")}, "NotSelected not-in-tree"},
		"not pinned":       {newInstalled("ns", "Succeeded"), nil, nil, nil, "NeedsDecision not-pinned"},
		"pinned otherwise": {newInstalled("ns", "Succeeded"), nil, nil, []lockfile.Pin{other}, "NeedsDecision other-version"},
		"upgrading":        {with(newInstalled("ns", "Succeeded"), next), nil, nil, []lockfile.Pin{newPin("ns")}, "MustWait replacing"},
		"in flight":        {with(newInstalled("ns", "Succeeded"), plan), nil, nil, []lockfile.Pin{newPin("ns")}, "MustWait plan-in-flight"},
		"unknown":          {with(newInstalled("ns", "Succeeded"), odd), nil, nil, []lockfile.Pin{newPin("ns")}, "NeedsDecision unknown-object"},
		"changes its CSV":  {newInstalled("ns", "Succeeded"), newBoundRole("ns", newRule(olm, "clusterserviceversions", "get update")), nil, []lockfile.Pin{newPin("ns")}, "Adoptable"},
		"; these functions stop with OLM (see 'quayside adopt check')": {newInstalled("ns", "Succeeded"), newBoundRole("ns", newRule(olm, "subscriptions", "get create")), nil, []lockfile.Pin{newPin("ns")}, "CannotLeave drives-olm"},
		"destroyed":       {[]k8s.Object{newObject("v1", "ServiceAccount", "ns", "sa", map[string]string{"olm.managed": "true", olm + "/x.ns": ""})}, []k8s.Object{live}, live, []lockfile.Pin{newPin("ns")}, "NeedsDecision lost"},
		"detached":        {[]k8s.Object{live}, []k8s.Object{live}, nil, []lockfile.Pin{newPin("ns")}, "Adoptable"},
		"detached, moved": {[]k8s.Object{live}, []k8s.Object{newDeployment("ns", "mirror/i", "x.v1")}, live, []lockfile.Pin{newPin("ns")}, "AdoptableWithRestart restart"},
		"adopted":         {with(nil, ours, newObject("v1", "ServiceAccount", "ns", "sa", map[string]string{"olm.managed": "true", olm + "/x.ns": ""})), []k8s.Object{live}, nil, []lockfile.Pin{newPin("ns")}, "AlreadyAdopted"},
		"never OLM's":     {[]k8s.Object{ours}, []k8s.Object{live}, nil, []lockfile.Pin{newPin("ns")}, "NotOLM"},
	} {
		var rendered []render.Rendered
		for _, o := range c.tree {
			rendered = append(rendered, render.Rendered{Object: o, Path: "operators/ns.x/o.yaml"})
		}
		rep := adopt.Inspect(adopt.Input{
			Snapshot: newSnapshot(t, c.live...), Lock: lockfile.New(c.pins), Rendered: rendered,
			GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return []k8s.Object{c.made}, nil },
		})
		if len(rep.Operators) != 1 {
			t.Errorf("%s: %d operators", name, len(rep.Operators))
			continue
		}
		got := string(rep.Operators[0].State)
		for _, r := range rep.Operators[0].Reasons {
			got += " " + r.Code
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s\n%v", name, d, rep.Operators[0].Reasons)
		}
	}
}
