package adopt_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// ownedBy returns an object with an ownerReference to another one.
func ownedBy(o, owner kobj.Object) kobj.Object {
	return kobj.With(o, any([]any{map[string]any{
		"apiVersion": owner.APIVersion(), "kind": owner.Kind(), "name": owner.Name(), "uid": kobj.Text(owner, "metadata", "uid"),
	}}), "metadata", "ownerReferences")
}

// TestClustersAsTheyAre has what clusters hold beside what OLM makes today: what
// operators and people made, what versions before left, and what OLM itself made in
// other versions.
func TestClustersAsTheyAre(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io/v1"
	csv, sub := installed("ns", "Succeeded")[0], installed("ns", "Succeeded")[1]
	listed := map[string]string{olm + "/x.ns": ""}
	managed := map[string]string{"olm.managed": "true"}
	of := func(version, namespace string) map[string]string {
		return map[string]string{"olm.owner": version, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace}
	}
	with := func(o kobj.Object, v any, path ...string) kobj.Object { return kobj.With(o, v, path...) }
	reader := func(role string) kobj.Object {
		return with(object(rbac, "RoleBinding", "kube-system", "d-service-auth-reader", nil), map[string]any{"name": role}, "roleRef")
	}
	second := object(olm+"/v1alpha1", "Subscription", "ns", "again", nil)
	second["spec"] = map[string]any{"name": "x"}
	waiting := ownedBy(object(olm+"/v1alpha1", "InstallPlan", "ns", "install-2", nil), sub)
	waiting["spec"], waiting["status"] = map[string]any{"approval": "Manual", "clusterServiceVersionNames": []any{"x.v2"}}, map[string]any{"phase": "RequiresApproval"}
	done := ownedBy(object(olm+"/v1alpha1", "InstallPlan", "ns", "install-0", nil), sub)
	done["status"] = map[string]any{"phase": "Complete", "plan": []any{map[string]any{"resolving": "x.v0", "resource": map[string]any{"group": "rbac.authorization.k8s.io", "kind": "Role", "name": "shipped"}}}}
	og := map[string]string{"olm.owner": "og", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": "ns"}

	for name, c := range map[string]struct {
		more []kobj.Object
		want string // the state, the reasons, and what becomes of each object of more, in their order
	}{
		"made by the operator, for as long as it is installed":  {[]kobj.Object{ownedBy(object("v1", "ConfigMap", "ns", "own", nil), csv)}, "Adoptable; olm never"},
		"made by the operator, listed by OLM":                   {[]kobj.Object{object("v1", "Secret", "ns", "own", listed)}, "Adoptable; olm never"},
		"a workload of the operator's own":                      {[]kobj.Object{ownedBy(object("apps/v1", "StatefulSet", "ns", "own", listed), csv)}, "Adoptable; olm never"},
		"made by people":                                        {[]kobj.Object{object("networking.k8s.io/v1", "NetworkPolicy", "ns", "n", nil), object("v1", "ResourceQuota", "ns", "q", nil), object("monitoring.coreos.com/v1", "ServiceMonitor", "ns", "m", nil)}, "Adoptable; - - -"},
		"shipped by a version before":                           {[]kobj.Object{done, object(rbac, "Role", "ns", "shipped", managed)}, "Adoptable; olm clean-up olm never"},
		"by others, under a name that a version before shipped": {[]kobj.Object{done, object(rbac, "Role", "ns", "shipped", nil)}, "Adoptable; olm clean-up -"},
		"rights of a version before":                            {[]kobj.Object{object(rbac, "ClusterRole", "", "x.v0-8hT3", of("x.v0", "ns")), object(rbac, "RoleBinding", "ns", "x.v0-sa-8hT3", of("x.v0", "ns"))}, "Adoptable; olm clean-up olm clean-up"},
		"a webhook of a version before":                         {[]kobj.Object{object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "v-x8k2p", of("x.v0", "ns"))}, "Adoptable; olm clean-up"},
		"rights of an operator that is gone":                    {[]kobj.Object{object(rbac, "ClusterRole", "", "gone.v1-8hT3", of("gone.v1", "ns"))}, "Adoptable; -"},
		"names with random ends":                                {[]kobj.Object{object(rbac, "Role", "ns", "x.v1-sa-7f9xk", of("x.v1", "ns")), object(rbac, "ClusterRole", "", "og-admin", og)}, "Adoptable; olm clean-up olm clean-up"},
		"what serves webhooks, without OLM's later marks":       {[]kobj.Object{reader("extension-apiserver-authentication-reader"), ownedBy(object(rbac, "Role", "ns", "d-service-cert", nil), csv), ownedBy(object("v1", "Secret", "ns", "d-service-cert", nil), csv)}, "Adoptable; olm clean-up olm clean-up olm never"},
		"names that OLM would take, by others":                  {[]kobj.Object{reader("view"), object(rbac, "Role", "ns", "d-service-cert", nil), object("v1", "Secret", "ns", "d-service-cert", nil)}, "Adoptable; - - -"},
		"a plan that waits for approval":                        {[]kobj.Object{waiting}, "Adoptable; olm clean-up"},
		"subscribed to twice":                                   {[]kobj.Object{second}, "Blocked several-subscriptions; olm detach"},
		"OLM's marks on what OLM does not make":                 {[]kobj.Object{object("apps/v1", "StatefulSet", "ns", "odd", of("x.v1", "ns"))}, "Blocked unknown-object; unknown"},
	} {
		live := deployment("ns", "i", "x.v1")
		seen := cluster(t, append([]kobj.Object{csv, sub, live}, c.more...)...)
		rep := adopt.Inspect(adopt.Input{
			Snapshot: seen, Lock: lockfile.New([]lockfile.Pin{pin("ns")}),
			Rendered: []render.Rendered{{Object: live, Path: "operators/ns.x/d.yaml"}},
			Made:     func(lockfile.Pin) ([]kobj.Object, error) { return []kobj.Object{live}, nil },
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
				if found.Key() == o.Key() {
					class = strings.TrimRight(" "+string(found.Class)+" "+string(found.Goes), " ")
				}
			}
			got += class
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s\n%v", name, d, op.Reasons)
		}
	}
}

// TestWithoutSubscription has what OLM installed, and nobody subscribes to any more:
// import does not pin it, so that says what to do; pinned all the same, it goes.
func TestWithoutSubscription(t *testing.T) {
	live := deployment("ns", "i", "x.v1")
	seen := cluster(t, installed("ns", "Succeeded")[0], live)
	inspect := func(pins ...lockfile.Pin) adopt.Operator {
		return adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lockfile.New(pins), Rendered: []render.Rendered{{Object: live, Path: "operators/ns.x/d.yaml"}}}).Operators[0]
	}
	if op := inspect(); op.State != adopt.Blocked || !strings.Contains(op.Reasons[0].Message, "spec.startingCSV x.v1") {
		t.Errorf("%s: %v", op.State, op.Reasons)
	}
	if op := inspect(pin("ns")); op.State != adopt.Adoptable {
		t.Errorf("%s: %v", op.State, op.Reasons)
	}
}
