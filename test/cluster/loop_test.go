package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// TestLoop runs examples/loop/loop.sh for three clusters. Flux in the first cluster applies the signed artifact
// of each cluster, by examples/loop/flux.yaml. An artifact is promoted only after quayside has observed it in
// the previous cluster. Flux rejects an artifact with another signer.
func TestLoop(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	source, kustomize := harness.Require(t, "source-controller"), harness.Require(t, "kustomize-controller")
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(root, "..", "..", "examples", "loop")
	dir, registry := t.TempDir(), strings.TrimSuffix(newArtifact(t).reference, "/fleet")
	key, public := keyPair(t)

	secrets := objects(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: cosign-pub, namespace: flux-system}, stringData: {cosign.pub: %q}}", public))
	clusters, logins := map[string]*harness.Cluster{}, api.NewConfig()
	for _, env := range []string{"dev", "stage", "prod"} {
		c := harness.Start(t, harness.Options{})
		clusters[env] = c
		text, err := os.ReadFile(c.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, objects(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: kubeconfig-%s-1, namespace: flux-system}, stringData: {value: %q}}", env, text))...)
		login, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		at := login.Contexts[login.CurrentContext]
		name := env + "-1"
		logins.Clusters[name], logins.AuthInfos[name] = login.Clusters[at.Cluster], login.AuthInfos[at.AuthInfo]
		logins.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*logins, kubeconfig); err != nil {
		t.Fatal(err)
	}

	hub := applier(t, clusters["dev"])
	startFlux(t, clusters["dev"], source, kustomize)
	ctx := within(t, 8*time.Minute)
	text, err := os.ReadFile(filepath.Join(example, "flux.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	told := objects(t, strings.ReplaceAll(string(text), "registry.example.com", registry))
	for _, o := range told {
		if o.GetKind() == "OCIRepository" { // the test's registry has no TLS, and the test cannot wait a minute
			spec, _ := o.Object["spec"].(map[string]any)
			spec["insecure"], spec["interval"] = true, "2s"
		}
	}
	if _, err := hub.Apply(ctx, append(secrets, told...)); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(ctx, "sh", filepath.Join(example, "loop.sh"), filepath.Join(dir, "work"), registry+"/fleet", key)
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(build(t))+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com",
	)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	images := map[string]string{}
	for env, c := range clusters {
		images[env] = deployedImages(ctx, t, c, "memcached-operator-system")
		deployed, err := client(t, c).AppsV1().Deployments("memcached-operator-system").Get(ctx, "memcached-operator-controller-manager", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if version := deployed.Annotations["quayside.dev/version"]; version != "0.0.2" {
			t.Errorf("%s runs %q after the loop, want 0.0.2", env, version)
		}
	}

	// The same repository gets an artifact with another signer.
	work := quayside{program: build(t), dir: filepath.Join(dir, "work", "envs", "prod")}
	other, _ := keyPair(t)
	pushed := strings.TrimSpace(work.must(t, "push", "oci://"+registry+"/fleet/prod:main", "--branch", "other", "--sign", other))
	refused := only(told, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "OCIRepository" && o.GetName() == "prod"
	})[0]
	for {
		live, err := hub.Get(ctx, refused)
		if err != nil {
			t.Fatal(err)
		}
		verified, message, _ := harness.Condition(live, "SourceVerified")
		if verified == "False" {
			t.Logf("refused: %s", message)
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("Flux accepts %s, signed with another key: %s: %s", pushed, verified, message)
		case <-time.After(200 * time.Millisecond):
		}
	}
	if got := deployedImages(ctx, t, clusters["prod"], "memcached-operator-system"); got != images["prod"] {
		t.Errorf("prod runs %q after the artifact of another signer, want %q as before", got, images["prod"])
	}
}
