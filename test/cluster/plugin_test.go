package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/process"
)

// TestArgoCDPlugin renders a workspace of a repository with Argo CD's own plugin server and
// ci/argocd/plugin.yaml. It calls the server like the repo server does. A parameter or an environment variable
// selects the cluster. The output must equal the output of quayside render for this cluster.
func TestArgoCDPlugin(t *testing.T) {
	t.Parallel() // mostly waits
	p, q, root := startPlugin(t), newLockedWorkspace(t), t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "envs", "stage"), os.DirFS(q.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "envs", "none"), 0o755); err != nil {
		t.Fatal(err)
	}

	for variable, cluster := range map[string]string{"PARAM_OVERLAY": "near", "ARGOCD_ENV_OVERLAY": "far"} {
		got, said, err := p.generate(t, root, "envs/stage", variable+"="+cluster)
		if err != nil {
			t.Fatalf("%s=%s: %v\n%s", variable, cluster, err, said)
		}
		want := q.renderedFor(t, cluster)
		if d := cmp.Diff(sortedByName(want), sortedByName(objects(t, got))); d != "" || len(want) == 0 {
			t.Errorf("%s=%s: %d objects are rendered (-want +got):\n%s", variable, cluster, len(want), d)
		}
	}
	if _, said, err := p.generate(t, root, "envs/stage", "PARAM_OVERLAY=nowhere"); err == nil || !strings.Contains(said, "nowhere") {
		t.Errorf("an unknown cluster: %v\n%s", err, said)
	}
	if _, said, err := p.generate(t, root, "envs/none"); err == nil || !strings.Contains(said, "could not find plugin supporting the given repository") {
		t.Errorf("a directory without a lock: %v\n%s", err, said)
	}
}

// TestArgoCDRenders applies a workspace that has a lock but no tree, with Argo CD's own controllers and the
// Application of docs/ci.md.
func TestArgoCDRenders(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	harness.Require(t, "argocd")
	p, q, repository := startPlugin(t), newLockedWorkspace(t), newRepository(t)
	whole := t.TempDir()
	if err := os.CopyFS(filepath.Join(whole, "envs", "stage"), os.DirFS(q.dir)); err != nil {
		t.Fatal(err)
	}
	commit := repository.commit(t, whole, "lock")

	h := startArgoCD(t, harness.Start(t, harness.Options{}), p.env...)
	ctx := within(t, 4*time.Minute)
	if _, err := h.Apply(ctx, objects(t, fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: stage, namespace: argocd}
spec:
  project: default
  source:
    repoURL: %q
    targetRevision: main
    path: envs/stage
    plugin:
      name: quayside
      parameters: [{name: overlay, string: near}]
  destination: {server: "https://kubernetes.default.svc"}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
`, repository.url))); err != nil {
		t.Fatal(err)
	}
	h.await(ctx, t, "stage", commit, "settled", isSettled)
	awaitRendered(ctx, t, h.Applier, q.renderedFor(t, "near"), nil)
}

// newLockedWorkspace returns a workspace with a lock for two clusters and without a tree.
func newLockedWorkspace(t *testing.T) quayside {
	t.Helper()
	elsewhere := strings.Replace(far, "{", `{server: "https://far.example.com", `, 1)
	q := quickstart(t, gitops{profile: "argocd", url: "https://git.example.com/fleet.git", clusters: near + ", " + elsewhere})
	q.must(t, "resolve", "--offline")
	if err := os.RemoveAll(filepath.Join(q.dir, "rendered")); err != nil {
		t.Fatal(err)
	}
	return q
}

// sortedByName returns the objects by name, because the order of the plugin's output is not
// defined.
func sortedByName(list []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(slices.Values(list), func(a, b *unstructured.Unstructured) int { return strings.Compare(harness.Name(a), harness.Name(b)) })
}

// plugin is a running plugin server of Argo CD, and its client program.
type plugin struct {
	program string
	env     []string
}

// startPlugin starts the server as configured in ci/argocd/sidecar.yaml.
func startPlugin(t *testing.T) plugin {
	t.Helper()
	p := plugin{program: filepath.Join(harness.Require(t, "argocd-plugins"), "plugins")}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "plugins-") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	p.env = []string{"ARGOCD_PLUGINSOCKFILEPATH=" + sockets}
	logs := t.TempDir()
	server, err := process.Start(process.Spec{
		Name: "plugin-server", Args: []string{p.program, "server", "--config-dir-path=" + filepath.Join(root, "..", "..", "ci", "argocd")},
		Env: append([]string{
			"ARGOCD_CMP_WORKDIR=" + t.TempDir(), "XDG_CACHE_HOME=" + t.TempDir(),
			"PATH=" + filepath.Dir(build(t)) + string(os.PathListSeparator) + "/usr/bin:/bin",
		}, p.env...),
	}, logs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(server.Tail(20))
		}
		server.Kill() // after SIGTERM it removes its socket, but does not end
	})
	ctx := within(t, time.Minute)
	for {
		if _, err := os.Stat(filepath.Join(sockets, "quayside.sock")); err == nil {
			return p
		}
		if err := server.Ended(); err != nil {
			t.Fatal(err)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			t.Fatal("the plugin server does not listen")
		}
	}
}

// generate sends a repository to the server in the same way as the repo server. It returns the rendered output
// for a directory of the repository, and the log output.
func (p plugin) generate(t *testing.T, repository, directory string, env ...string) (rendered, said string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.program, append([]string{"generate", repository, directory}, env...)...)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err
}
