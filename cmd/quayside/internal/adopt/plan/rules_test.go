package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

func ref(text string) k8s.Ref {
	var r k8s.Ref
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}

// small returns a plan with an action of each kind.
func small() (*plan.Plan, []k8s.Object) {
	role := k8s.New("rbac.authorization.k8s.io/v1", "Role", "a", "r")
	binding := k8s.New("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "b")
	binding["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "view"}
	p := &plan.Plan{Manager: "m", Steps: []plan.Step{
		{Number: 1, Name: plan.Guard, Namespace: "a", Title: "one\nrm -rf /", Actions: []plan.Action{
			{Do: plan.Save, Object: ref("v1 Secret a/s"), UID: "u1"},
			{Do: plan.Annotate, Object: ref("v1 Namespace a"), UID: "u2", Set: map[string]string{"k": "it's"}, Unset: []string{"l"}},
			{Do: plan.Apply, Object: k8s.RefTo(role)},
			{Do: plan.Apply, Object: k8s.RefTo(binding), UID: "u3", Force: true},
		}},
		{Number: 2, Name: plan.Stop, Title: "two", Manual: "do it", Before: []plan.Check{{Check: plan.IsReady, Objects: []k8s.Ref{ref("apps/v1 Deployment olm/o")}}}},
		{Number: 3, Name: plan.Detach, Title: "three", Actions: []plan.Action{
			{Do: plan.Scale, Object: ref("apps/v1 Deployment olm/o"), UID: "u4", From: 2},
			{Do: plan.Orphan, Object: ref("operators.coreos.com/v1alpha1 Subscription a/s"), UID: "u5"},
			{Do: plan.Unfinalize, Object: ref("operators.coreos.com/v1alpha1 ClusterServiceVersion a/c"), UID: "u6", Finalizer: "f", Unset: []string{"x/y"}},
			{Do: plan.TransferFields, Object: ref("v1 Service a/s"), UID: "u7"},
			{Do: plan.Unlabel, Object: ref("v1 Service a/s"), UID: "u7", Unset: []string{"l"}},
			{Do: plan.Delete, Object: ref("operators.coreos.com/v1 Operator o"), UID: "u8"},
		}},
	}}
	return p, []k8s.Object{role, binding}
}

// TestRules checks that the permissions are exactly those that each action and its reversal need.
func TestRules(t *testing.T) {
	var got []string
	p, rendered := small()
	for _, r := range plan.Rules(p, rendered, nil) {
		got = append(got, strings.Join([]string{r.Namespace, r.Group, r.Resource, strings.Join(r.Names, ","), strings.Join(r.Verbs, ",")}, "|"))
	}
	want := []string{
		"||namespaces|a|get,patch",
		"||namespaces|kube-system|get",
		"|authorization.k8s.io|subjectaccessreviews||create",
		"|operators.coreos.com|operators|o|delete,get",
		"|rbac.authorization.k8s.io|clusterrolebindings||list",
		"|rbac.authorization.k8s.io|clusterroles||list",
		"|rbac.authorization.k8s.io|rolebindings||list",
		"|rbac.authorization.k8s.io|roles||list",
		"a||pods||list",
		"a||secrets|s|get",
		"a||services|s|get,patch",
		"a|apps|replicasets||list",
		"a|operators.coreos.com|clusterserviceversions|c|get,patch",
		"a|operators.coreos.com|installplans||list",
		"a|operators.coreos.com|operatorgroups||list",
		"a|operators.coreos.com|subscriptions||create",
		"a|operators.coreos.com|subscriptions|s|delete,get",
		"a|rbac.authorization.k8s.io|clusterroles|view|bind",
		"a|rbac.authorization.k8s.io|rolebindings|b|get,patch",
		"a|rbac.authorization.k8s.io|roles||create",
		"a|rbac.authorization.k8s.io|roles|r|delete,escalate,get,patch",
		"olm||pods||list",
		"olm|apps|deployments|o|get,patch",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	roles := plan.Roles("x", plan.Rules(p, rendered, nil))
	if len(roles) != 3 || roles[0].Kind() != "ClusterRole" || roles[1].Namespace() != "a" || roles[2].Namespace() != "olm" || roles[2].Name() != "x" {
		t.Errorf("got %v", roles)
	}
}

// TestRulesOfDerivation checks the rules for a plan that has not begun. Compared with a started plan, the only
// additional verb may be list, and for Secrets and ConfigMaps only in the namespaces of the plan's operators.
func TestRulesOfDerivation(t *testing.T) {
	p, rendered := small()
	p.Operators = []plan.Operator{{Namespace: "a", Package: "x"}}
	before := map[string]bool{}
	flat := func(r plan.PermissionRule) (out []string) {
		for _, verb := range r.Verbs {
			out = append(out, strings.Join([]string{r.Namespace, r.Group, r.Resource, strings.Join(r.Names, ","), verb}, "|"))
		}
		return out
	}
	for _, r := range plan.Rules(p, rendered, nil) {
		for _, line := range flat(r) {
			before[line] = true
		}
	}
	confidential, added := []string{}, 0
	for _, r := range plan.Rules(p, rendered, &snapshot.Snapshot{}) {
		for _, line := range flat(r) {
			if before[line] {
				delete(before, line)
				continue
			}
			if added++; !strings.HasSuffix(line, "||list") {
				t.Errorf("a verb other than list: %s", line)
			}
			if strings.Contains(line, "|secrets|") || strings.Contains(line, "|configmaps|") {
				confidential = append(confidential, line)
			}
		}
	}
	if d := cmp.Diff([]string{"a||configmaps||list", "a||secrets||list"}, confidential); d != "" || len(before) > 0 || added < 20 {
		t.Errorf("%d added, missing %v, confidential (-want +got):\n%s", added, before, d)
	}
}

// TestKubectlKeepsGuards checks that in the object of an apply command, guard annotations replace the
// annotations of the tree.
func TestKubectlKeepsGuards(t *testing.T) {
	p, rendered := small()
	o := k8s.Annotate(rendered[0], map[string]string{"k": "tree", "l": "tree"})
	got := p.Kubectl(plan.Action{Do: plan.Apply, Object: k8s.RefTo(o), Set: map[string]string{"k": "guard"}}, o)
	if !strings.Contains(got, "  annotations:\n    k: guard\n    l: tree\n") {
		t.Error(got)
	}
	if k8s.Text(o, "metadata", "annotations", "k") != "tree" {
		t.Error("the tree's own object was changed")
	}
}

// TestKubectl checks the command of each action. The shell must not interpret any part of an object.
func TestKubectl(t *testing.T) {
	p, rendered := small()
	want := []string{
		`kubectl get secret s --namespace a --show-managed-fields --output jsonpath='{.metadata}' >v1_Secret_a_s.yaml`,
		`kubectl patch namespace a --type=merge --patch '{"metadata":{"annotations":{"k":"it'\''s","l":null},"uid":"u2"}}'`,
		"kubectl apply --server-side --field-manager=m --filename - <<'END'\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: r\n  namespace: a\nEND",
		`kubectl apply --server-side --field-manager=m --force-conflicts --filename -`,
		`kubectl scale deployment.v1.apps o --namespace olm --current-replicas=2 --replicas=0`,
		`kubectl delete subscription.v1alpha1.operators.coreos.com s --namespace a --ignore-not-found --cascade=orphan`,
		`kubectl patch clusterserviceversion.v1alpha1.operators.coreos.com c --namespace a --type=json --patch '[{"op":"test","path":"/metadata/uid","value":"u6"},{"op":"test","path":"/metadata/finalizers/0","value":"f"},{"op":"remove","path":"/metadata/finalizers/0"},{"op":"remove","path":"/metadata/annotations/x~1y"}]'`,
		`# v1 Service a/s: kubectl has no command for taking ownership of the previous manager's fields; without this step, the labels of the previous manager stay`,
		`kubectl patch service s --namespace a --type=merge --patch '{"metadata":{"labels":{"l":null},"uid":"u7"}}'`,
		`kubectl delete operator.v1.operators.coreos.com o --ignore-not-found`,
	}
	var got []string
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			var o k8s.Object
			if s.Number == 1 && i == 2 {
				o = rendered[0]
			}
			got = append(got, p.Kubectl(a, o))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if script := p.Script(nil); strings.Contains(script, "\nrm") || !strings.Contains(script, "# By hand: do it\n") || !strings.Contains(script, "# Before: the Deployments' pods are ready: apps/v1 Deployment olm/o\n") {
		t.Error(script)
	}
}
