package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/testing/clustertest"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// TestLoop runs examples/loop/loop.sh, which promotes a release through three environments. In place
// of Flux, the test applies the tree of an environment as soon as the registry has its signed
// artifact.
func TestLoop(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir, host := t.TempDir(), ocitest.New(t).Host
	key := trusttest.NewKey(t)
	put(t, dir, "cosign.key", string(key.Private(t, "secret")))
	put(t, dir, "cosign.pub", string(key.Public))
	work := filepath.Join(dir, "work")
	environ := append(os.Environ(),
		"COSIGN_PASSWORD=secret", "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com",
	)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var flux sync.WaitGroup
	var kubeconfigs []string
	for _, env := range []string{"dev", "stage", "prod"} {
		c := clustertest.New(t)
		c.Put(clustertest.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": clustertest.Object{"name": "kube-system", "uid": env}})
		name := env + "-1"
		kubeconfigs = append(kubeconfigs, filepath.Join(dir, name))
		put(t, dir, name, strings.ReplaceAll(c.Kubeconfig(), `"test"`, `"`+name+`"`))
		want := func() []clustertest.Object {
			var stdout, stderr bytes.Buffer
			if code := cli.Main(cli.Parts, []string{"-C", filepath.Join(work, "envs", env), "render", "--stdout"}, nil, &stdout, &stderr, environ); code != 0 {
				t.Errorf("%s: %s", env, &stderr)
			}
			objects, err := clustertest.Objects(stdout.Bytes())
			if err != nil {
				t.Error(err)
			}
			return objects
		}
		flux.Go(func() { applyArtifacts(ctx, c, "http://"+host+"/v2/fleet/"+env, want) })
	}
	script, err := filepath.Abs("../../../../examples/loop/loop.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, shell, script, work, host+"/fleet", filepath.Join(dir, "cosign.key"))
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(slices.Clone(environ), "KUBECONFIG="+strings.Join(kubeconfigs, string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	cancel()
	flux.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, env := range []string{"dev", "stage", "prod"} {
		lock, err := os.ReadFile(filepath.Join(work, "envs", env, "quayside.lock"))
		if err != nil || !strings.Contains(string(lock), "bundle: memcached-operator.v0.0.2\n") {
			t.Errorf("%s is not at the release: %v", env, err)
		}
	}
	for _, said := range []string{"0.0.2 in dev: healthy in 1 of 1 cluster", "0.0.2 in stage: healthy in 1 of 1 cluster"} {
		if !strings.Contains(string(out), said) {
			t.Errorf("no pull request contains %q", said)
		}
	}
}

// applyArtifacts puts objects into a cluster whenever the tag main of a repository moves to another
// signed artifact. want returns these objects.
func applyArtifacts(ctx context.Context, c *clustertest.Server, repository string, want func() []clustertest.Object) {
	for at := ""; ; {
		if digest := tagDigest(ctx, repository, "main"); digest != at && tagDigest(ctx, repository, strings.Replace(digest, ":", "-", 1)+".sig") != "" {
			c.Put(want()...)
			c.Settle()
			at = digest
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tagDigest returns the digest of a tag, or "" if the tag does not exist.
func tagDigest(ctx context.Context, repository, tag string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, repository+"/manifests/"+tag, nil)
	if err != nil {
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	_ = response.Body.Close()
	return response.Header.Get("Docker-Content-Digest")
}
