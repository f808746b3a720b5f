package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReach checks that a permission to run pods, to run commands in them, or to read Secrets gets the severity
// of the permissions that the accounts of the namespace have.
func TestReach(t *testing.T) {
	in := func(namespace string) string {
		return strings.Replace(local, "name: demo, namespace: ops}\n", "name: demo, namespace: "+namespace+"}\n", 1)
	}
	named := func(name, namespace, role string) string {
		return doc("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+name+", namespace: "+namespace+"}",
			strings.NewReplacer("metadata: {name: demo", "metadata: {name: "+name, "ClusterRole, name: demo", "ClusterRole, name: "+role, "ServiceAccount, name: demo, namespace: ops", "ServiceAccount, name: "+name+", namespace: "+namespace).Replace(binding))
	}
	own := func(name string, rules ...string) string {
		return strings.Replace(clusterRole(rules...), "name: demo", "name: "+name, 1)
	}
	engine := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: gitops}"
	pods, exec, secrets, jobs := rule("''", "pods", "create"), rule("''", "pods/exec", "create"), rule("''", "secrets", "get"), rule("batch", "jobs", "patch")
	for _, c := range []struct{ name, rule, by, others, want string }{
		{"alone", pods, in("ops"), account, "low rbac.gained pods: - → create"},
		{"beside a weaker account", pods, in("ops"), doc(named("weak", "ops", "weak"), own("weak", rule("''", "configmaps", "get"))), "low rbac.gained pods: - → create"},
		{"beside an account with medium permissions", pods, in("ops"), doc(named("weak", "ops", "weak"), own("weak", rule("''", "configmaps", "update"))), "medium rbac.workload-write pods: - → create"},
		{"beside cluster-admin", pods, in("ops"), named("strong", "ops", "cluster-admin"), "high rbac.workload-write pods: - → create"},
		{"beside cluster-admin of another namespace", pods, in("ops"), named("strong", "other", "cluster-admin"), "low rbac.gained pods: - → create"},
		{"in another namespace", jobs, in("other"), named("strong", "other", "cluster-admin"), "high rbac.workload-write jobs.batch: - → patch"},
		{"commands", exec, in("other"), named("strong", "other", "cluster-admin"), "high rbac.pods-exec pods/exec: - → create"},
		{"commands beside no account", exec, in("other"), account, "medium rbac.pods-exec pods/exec: - → create"},
		{"Secrets", secrets, in("other"), named("strong", "other", "cluster-admin"), "high rbac.secrets secrets: - → get"},
		{"any workload", rule("'*'", "'*'", "patch"), in("other"), named("strong", "other", "cluster-admin"), "high rbac.workload-write *.*: - → patch"},
		{"through two namespaces", pods, in("other"), doc(named("middle", "other", "middle"), strings.NewReplacer("name: demo, namespace: ops}\nroleRef", "name: middle, namespace: third}\nroleRef", "ClusterRole, name: demo", "ClusterRole, name: middle", "ServiceAccount, name: demo, namespace: ops", "ServiceAccount, name: middle, namespace: other").Replace(local),
			own("middle", jobs), named("strong", "third", "cluster-admin")), "high rbac.workload-write pods: - → create"},
		{"kube-system", pods, in("kube-system"), account, "high rbac.workload-write pods: - → create"},
		{"Secrets of kube-system", secrets, in("kube-system"), account, "high rbac.secrets secrets: - → get"},
		{"commands in a namespace of OpenShift", exec, in("openshift-etcd"), account, "high rbac.pods-exec pods/exec: - → create"},
		{"the usual namespace of a GitOps tool", jobs, in("flux-system"), account, "high rbac.workload-write jobs.batch: - → patch"},
		{"the namespace of a GitOps tool", pods, in("gitops"), account, "high rbac.workload-write pods: - → create"},
		{"bindings in the namespace of a GitOps tool", rule("rbac.authorization.k8s.io", "rolebindings", "create"), in("gitops"), account, "high rbac.rbac-write rolebindings.rbac.authorization.k8s.io: - → create"},
		{"workload of another tool", rule("ray.io", "rayjobs", "create"), in("kube-system"), account, "high rbac.workload-write rayjobs.ray.io: - → create"},
		{"workload of another tool in all namespaces", rule("ray.io", "rayjobs", "create"), binding, account, "high rbac.workload-write rayjobs.ray.io: - → create"},
	} {
		base := parsed(t, "", "apps/demo.yaml", engine)
		before, after := State{Objects: base}, State{Objects: base}
		before.Objects = append(before.Objects[:1:1], parsed(t, "ops/demo", "rendered/demo.yaml", doc(clusterRole(), c.by, account, c.others))...)
		after.Objects = append(after.Objects[:1:1], parsed(t, "ops/demo", "rendered/demo.yaml", doc(clusterRole(c.rule), c.by, account, c.others))...)
		got := lines(compare(t, before, after))
		if d := cmp.Diff([]string{c.want}, got); d != "" && (len(got) == 0 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: -want +got\n%s", c.name, d)
		}
	}
}
