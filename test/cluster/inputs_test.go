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

// TestArgoCDInputs has Argo CD's own controllers make Applications by the
// ApplicationSet of examples/fleet/engines, of inputs/ of a tree, and none by
// argocd/: the cluster gets what is rendered.
func TestArgoCDInputs(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	harness.Require(t, "argocd")
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	examples := filepath.Join(root, "..", "..", "examples")
	repository, q := newRepository(t), newWorkspace(t, build(t), nil)
	// The workspace is an environment of a repository, as the pattern wants it.
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
	q.settle(t)
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
	app := hub.await(ctx, t, "stage-one-operators", commit, "settled", settled)
	if region := app.GetLabels()["region"]; region != "north" {
		t.Errorf("the Application has the region %q, want that of the values", region)
	}
	sameAsRendered(ctx, t, hub.Applier, q.rendered(t), nil)
}
