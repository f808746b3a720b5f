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

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestArgoCDCertificates has Argo CD install operators that wait for
// certificates together with the one that issues these: the first sync comes to
// its end, and leaves nothing to do.
func TestArgoCDCertificates(t *testing.T) {
	t.Parallel() // it has servers of its own, and mostly waits
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	cluster := harness.Start(t, harness.Options{NoWebhooks: true})
	h := startArgoCD(t, cluster)
	repository := newRepository(t)
	files := map[string]string{}
	var catalogs []string
	for _, pkg := range []string{"cert-manager", "rabbitmq-cluster-operator", "rabbitmq-messaging-topology-operator", "opentelemetry-operator"} {
		catalogs = append(catalogs, fmt.Sprintf("{name: %s, namespace: olm, source: %q}", pkg, "bundles:"+filepath.Join(corpus, "bundles", pkg)))
		files["subscriptions/"+pkg+".yaml"] = fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[1]s}\n", pkg)
	}
	files["quayside.yaml"] = fmt.Sprintf(fleetWorkspace, "lab", strings.Join(catalogs, ", "), repository.url, "{name: default}")
	q := newWorkspace(t, build(t), files)
	others := only(alone(t, q.program, corpus, "prometheus"), isCRD) // opentelemetry ships a rule
	if _, err := h.Apply(within(t, time.Minute), others); err != nil {
		t.Fatal(err)
	}
	q.settle(t)
	commit := repository.commit(t, q.dir, "install")

	ctx := within(t, 8*time.Minute)
	go issue(ctx, h)
	if _, err := h.Apply(ctx, manifests(t, filepath.Join(q.dir, "rendered", "argocd"))); err != nil {
		t.Fatal(err)
	}
	h.await(ctx, t, "lab-default-operators", commit, "settled", settled)
	certificates := only(q.rendered(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Certificate" })
	if len(certificates) == 0 {
		t.Error("nothing here waits for a certificate")
	}
	sameAsRendered(ctx, t, h.Applier, q.rendered(t), others)
}

// issue does what cert-manager's program does, which no simulated pod can: once
// its Deployment runs, and no sooner, issuers and certificates become ready.
func issue(ctx context.Context, h hub) {
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		deployment := &unstructured.Unstructured{}
		deployment.SetAPIVersion("apps/v1")
		deployment.SetKind("Deployment")
		deployment.SetNamespace("cert-manager")
		deployment.SetName("cert-manager")
		live, err := h.Get(ctx, deployment)
		if err != nil {
			continue
		}
		if status, _, _ := harness.Condition(live, "Available"); status != "True" {
			continue
		}
		list, err := h.ListGroup(ctx, "cert-manager.io")
		if err != nil {
			continue
		}
		for _, o := range list {
			if _, _, has := harness.Condition(o, "Ready"); !has {
				_ = h.SetStatus(ctx, o, map[string]any{"conditions": []any{map[string]any{
					"type": "Ready", "status": "True", "reason": "Issued", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
					"observedGeneration": o.GetGeneration(),
				}}})
			}
		}
	}
}

const fleetWorkspace = `
apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: %s}
spec:
  catalogs: [%s]
  kubernetesVersion: "1.36"
  gitops: {repoURL: %q, granularity: cluster, syncPolicy: {automated: {prune: true, selfHeal: true}}}
  clusters: [%s]
`
