package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// TestIncompleteSnapshotIsRejected checks that Make returns an error if a kind could not be read.
func TestIncompleteSnapshotIsRejected(t *testing.T) {
	seen, err := snapshot.Read("dump", strings.NewReader(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}`), snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Snapshot: seen, Report: &adopt.Inspection{}, Lock: &lockfile.File{}, Manager: "m"}
	if _, err := plan.Make(in); err != nil {
		t.Fatal(err)
	}
	seen.Unread = []snapshot.Unread{{APIVersion: "v1", Kind: "Secret", Reason: "forbidden"}}
	if _, err := plan.Make(in); err == nil || !strings.Contains(err.Error(), "Secret (v1): forbidden") {
		t.Errorf("got %v", err)
	}
}

// TestGuardIsKeptByTree checks that applying the tree keeps the annotation that protects a Namespace from
// pruning, if Argo CD applies the Namespace from other files. Otherwise Argo CD would ask the user to confirm
// the deletion of the Namespace, until Argo CD applies the tree.
func TestGuardIsKeptByTree(t *testing.T) {
	const options, tracking = "argocd.argoproj.io/sync-options", "argocd.argoproj.io/tracking-id"
	live := func(apiVersion, kind, namespace, name string) k8s.Object {
		return k8s.With(k8s.New(apiVersion, kind, namespace, name), any(kind+name), "metadata", "uid")
	}
	csv := live("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "a", "x.v1")
	csv["status"] = map[string]any{"phase": "Succeeded"}
	sub := live("operators.coreos.com/v1alpha1", "Subscription", "a", "x")
	sub["spec"], sub["status"] = map[string]any{"name": "x"}, map[string]any{"installedCSV": "x.v1"}
	lock := (&lockfile.File{}).With([]lockfile.Pin{{Namespace: "a", Package: "x", Bundle: "x.v1", Version: "1.0.0"}})
	for _, c := range []struct{ mark, says, want string }{
		{"declared:/Namespace:/a", "Prune=confirm,Delete=confirm", "Prune=false,Delete=confirm"},
		{"", "Prune=confirm,Delete=confirm", ""},
		{"declared:/Namespace:/a", "", ""},
	} {
		namespace := live("v1", "Namespace", "", "a")
		if c.mark != "" {
			namespace = k8s.Annotate(namespace, map[string]string{tracking: c.mark})
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{csv, sub, namespace, live("v1", "Namespace", "", "kube-system")}})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		ours := k8s.New("v1", "Namespace", "", "a")
		if c.says != "" {
			ours = k8s.Annotate(ours, map[string]string{options: c.says})
		}
		in := plan.Input{Snapshot: seen, Lock: lock, Manager: "m", Rendered: []render.Rendered{
			{Object: ours, Path: "namespaces/a.yaml"}, {Object: k8s.New("v1", "ServiceAccount", "a", "x"), Path: "operators/a.x/serviceaccount.yaml"},
		}}
		in.Report = adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: in.Rendered})
		p, err := plan.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range p.Steps {
			for _, a := range s.Actions {
				if a.Do == plan.Apply && a.Object.Kind == "Namespace" {
					found = true
					if a.Set[options] != c.want || len(a.Set) > 1 {
						t.Errorf("the tree has %q, applied by %q: got %v, want %q", c.says, c.mark, a.Set, c.want)
					}
				}
			}
		}
		if !found {
			t.Errorf("the Namespace is not applied: %+v %+v", p.Steps, p.Skipped)
		}
	}
}
