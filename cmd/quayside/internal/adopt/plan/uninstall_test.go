package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// newRemovableOLM returns the objects of a cluster with OLM but without operators. kept contains the objects
// that a plan must not touch: an OperatorCondition of the tree, and objects that do not belong to OLM.
func newRemovableOLM() (live, kept []k8s.Object) {
	bind := func(kind, namespace, name, account, role string) k8s.Object {
		o := k8s.New(rbacV1, kind, namespace, name)
		o["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
		o["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "olm", "name": account}}
		return o
	}
	crd := func(plural, kind string) k8s.Object {
		o := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+olm)
		o["spec"] = map[string]any{"group": olm, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural}, "versions": []any{map[string]any{"name": "v1alpha1", "served": true, "storage": true}}}
		return o
	}
	for _, o := range newOLM() {
		live = append(live, k8s.With(o, any("olm-account"), "spec", "template", "spec", "serviceAccountName"))
	}
	packageserver := k8s.New(olm+"/v1alpha1", "ClusterServiceVersion", "olm", "packageserver")
	packageserver["status"] = map[string]any{"phase": "Succeeded"}
	live = append(live,
		packageserver, k8s.New(olm+"/v1alpha1", "CatalogSource", "olm", "community"), k8s.New(olm+"/v1", "OperatorGroup", "olm", "olm-operators"),
		k8s.New("v1", "ServiceAccount", "olm", "olm-account"), k8s.New(rbacV1, "ClusterRole", "", "olm-role"), bind("ClusterRoleBinding", "", "olm-binding", "olm-account", "olm-role"),
		crd("catalogsources", "CatalogSource"), crd("clusterserviceversions", "ClusterServiceVersion"), crd("subscriptions", "Subscription"),
	)
	kept = []k8s.Object{
		k8s.New("v1", "Namespace", "", "olm"), k8s.New("v1", "ServiceAccount", "olm", "default"), k8s.New("v1", "ServiceAccount", "olm", "other"),
		k8s.With(k8s.New(rbacV1, "ClusterRole", "", "view"), any("rbac-defaults"), "metadata", "labels", "kubernetes.io/bootstrapping"),
		k8s.New(rbacV1, "ClusterRole", "", "other-role"), bind("ClusterRoleBinding", "", "other-binding", "other", "other-role"),
		crd("operatorconditions", "OperatorCondition"), k8s.New(olm+"/v2", "OperatorCondition", "a", "x"),
	}
	live = append(live, bind("RoleBinding", "a", "olm-view", "olm-account", "view"))
	return live, kept
}

// planUninstall returns the plan for uninstalling OLM. The lock pins the operator a/x. rendered is its tree.
func planUninstall(t *testing.T, live []k8s.Object, crds bool, rendered ...k8s.Object) (*plan.Plan, error) {
	t.Helper()
	items := []any{}
	for _, o := range live {
		items = append(items, map[string]any(o))
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{ManagedFields: true, Keep: plan.IsReadForUninstall})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Snapshot: seen, Manager: "m", Lock: (&lockfile.File{}).With([]lockfile.Pin{{Namespace: "a", Package: "x", Bundle: "x.v1", Version: "1.0.0"}})}
	for _, o := range rendered {
		in.Rendered = append(in.Rendered, render.Rendered{Object: o, Path: "operators/a.x/" + o.Kind() + ".yaml"})
	}
	return plan.MakeUninstall(in, crds)
}

