package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// TestArgoCDInputs applies a tree with Argo CD's own controllers and the ApplicationSet of
// examples/fleet/engines. This ApplicationSet creates the Applications from the tree's directory inputs/ instead
// of argocd/. The cluster must get the rendered objects.
func TestArgoCDInputs(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	harness.Require(t, "argocd")
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	examples := filepath.Join(root, "..", "..", "examples")
	repository, q := newRepository(t), newWorkspace(t, build(t), nil)
	// The pattern of the ApplicationSet requires a workspace in an environment directory of a
	// repository.
	whole := q.dir
	q.dir = filepath.Join(whole, "envs", "stage")
	if err := os.CopyFS(q.dir, os.DirFS(filepath.Join(examples, "quickstart"))); err != nil {
		t.Fatal(err)
	}
	q.write(t, "quayside.yaml", fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: stage}
spec:
  catalogs: [{name: quickstart, namespace: olm, source: "oci:catalog"}]
  kubernetesVersion: "1.36"
  gitops: {repoURL: %q, path: envs/stage/rendered, inputs: true, granularity: cluster}
  clusters: [{name: one, values: {region: north}}]
`, repository.url))
	q.resolveAndRender(t)
	commit := repository.commit(t, whole, "install")

	cluster := harness.Start(t, harness.Options{})
	hub := startArgoCD(t, cluster)
	text, err := os.ReadFile(filepath.Join(examples, "fleet", "engines", "applicationset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := objects(t, string(text))
	generators, _ := set[0].Object["spec"].(map[string]any)["generators"].([]any)
	generators[0].(map[string]any)["git"].(map[string]any)["repoURL"] = repository.url
	ctx := within(t, 5*time.Minute)
	if _, err := hub.Apply(ctx, set); err != nil {
		t.Fatal(err)
	}
	app := hub.await(ctx, t, "stage-one-operators", commit, "settled", isSettled)
	if region := app.GetLabels()["region"]; region != "north" {
		t.Errorf("the region of the Application is %q, want that of the values", region)
	}
	awaitRendered(ctx, t, hub.Applier, q.rendered(t), nil)
}
