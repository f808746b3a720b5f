package adopt_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// withOwner returns o with an ownerReference to owner.
func withOwner(o, owner k8s.Object) k8s.Object {
	return k8s.With(o, any([]any{map[string]any{
		"apiVersion": owner.APIVersion(), "kind": owner.Kind(), "name": owner.Name(), "uid": k8s.Text(owner, "metadata", "uid"),
	}}), "metadata", "ownerReferences")
}

// TestExistingClusters inspects clusters with objects that a fresh installation does not have. These are
// objects of operators, of users, of earlier bundle versions, and of other versions of OLM.
func TestExistingClusters(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io/v1"
	csv, sub := newInstalled("ns", "Succeeded")[0], newInstalled("ns", "Succeeded")[1]
	listed := map[string]string{olm + "/x.ns": ""}
	managed := map[string]string{"olm.managed": "true"}
	of := func(version, namespace string) map[string]string {
		return map[string]string{"olm.owner": version, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace}
	}
	with := func(o k8s.Object, v any, path ...string) k8s.Object { return k8s.With(o, v, path...) }
	reader := func(role string) k8s.Object {
		return with(newObject(rbac, "RoleBinding", "kube-system", "d-service-auth-reader", nil), map[string]any{"name": role}, "roleRef")
	}
	second := newObject(olm+"/v1alpha1", "Subscription", "ns", "again", nil)
	second["spec"] = map[string]any{"name": "x"}
	waiting := withOwner(newObject(olm+"/v1alpha1", "InstallPlan", "ns", "install-2", nil), sub)
	waiting["spec"], waiting["status"] = map[string]any{"approval": "Manual", "clusterServiceVersionNames": []any{"x.v2"}}, map[string]any{"phase": "RequiresApproval"}
	done := withOwner(newObject(olm+"/v1alpha1", "InstallPlan", "ns", "install-0", nil), sub)
	done["status"] = map[string]any{"phase": "Complete", "plan": []any{map[string]any{"resolving": "x.v0", "resource": map[string]any{"group": "rbac.authorization.k8s.io", "kind": "Role", "name": "shipped"}}}}
	og := map[string]string{"olm.owner": "og", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": "ns"}

	for name, c := range map[string]struct {
		more []k8s.Object
		want string // the state, the reasons, and the outcome of each additional object, in order
	}{
		"created by the operator, with an owner":           {[]k8s.Object{withOwner(newObject("v1", "ConfigMap", "ns", "own", nil), csv)}, "Adoptable; olm never"},
		"created by the operator, with OLM's label":        {[]k8s.Object{newObject("v1", "Secret", "ns", "own", listed)}, "Adoptable; olm never"},
		"a workload of the operator's own":                 {[]k8s.Object{withOwner(newObject("apps/v1", "StatefulSet", "ns", "own", listed), csv)}, "Adoptable; olm never"},
		"created by users":                                 {[]k8s.Object{newObject("networking.k8s.io/v1", "NetworkPolicy", "ns", "n", nil), newObject("v1", "ResourceQuota", "ns", "q", nil), newObject("monitoring.coreos.com/v1", "ServiceMonitor", "ns", "m", nil)}, "Adoptable; - - -"},
		"shipped by a version before":                      {[]k8s.Object{done, newObject(rbac, "Role", "ns", "shipped", managed)}, "Adoptable; olm clean-up olm never"},
		"foreign, with a name of a previous version":       {[]k8s.Object{done, newObject(rbac, "Role", "ns", "shipped", nil)}, "Adoptable; olm clean-up -"},
		"rights of a version before":                       {[]k8s.Object{newObject(rbac, "ClusterRole", "", "x.v0-8hT3", of("x.v0", "ns")), newObject(rbac, "RoleBinding", "ns", "x.v0-sa-8hT3", of("x.v0", "ns"))}, "Adoptable; olm clean-up olm clean-up"},
		"a webhook of a version before":                    {[]k8s.Object{newObject("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "v-x8k2p", of("x.v0", "ns"))}, "Adoptable; olm clean-up"},
		"permissions of a removed operator":                {[]k8s.Object{newObject(rbac, "ClusterRole", "", "gone.v1-8hT3", of("gone.v1", "ns"))}, "Adoptable; -"},
		"names with random ends":                           {[]k8s.Object{newObject(rbac, "Role", "ns", "x.v1-sa-7f9xk", of("x.v1", "ns")), newObject(rbac, "ClusterRole", "", "og-admin", og)}, "Adoptable; olm clean-up olm clean-up"},
		"objects for webhooks, without OLM's newer labels": {[]k8s.Object{reader("extension-apiserver-authentication-reader"), withOwner(newObject(rbac, "Role", "ns", "d-service-cert", nil), csv), withOwner(newObject("v1", "Secret", "ns", "d-service-cert", nil), csv)}, "Adoptable; olm clean-up olm clean-up olm never"},
		"foreign, with names that OLM generates":           {[]k8s.Object{reader("view"), newObject(rbac, "Role", "ns", "d-service-cert", nil), newObject("v1", "Secret", "ns", "d-service-cert", nil)}, "Adoptable; - - -"},
		"a plan that waits for approval":                   {[]k8s.Object{waiting}, "Adoptable; olm clean-up"},
		"subscribed to twice":                              {[]k8s.Object{second}, "NeedsDecision several-subscriptions; olm detach"},
		"OLM's labels on objects that OLM does not create": {[]k8s.Object{newObject("apps/v1", "StatefulSet", "ns", "odd", of("x.v1", "ns"))}, "NeedsDecision unknown-object; unknown"},
	} {
		live := newDeployment("ns", "i", "x.v1")
		seen := newSnapshot(t, append([]k8s.Object{csv, sub, live}, c.more...)...)
		rep := adopt.Inspect(adopt.Input{
			Snapshot: seen, Lock: lockfile.New([]lockfile.Pin{newPin("ns")}),
			Rendered:            []render.Rendered{{Object: live, Path: "operators/ns.x/d.yaml"}},
			GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return []k8s.Object{live}, nil },
		})
		if len(rep.Operators) != 1 {
			t.Errorf("%s: %d operators", name, len(rep.Operators))
			continue
		}
		op := rep.Operators[0]
		got := string(op.State)
		for _, r := range op.Reasons {
			got += " " + r.Code
		}
		got += ";"
		for _, o := range c.more {
			class := " -"
			for _, found := range append(op.Objects, rep.Shared...) {
				if found.Key == o.Key() {
					class = strings.TrimRight(" "+string(found.Class)+" "+string(found.RemovedAt), " ")
				}
			}
			got += class
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s\n%v", name, d, op.Reasons)
		}
	}
}

// TestWithoutSubscription inspects an operator whose Subscription is missing. Import does not pin such an operator.
// Without a pin, it cannot be adopted, and the reported reason must name the fix. With a pin, it can be adopted.
func TestWithoutSubscription(t *testing.T) {
	live := newDeployment("ns", "i", "x.v1")
	seen := newSnapshot(t, newInstalled("ns", "Succeeded")[0], live)
	inspect := func(pins ...lockfile.Pin) adopt.Operator {
		return adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lockfile.New(pins), Rendered: []render.Rendered{{Object: live, Path: "operators/ns.x/d.yaml"}}}).Operators[0]
	}
	if op := inspect(); op.State != adopt.NeedsDecision || !strings.Contains(op.Reasons[0].Message, "spec.startingCSV x.v1") {
		t.Errorf("%s: %v", op.State, op.Reasons)
	}
	if op := inspect(newPin("ns")); op.State != adopt.Adoptable {
		t.Errorf("%s: %v", op.State, op.Reasons)
	}
}