// TestUninstallKeepsWatchedCRDs checks that a CRD of OLM is kept if an operator of the tree watches objects of
// its kind.
func TestUninstallKeepsWatchedCRDs(t *testing.T) {
	removed, kept := newRemovableOLM()
	live := withUIDs(slices.Concat(removed, kept))
	for verb, want := range map[string]bool{"watch": true, "get": false} {
		role, binding := k8s.New(rbacV1, "ClusterRole", "", "r"), k8s.New(rbacV1, "ClusterRoleBinding", "", "r")
		role["rules"] = []any{map[string]any{"apiGroups": k8s.Values(olm), "resources": k8s.Values("catalogsources"), "verbs": k8s.Values(verb)}}
		binding["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "r"}
		binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "a", "name": "sa"}}
		p, err := planUninstall(t, live, true, role, binding)
		if err != nil {
			t.Fatal(err)
		}
		const stays = "catalogsources." + olm + " stays: a/x watches its objects."
		if text := p.Steps[len(p.Steps)-1].Manual; strings.Contains(text, stays) != want {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// TestUninstall deletes OLM from a cluster, with and without its CRDs. Nothing else may be deleted.
func TestUninstall(t *testing.T) {
	for _, crds := range []bool{false, true} {
		removed, kept := newRemovableOLM()
		live := withUIDs(slices.Concat(removed, kept))
		p, err := planUninstall(t, live, crds)
		if err != nil {
			t.Fatal(err)
		}
		back, err := plan.Parse("plan.yaml", plan.Format(p))
		if err != nil || back.CheckDerived(p) != nil || p.CheckLimits() != nil || p.DeletesCRDs() != crds {
			t.Fatalf("the parsed plan: %v, limits: %v", err, p.CheckLimits())
		}
		c := runtest.New(live...)
		c.OLM = true
		c.Settle()
		journal, err := run.OpenJournal(&runtest.Files{}, p)
		if err != nil {
			t.Fatal(err)
		}
		in := run.Input{Plan: p, Cluster: c, Journal: journal, Clock: &runtest.Clock{Cluster: c}, Prompter: yes{}, SyncDelay: 15 * time.Second, MaxDowntime: time.Minute}
		if _, err := run.Run(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		c.AdvanceTime(time.Hour)
		for _, o := range removed {
			if there, want := c.Object(k8s.RefTo(o)) != nil, k8s.IsCRD(o) && !crds; there != want {
				t.Errorf("crds %v: %s exists: %v, want %v", crds, k8s.RefTo(o), there, want)
			}
		}
		for _, o := range kept {
			if c.Object(k8s.RefTo(o)) == nil {
				t.Errorf("crds %v: %s was deleted", crds, k8s.RefTo(o))
			}
		}
		manual := p.Steps[len(p.Steps)-1].Manual
		if said := strings.Contains(manual, "operatorconditions.operators.coreos.com stays: OperatorCondition.operators.coreos.com a/x exists."); said != crds {
			t.Errorf("crds %v: %s", crds, manual)
		}
	}
}

// TestUninstallIsRefused checks that neither the plan nor the run deletes OLM as long as anything needs it.
func TestUninstallIsRefused(t *testing.T) {
	removed, kept := newRemovableOLM()
	live := slices.Concat(removed, kept)
	var needed *plan.NeededError
	_, err := planUninstall(t, withUIDs(append(slices.Clone(live), newInstallation("a")...)), false)
	if want := []string{"ClusterServiceVersion a/x.v1", "Subscription a/x"}; !errors.As(err, &needed) || !slices.Equal(needed.By, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	p, err := planUninstall(t, withUIDs(live), true)
	if err != nil {
		t.Fatal(err)
	}
	c := runtest.New(withUIDs(append(live, newInstallation("a")[:2]...))...)
	c.Settle()
	journal, err := run.OpenJournal(&runtest.Files{}, p)
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Run(context.Background(), run.Input{Plan: p, Cluster: c, Journal: journal, Clock: &runtest.Clock{Cluster: c}, Prompter: yes{}})
	var step *run.StepError
	if !errors.As(err, &step) || step.Check != plan.IsUnused || len(step.Findings) != 2 {
		t.Errorf("got %v, %+v", err, res)
	}
	if c.Object(k8s.Ref{APIVersion: olm + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "olm", Name: "packageserver"}) == nil {
		t.Error("packageserver was deleted")
	}
}

// TestUninstallIsLimited checks that a forged plan cannot delete other objects.
func TestUninstallIsLimited(t *testing.T) {
	removed, kept := newRemovableOLM()
	p, err := planUninstall(t, withUIDs(slices.Concat(removed, kept)), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []k8s.Ref{
		{APIVersion: "v1", Kind: "Namespace", Name: "olm"},
		{APIVersion: "v1", Kind: "Service", Namespace: "a", Name: "x"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "olm", Name: "x"},
		{APIVersion: olm + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "a", Name: "x.v1"},
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "xs.example.com"},
		{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: "v1.example.com"},
	} {
		forged := *p
		forged.Steps = []plan.Step{{Number: 1, Name: plan.Uninstall, Actions: []plan.Action{{Do: plan.Delete, Object: ref, UID: "u"}}}}
		if err := forged.CheckLimits(); err == nil {
			t.Errorf("a plan may delete %s", ref)
		}
	}
}
