package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/test/cluster/harness"
)

// outcome mirrors what cmd/argosync prints.
type outcome struct {
	Phase, Message string
	Synced         []struct {
		Object, Status, Message string
		Wave                    int
	}
	Unhealthy []string
}

// TestArgoCD has Argo CD's own engine sync what the two Applications of the
// quickstart point at, twice.
func TestArgoCD(t *testing.T) {
	program := filepath.Join(harness.Require(t, "argo"), "argosync")
	q := quickstart(t, "argocd", "https://git.example.com/fleet.git")
	q.must(t, "render", "--offline")
	tree := filepath.Join(q.dir, "rendered")
	cluster := harness.Start(t, harness.Options{})
	ctx := within(t, 3*time.Minute)
	sources := []struct {
		application string
		manifests   []byte
	}{
		{"crds", directory(t, filepath.Join(tree, "crds"))},
		{"operators", kustomized(t, filepath.Join(tree, "clusters", "default"))},
	}
	for _, s := range sources {
		first := argosync(ctx, t, program, cluster, s.application, s.manifests)
		if got, want := len(first.Synced), len(objects(t, string(s.manifests))); got != want {
			t.Errorf("%s: the first sync applied %d objects of %d", s.application, got, want)
		}
		for i, o := range first.Synced {
			if i > 0 && o.Wave < first.Synced[i-1].Wave {
				t.Errorf("%s: %s of wave %d came after %s of wave %d", s.application, o.Object, o.Wave, first.Synced[i-1].Object, first.Synced[i-1].Wave)
			}
		}
	}
	for _, s := range sources {
		for _, o := range argosync(ctx, t, program, cluster, s.application, s.manifests).Synced {
			t.Errorf("%s: %s was out of sync the second time: %s", s.application, o.Object, o.Message)
		}
	}
}

// argosync runs the engine and returns what came of it: a success.
func argosync(ctx context.Context, t *testing.T, program string, cluster *harness.Cluster, application string, manifests []byte) outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, manifests, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "-kubeconfig", cluster.Kubeconfig, "-app", application, file)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("syncing: %v\n%s\n%s", err, out.String(), log.String())
	}
	var o outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// directory returns every manifest under dir, as Argo CD reads a plain
// directory.
func directory(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		all.WriteString("---\n")
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// kustomized returns what kustomize builds from dir.
func kustomized(t *testing.T, dir string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
