package plan_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// newInstallation returns the objects of an operator x that OLM installed in a namespace.
func newInstallation(namespace string) []k8s.Object {
	csv := k8s.New("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, "x.v1")
	csv["status"] = map[string]any{"phase": "Succeeded"}
	sub := k8s.New("operators.coreos.com/v1alpha1", "Subscription", namespace, "x")
	sub["spec"], sub["status"] = map[string]any{"name": "x"}, map[string]any{"installedCSV": "x.v1"}
	operator := k8s.New("operators.coreos.com/v1", "Operator", "", "x."+namespace)
	return []k8s.Object{csv, sub, operator, k8s.New("v1", "Namespace", "", namespace)}
}

// newOLM returns the Deployments of OLM's controllers.
func newOLM() []k8s.Object {
	var out []k8s.Object
	for _, name := range []string{"catalog-operator", "olm-operator"} {
		out = append(out, k8s.With(k8s.New("apps/v1", "Deployment", "olm", name), any(name), "metadata", "labels", "app"))
	}
	return out
}

// accounts returns one ServiceAccount for each namespace. Together they are the rendered tree of the operators x.
func accounts(namespaces []string) []k8s.Object {
	var out []k8s.Object
	for _, namespace := range namespaces {
		out = append(out, k8s.New("v1", "ServiceAccount", namespace, "x"))
	}
	return out
}

// withUIDs adds UIDs to the objects of a cluster, and the Namespace whose UID identifies the cluster.
func withUIDs(objects []k8s.Object) []k8s.Object {
	var out []k8s.Object
	for _, o := range append(slices.Clone(objects), k8s.New("v1", "Namespace", "", "kube-system")) {
		out = append(out, k8s.With(o, any("u-"+o.Key().String()), "metadata", "uid"))
	}
	return out
}

// makePlan returns the plan for all namespaces of a cluster with operators x.
func makePlan(t *testing.T, mode plan.Mode, live, tree []k8s.Object, namespaces ...string) *plan.Plan {
	t.Helper()
	live = withUIDs(live)
	items := []any{}
	for _, o := range live {
		items = append(items, map[string]any(o))
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{ManagedFields: true})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Snapshot: seen, Mode: mode, Manager: "m"}
	var pins []lockfile.Pin
	for _, namespace := range namespaces {
		pins = append(pins, lockfile.Pin{Namespace: namespace, Package: "x", Bundle: "x.v1", Version: "1.0.0"})
	}
	for _, o := range append(accounts(namespaces), tree...) {
		path := "operators/" + cmp.Or(o.Namespace(), namespaces[0]) + ".x/" + o.Kind() + ".yaml"
		if k8s.IsCRD(o) {
			path = "crds/x/" + o.Name() + ".yaml"
		}
		in.Rendered = append(in.Rendered, render.Rendered{Object: o, Path: path})
	}
	in.Lock = (&lockfile.File{}).With(pins)
	in.Report = adopt.Inspect(adopt.Input{Snapshot: seen, Lock: in.Lock, Rendered: in.Rendered})
	p, err := plan.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckLimits(); err != nil {
		t.Fatal(err)
	}
	if len(p.Operators) != len(namespaces) {
		t.Fatalf("skipped operators: %+v", p.Skipped)
	}
	return p
}

// step returns the first step of a kind in a namespace.
func step(t *testing.T, p *plan.Plan, name plan.StepKind, namespace string) plan.Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.Name == name && s.Namespace == namespace {
			return s
		}
	}
	t.Fatalf("no step %s of %q", name, namespace)
	return plan.Step{}
}

// TestDisownState checks that a plan records the specs of Subscriptions, OperatorGroups and catalogs, and the
// digests of pod templates. The plan must be refused if the cluster has another state.
func TestDisownState(t *testing.T) {
	live := append(newInstallation("a"), newOLM()...)
	live[1] = k8s.With(live[1], map[string]any{"name": "x", "source": "c", "sourceNamespace": "olm"}, "spec")
	group := k8s.With(k8s.New("operators.coreos.com/v1", "OperatorGroup", "a", "og"), k8s.Values("a"), "spec", "targetNamespaces")
	catalog := k8s.With(k8s.New("operators.coreos.com/v1alpha1", "CatalogSource", "olm", "c"), any("i"), "spec", "image")
	other := k8s.With(catalog, any("other"), "metadata", "name")
	live = append(live, group, catalog, other)
	p := makePlan(t, plan.Stopped, live, nil, "a")
	var got []string
	for _, s := range p.State {
		got = append(got, s.Object.Key().String()+" "+s.Spec)
	}
	want := []string{
		`CatalogSource.operators.coreos.com olm/c {"image":"i"}`, `OperatorGroup.operators.coreos.com a/og {"targetNamespaces":["a"]}`,
		`Subscription.operators.coreos.com a/x {"name":"x","source":"c","sourceNamespace":"olm"}`,
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range []plan.StepKind{plan.Guard, plan.Backup, plan.Detach} {
		namespace := "a"
		if !slices.ContainsFunc(step(t, p, name, namespace).Before, func(c plan.Check) bool { return c.Check == plan.SameVersion }) {
			t.Errorf("%s does not check for changes", name)
		}
	}
	live[1] = k8s.With(live[1], any("beta"), "spec", "channel")
	if err := p.CheckDerived(makePlan(t, plan.Stopped, live, nil, "a")); err == nil {
		t.Error("the plan is accepted after the channel changed")
	}
}

// TestAPIServicesAreDisowned checks that a plan first removes the labels of an APIService that name its
// ClusterServiceVersion, and then deletes the ClusterServiceVersion. OLM must be restarted after all operators
// have left.
func TestAPIServicesAreDisowned(t *testing.T) {
	labels := map[string]any{"olm.owner": "x.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "a", "olm.managed": "true"}
	api := k8s.With(k8s.New("apiregistration.k8s.io/v1", "APIService", "", "v1.x.example.com"), any(labels), "metadata", "labels")
	for _, mode := range []plan.Mode{plan.Stopped, plan.Live} {
		p := makePlan(t, mode, slices.Concat(newInstallation("a"), newOLM(), []k8s.Object{api}), []k8s.Object{k8s.Without(api, "metadata", "labels")}, "a")
		detach := step(t, p, plan.Detach, "a")
		at := func(do plan.Verb, kind string) int {
			return slices.IndexFunc(detach.Actions, func(a plan.Action) bool { return a.Do == do && a.Object.Kind == kind })
		}
		free := at(plan.Unlabel, "APIService")
		if free < 0 || free > at(plan.Orphan, "ClusterServiceVersion") {
			t.Fatalf("%s: %+v", mode, detach.Actions)
		}
		if got := strings.Join(detach.Actions[free].Unset, " "); got != "olm.owner olm.owner.kind olm.owner.namespace" {
			t.Errorf("%s: removes %s", mode, got)
		}
		again := detach.Actions[len(detach.Actions)-1]
		if live := mode == plan.Live; live != (again.Do == plan.Unlabel) {
			t.Errorf("%s: the last action is %s %s", mode, again.Do, again.Object)
		}
		restart := step(t, p, plan.Restart, "")
		if restart.Number < step(t, p, plan.Tree, "a").Number || len(restart.Actions) != 2 || restart.Actions[0].Do != plan.RestartPods {
			t.Errorf("%s: %+v", mode, restart)
		}
		if mode == plan.Stopped && restart.Number != step(t, p, plan.Start, "").Number+1 {
			t.Errorf("the restart is step %d", restart.Number)
		}
	}
}
