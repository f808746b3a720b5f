package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/process"
)

// hub is a cluster with Argo CD's own controllers.
type hub struct{ *harness.Applier }

// startArgoCD installs Argo CD's CRDs and settings, and starts its controllers with additional environment
// variables. The controllers reconcile all Applications every five seconds.
func startArgoCD(t *testing.T, cluster *harness.Cluster, variables ...string) hub {
	t.Helper()
	return startResyncing(t, cluster, 5*time.Second, variables...)
}

// startResyncing is like startArgoCD, but with another reconciliation interval.
func startResyncing(t *testing.T, cluster *harness.Cluster, resync time.Duration, variables ...string) hub {
	t.Helper()
	bin := harness.Require(t, "argocd")
	h := hub{applier(t, cluster)}
	ctx := within(t, time.Minute)
	list := append(manifests(t, filepath.Join(bin, "crds")), objects(t, argoSettings)...)
	if _, err := h.Apply(ctx, only(list, isCRD)); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(ctx, only(list, isCRD)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Apply(ctx, only(list, func(o *unstructured.Unstructured) bool { return !isCRD(o) })); err != nil {
		t.Fatal(err)
	}
	ports, err := harness.FreePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	port := func(flag string, i int) string { return fmt.Sprintf("--%s=%d", flag, ports[i]) }
	tools := t.TempDir()
	if err := os.Symlink(filepath.Join(bin, "argocd"), filepath.Join(tools, "kustomize")); err != nil {
		t.Fatal(err)
	}
	own, err := os.MkdirTemp("", "argocd-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	env := []string{
		"TMPDIR=" + own, "ARGOCD_ASK_PASS_SOCK=" + filepath.Join(own, "ask-pass.sock"),
		"KUBECONFIG=" + cluster.Kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_GPG_ENABLED=false", "ARGOCD_SYNC_WAVE_DELAY=0",
		"ARGOCD_TLS_DATA_PATH=" + t.TempDir(), "ARGOCD_SSH_DATA_PATH=" + t.TempDir(), "PATH=" + tools + string(os.PathListSeparator) + os.Getenv("PATH"),
		"ARGOCD_REPO_SERVER_OCI_LAYER_MEDIA_TYPES=application/vnd.oci.image.layer.v1.tar,application/vnd.oci.image.layer.v1.tar+gzip,application/vnd.cncf.flux.content.v1.tar+gzip",
	}
	env = append(env, variables...)
	for _, server := range [][]string{
		{"redis", at(0)},
		{"repo-server", port("port", 1), port("metrics-port", 2), "--address=127.0.0.1", "--metrics-address=127.0.0.1", "--redis=" + at(0), "--disable-tls", "--revision-cache-expiration=1s"},
		{"application-controller", "--namespace=argocd", port("metrics-port", 3), "--redis=" + at(0), "--repo-server=" + at(1), "--repo-server-plaintext", fmt.Sprintf("--app-resync=%.0f", resync.Seconds())},
		{"applicationset-controller", "--namespace=argocd", "--metrics-addr=" + at(4), "--probe-addr=" + at(5), "--webhook-addr=" + at(6), "--argocd-repo-server=" + at(1), "--repo-server-plaintext"},
	} {
		spec := process.Spec{Name: server[0], Args: append([]string{filepath.Join(bin, "argocd")}, server...), Env: env}
		if _, err := cluster.Run(spec); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

const argoSettings = `
{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-rbac-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: test}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec: {clusterResourceWhitelist: [{group: "*", kind: "*"}], destinations: [{namespace: "*", server: "*"}], sourceRepos: ["*"]}
`

// newApplication returns an Application with that name, for reading.
func newApplication(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("argoproj.io/v1alpha1")
	o.SetKind("Application")
	o.SetNamespace("argocd")
	o.SetName(name)
	return o
}

// await waits until an Application is at a commit and satisfies the condition, and returns it.
func (h hub) await(ctx context.Context, t *testing.T, name, commit, want string, ready func(app *unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	for {
		app, err := h.Get(ctx, newApplication(name))
		if err == nil && revision(app) == commit && ready(app) {
			return app
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s is not %s at %s: %v\n%s", name, want, commit, err, unsettledReason(app))
		}
	}
}

// unsettledReason returns the reason why an Application is not settled.
func unsettledReason(app *unstructured.Unstructured) string {
	if app == nil {
		return ""
	}
	phase, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
	message, _, _ := unstructured.NestedString(app.Object, "status", "operationState", "message")
	conditions, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
	out := fmt.Sprintf("at %s, the operation is %s: %s %v\n", revision(app), phase, message, conditions)
	resources, _, _ := unstructured.NestedSlice(app.Object, "status", "resources")
	for _, r := range resources {
		m, _ := r.(map[string]any)
		health, has, _ := unstructured.NestedString(m, "health", "status")
		if m["status"] != "Synced" || has && health != "Healthy" {
			out += fmt.Sprintf("%v %v/%v: %v %v\n", m["kind"], m["namespace"], m["name"], m["status"], m["health"])
		}
	}
	return out
}

// revision returns the commit with which Argo CD last compared an Application.
func revision(app *unstructured.Unstructured) string {
	if one, found, _ := unstructured.NestedString(app.Object, "status", "sync", "revision"); found {
		return one
	}
	all, _, _ := unstructured.NestedStringSlice(app.Object, "status", "sync", "revisions")
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// isSettled reports whether an Application is synced and healthy, and its last operation, if any,
// succeeded. An Application that was in sync from the start has no operation.
func isSettled(app *unstructured.Unstructured) bool {
	sync, _, _ := unstructured.NestedString(app.Object, "status", "sync", "status")
	health, _, _ := unstructured.NestedString(app.Object, "status", "health", "status")
	phase, acted, _ := unstructured.NestedString(app.Object, "status", "operationState", "phase")
	return sync == "Synced" && health == "Healthy" && (!acted || phase == "Succeeded")
}
