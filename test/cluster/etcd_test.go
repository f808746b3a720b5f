package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// introduction contains the objects with which OLM's introduction installs etcd.
const introduction = `
apiVersion: v1
kind: Namespace
metadata: {name: my-etcd}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: operatorgroup, namespace: my-etcd}
spec:
  targetNamespaces: [my-etcd]
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: etcd, namespace: my-etcd}
spec:
  channel: singlenamespace-alpha
  name: etcd
  source: operatorhubio-catalog
  sourceNamespace: olm
  startingCSV: etcdoperator.v0.9.2
`

// example is the custom resource that the introduction creates: a cluster of etcd.
const example = `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: example, namespace: my-etcd}
spec: {size: 3, version: 3.2.13}
`

// TestEtcd follows OLM's introduction without OLM: with the etcd operator of the project's example, and with
// the real etcd operator.
func TestEtcd(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	cluster := harness.Start(t, harness.Options{})
	program := build(t)
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("example", func(t *testing.T) {
		walk(t, cluster, program, "bundles:"+filepath.Join(root, "..", "..", "examples", "quickstart", "catalog-src", "etcd"))
	})
	t.Run("real", func(t *testing.T) {
		corpus := os.Getenv("QUAYSIDE_CORPUS")
		if corpus == "" {
			t.Skip("QUAYSIDE_CORPUS is not set: no real etcd operator to install")
		}
		walk(t, cluster, program, "package-manifests:"+filepath.Join(corpus, "package-manifests", "etcd"))
	})
}

// etcd is the test of one installation.
type etcd struct {
	quayside
	cluster *harness.Cluster
	applier *harness.Applier
}

