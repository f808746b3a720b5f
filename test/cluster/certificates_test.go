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

// servedMonitors is the setting for clusters with the API of Prometheus rules and monitors.
const servedMonitors = "  provides: {apis: [monitoring.coreos.com/v1]}\n"

// TestArgoCDCertificates installs operators that wait for certificates together with the operator that issues
// the certificates. The first sync of Argo CD must complete, and all objects must then be in sync.
func TestArgoCDCertificates(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	cluster := harness.Start(t, harness.Options{NoWebhooks: true})
	h := startArgoCD(t, cluster)
	repository := newRepository(t)
	catalogs, files := certificateUsers(corpus)
	files["quayside.yaml"] = fmt.Sprintf(fleetWorkspace, "lab", catalogs, repository.url, "{name: default}") + servedMonitors
	q := newWorkspace(t, build(t), files)
	others := applyRules(t, h.Applier, q.program, corpus)
	q.resolveAndRender(t)
	commit := repository.commit(t, q.dir, "install")

	ctx := within(t, 8*time.Minute)
	go simulateCertManager(ctx, h)
	if _, err := h.Apply(ctx, manifests(t, filepath.Join(q.dir, "rendered", "argocd"))); err != nil {
		t.Fatal(err)
	}
	h.await(ctx, t, "lab-default-operators", commit, "settled", isSettled)
	certificates := only(q.rendered(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Certificate" })
	if len(certificates) == 0 {
		t.Error("no object waits for a certificate")
	}
	awaitRendered(ctx, t, h.Applier, q.rendered(t), others)
}

// certificateUsers returns the catalogs of cert-manager and of operators that use cert-manager for their
// webhooks, and files with Subscriptions to all of them.
func certificateUsers(corpus string) (catalogs string, files map[string]string) {
	files = map[string]string{}
	var all []string
	for _, pkg := range []string{"cert-manager", "rabbitmq-cluster-operator", "rabbitmq-messaging-topology-operator", "opentelemetry-operator"} {
		all = append(all, fmt.Sprintf("{name: %s, namespace: olm, source: %q}", pkg, "bundles:"+filepath.Join(corpus, "bundles", pkg)))
		files["subscriptions/"+pkg+".yaml"] = fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[1]s}\n", pkg)
	}
	return strings.Join(all, ", "), files
}

// applyRules applies the CRDs of the Prometheus operator, and returns them. A rule of opentelemetry-operator
// needs these CRDs.
func applyRules(t *testing.T, live *harness.Applier, program, corpus string) []*unstructured.Unstructured {
	t.Helper()
	crds := only(renderAlone(t, program, corpus, "prometheus"), isCRD)
	if _, err := live.Apply(within(t, time.Minute), crds); err != nil {
		t.Fatal(err)
	}
	return crds
}

// TestPieceCertificates installs cert-manager and operators that use cert-manager, each as a piece, in the
// first sync of each engine. Argo CD applies pieces without an order. Flux orders them only by dependencies
// between bundles.
func TestPieceCertificates(t *testing.T) {
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	for name, engine := range map[string]pieceEngine{"argocd": argoEngine{}, "flux": fluxEngine{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits; each test has its own servers
			cluster := harness.Start(t, harness.Options{NoWebhooks: true})
			if name == "argocd" {
				startResyncing(t, cluster, 3*time.Minute)
			} else {
				startFlux(t, cluster, harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller"))
			}
			f := newPieceFleet(t, cluster, nil, engine, "lab")
			catalogs, files := certificateUsers(corpus)
			for file, text := range files {
				f.tree.write(t, file, text)
			}
			settings := strings.ReplaceAll(settings(f.state, engine.settings(f)), `{name: bundles, source: "bundles:bundles"}`, catalogs)
			f.tree.write(t, "quayside.yaml", strings.ReplaceAll(settings, "openshift-service-ca", "cert-manager")+servedMonitors)
			applyRules(t, f.live, f.tree.program, corpus)
			f.tree.resolveAndRender(t)

			ctx := within(t, 8*time.Minute)
			go simulateCertManager(ctx, hub{f.live})
			f.commit, f.lastCommitTime = f.repository.commit(t, f.dir, "install"), time.Now()
			f.engine.follow(ctx, t, f)
			f.applyParents(ctx, t)
			f.settle(ctx, t)
			f.logDuration(t, "first sync")
			if len(only(f.tree.manifestsOf(t, "operators"), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Certificate" })) == 0 {
				t.Error("no object waits for a certificate")
			}
		})
	}
}

// simulateCertManager acts in place of cert-manager's program, because simulated pods do not run it. Once
// cert-manager's Deployment is available, it makes issuers and certificates ready.
func simulateCertManager(ctx context.Context, h hub) {
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
