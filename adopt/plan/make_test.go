package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TestUninstallKeepsWhatIsWatched names the definitions of OLM's that have to
// stay, because an operator watches objects of them.
func TestUninstallKeepsWhatIsWatched(t *testing.T) {
	const olm, rbac = "operators.coreos.com", "rbac.authorization.k8s.io/v1"
	live := func(apiVersion, kind, namespace, name string) kobj.Object {
		return kobj.With(kobj.New(apiVersion, kind, namespace, name), any(kind+name), "metadata", "uid")
	}
	csv := live(olm+"/v1alpha1", "ClusterServiceVersion", "a", "x.v1")
	csv["status"] = map[string]any{"phase": "Succeeded"}
	sub := live(olm+"/v1alpha1", "Subscription", "a", "x")
	sub["spec"], sub["status"] = map[string]any{"name": "x"}, map[string]any{"installedCSV": "x.v1"}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{csv, sub, live("v1", "Namespace", "", "kube-system")}})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock := (&lockfile.File{}).With(nil, []lockfile.Pin{{Namespace: "a", Package: "x", Bundle: "x.v1", Version: "1.0.0"}})
	uninstall := func(verb string) string {
		role, binding := kobj.New(rbac, "ClusterRole", "", "r"), kobj.New(rbac, "ClusterRoleBinding", "", "r")
		role["rules"] = []any{map[string]any{"apiGroups": kobj.Values(olm), "resources": kobj.Values("clusterserviceversions"), "verbs": kobj.Values(verb)}}
		binding["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "r"}
		binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "a", "name": "sa"}}
		in := plan.Input{Snapshot: seen, Lock: lock, Manager: "m"}
		for _, o := range []kobj.Object{role, binding} {
			in.Rendered = append(in.Rendered, render.Rendered{Object: o, Path: "operators/a/x/" + o.Kind() + ".yaml"})
		}
		in.Report = adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: in.Rendered})
		p, err := plan.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		last := p.Steps[len(p.Steps)-1]
		if last.Name != plan.Uninstall {
			t.Fatalf("the last step is %s: %+v", last.Name, p.Left)
		}
		return last.Manual
	}
	const definition = "clusterserviceversions." + olm
	if text := uninstall("watch"); !strings.Contains(text, definition) {
		t.Errorf("%s is watched, and it says: %s", definition, text)
	}
	if text := uninstall("get"); strings.Contains(text, definition) {
		t.Errorf("%s is not watched, and it says: %s", definition, text)
	}
}

// TestUnreadIsNoPlan makes none of a cluster that would not hand out everything.
func TestUnreadIsNoPlan(t *testing.T) {
	seen, err := snapshot.Read("dump", strings.NewReader(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Snapshot: seen, Report: &adopt.Report{}, Lock: &lockfile.File{}, Manager: "m"}
	if _, err := plan.Make(in); err != nil {
		t.Fatal(err)
	}
	seen.Unread = []snapshot.Unread{{APIVersion: "v1", Kind: "Secret", Reason: "forbidden"}}
	if _, err := plan.Make(in); err == nil || !strings.Contains(err.Error(), "Secret (v1): forbidden") {
		t.Errorf("got %v", err)
	}
}