func walk(t *testing.T, cluster *harness.Cluster, program, catalog string) {
	w := etcd{cluster: cluster, applier: applier(t, cluster), quayside: newWorkspace(t, program, map[string]string{
		"quayside.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: operatorhubio-catalog, namespace: olm, source: %q}]
  kubernetesVersion: "1.36"
`, catalog),
		"subscriptions/etcd.yaml": introduction,
	})}
	namespace := only(objects(t, introduction), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
	w.must(t, "resolve", "--offline")
	rendered := append(namespace, w.rendered(t)...)
	t.Cleanup(func() { w.remove(t, rendered) })

	w.checkStatus(t, 1, "my-etcd/etcd\t0.9.2\t-\tMissing\t-\tnone of its objects exists in the cluster")
	w.applyObjects(t, rendered)
	w.must(t, w.status("--wait", "--timeout", "30s")...)
	w.applyObjects(t, objects(t, example))
	w.checkStatus(t, 0,
		"my-etcd/etcd\t0.9.2\t0.9.2\tReady\t-\t",
		"etcd-operator\tmy-etcd\tDeployment\tCurrent\t",
		"EtcdCluster\t1\t\t\t",
		"EtcdCluster\t\texample\tmy-etcd\tCurrent\t",
	)
	w.checkRepair(t, rendered)
	w.checkNotUpgradeable(t, rendered)
	w.checkNoPermissions(t)
}

func (w etcd) status(args ...string) []string {
	return append([]string{"status", "--offline", "--kubeconfig", w.cluster.Kubeconfig}, args...)
}

// checkStatus runs quayside status. The command must exit with this code and print these lines.
func (w etcd) checkStatus(t *testing.T, code int, lines ...string) {
	t.Helper()
	stdout, stderr, got := w.run(t, w.status()...)
	if got != code {
		t.Errorf("quayside status: exit code %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	for _, line := range lines {
		if !strings.Contains("\n"+stdout, "\n"+line) {
			t.Errorf("quayside status does not print %q:\n%s", line, stdout)
		}
	}
}

func (w etcd) applyObjects(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	done, err := w.applier.Apply(within(t, time.Minute), objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range done {
		if len(a.Warnings) > 0 {
			t.Errorf("%s: %q", harness.Name(a.Object), a.Warnings)
		}
	}
}

func (w etcd) remove(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, o := range objects {
		if err := w.applier.Delete(ctx, o); err != nil {
			t.Error(err)
		}
	}
	if err := w.applier.AwaitGone(ctx, objects); err != nil {
		t.Error(err)
	}
}

// checkRepair changes an image and then deletes the service account, and repairs both.
func (w etcd) checkRepair(t *testing.T, rendered []*unstructured.Unstructured) {
	other := only(rendered, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })[0].DeepCopy()
	containers, _, _ := unstructured.NestedSlice(other.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = "example.com/other:latest"
	if err := unstructured.SetNestedSlice(other.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	w.applyObjects(t, []*unstructured.Unstructured{other})
	w.checkStatus(t, 1, "my-etcd/etcd\t0.9.2\t0.9.2\tFailed\t-\tDeployment my-etcd/etcd-operator: container \"etcd-operator\" runs image \"example.com/other:latest\", but the lock contains ")
	w.applyObjects(t, rendered)
	w.must(t, w.status("--wait", "--timeout", "30s")...)

	accounts := only(rendered, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceAccount" })
	if err := w.applier.Delete(within(t, time.Minute), accounts[0]); err != nil {
		t.Fatal(err)
	}
	w.checkStatus(t, 1, "my-etcd/etcd\t0.9.2\t0.9.2\tProgressing\t-\tServiceAccount my-etcd/"+accounts[0].GetName()+": it does not exist",
		accounts[0].GetName()+"\tmy-etcd\tServiceAccount\tNotFound\tit does not exist")
	w.checkServerOutage(t, rendered)
}

// checkServerOutage lets quayside wait for missing objects. Meanwhile it restarts the API server, then applies the objects.
func (w etcd) checkServerOutage(t *testing.T, rendered []*unstructured.Unstructured) {
	ctx := within(t, time.Minute)
	mended := make(chan error, 1)
	go func() {
		time.Sleep(3 * time.Second) // status has polled once by now
		if err := w.cluster.RestartAPI(ctx); err != nil {
			mended <- err
			return
		}
		_, err := w.applier.Apply(ctx, rendered)
		mended <- err
	}()
	w.must(t, w.status("--wait", "--timeout", "50s")...)
	if err := <-mended; err != nil {
		t.Fatal(err)
	}
}

// checkNotUpgradeable makes the operator report that it is not upgradeable. resolve must keep the version until
// the operator reports that it is upgradeable.
func (w etcd) checkNotUpgradeable(t *testing.T, rendered []*unstructured.Unstructured) {
	condition := only(rendered, func(o *unstructured.Unstructured) bool { return o.GetKind() == "OperatorCondition" })[0].DeepCopy()
	for _, said := range []string{"False", "True"} {
		condition.Object["spec"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Upgradeable", "status": said, "reason": "Migration", "message": "members are being replaced", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}
		w.applyObjects(t, []*unstructured.Unstructured{condition})
		w.must(t, w.status("--save", "observed.yaml")...)
		stdout, stderr, code := w.run(t, "resolve", "--offline", "--upgrade", "--observed", "observed.yaml")
		held := strings.Contains(stderr, "held: it reports Upgradeable=False: members are being replaced")
		if moved := strings.Contains(stdout, "my-etcd/etcd 0.9.2 → 0.9.4"); code != 0 || moved != (said == "True") || held == moved {
			t.Errorf("with Upgradeable=%s: exit code %d\n%s%s", said, code, stdout, stderr)
		}
	}
	w.checkStatus(t, 1, "my-etcd/etcd\t0.9.4\t0.9.2\tOutOfSync\tTrue\tbehind: the cluster has 0.9.2, the lock 0.9.4")
}

// checkNoPermissions runs status as a user without permissions.
func (w etcd) checkNoPermissions(t *testing.T) {
	config, err := w.cluster.User("nobody")
	if err != nil {
		t.Fatal(err)
	}
	file, err := w.cluster.WriteKubeconfig("nobody", config)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := w.run(t, "status", "--offline", "--kubeconfig", file)
	want := `serviceaccounts "etcd-operator" is forbidden: User "nobody" cannot get resource "serviceaccounts"`
	if code != 1 || !strings.Contains(stdout, "my-etcd/etcd\t0.9.4\t-\tUnknown\t") || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
