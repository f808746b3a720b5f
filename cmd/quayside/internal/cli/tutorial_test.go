package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// tutorial returns the command blocks of docs/tutorial.md.
func tutorial(t *testing.T) []string {
	t.Helper()
	var blocks []string
	inside := false
	for line := range strings.Lines(read(t, "../../../../docs", "tutorial.md")) {
		command, indented := strings.CutPrefix(line, "    ")
		switch {
		case !indented:
			inside = false
		case inside:
			blocks[len(blocks)-1] += command
		default:
			blocks, inside = append(blocks, command), true
		}
	}
	if len(blocks) < 5 {
		t.Fatalf("docs/tutorial.md has %d blocks of commands", len(blocks))
	}
	return blocks
}

// TestTutorial runs the commands of the tutorial with an empty directory and an empty cache. A copy
// of the quickstart replaces the cloned repository.
func TestTutorial(t *testing.T) {
	top := t.TempDir()
	check(t, os.CopyFS(filepath.Join(top, "quayside/examples/quickstart"), os.DirFS(quickstart(t))))
	dir := filepath.Join(top, "fleet")
	check(t, os.Mkdir(dir, 0o777))
	for i, block := range tutorial(t) {
		runBlock(t, top, dir, block)
		if i == 2 {
			checkTree(t, dir, []string{"memcached-operator", "vault"})
		}
	}
	if lock := read(t, dir, "quayside.lock"); !strings.Contains(lock, "memcached-operator.v0.0.2") {
		t.Errorf("memcached-operator was not upgraded:\n%s", lock)
	}
}

// TestThreeCommands renders a tree with three commands, and upgrades it: once with a published
// catalog in a local mirror of the real registries, and once with the catalog of the quickstart
// under the same name.
func TestThreeCommands(t *testing.T) {
	const first = `quayside init --mirrors ../registries.conf --openshift 4.20 --kubernetes 1.33 --catalog community --repo https://git.example.com/fleet.git
quayside add rabbitmq-cluster-operator@2.22.2 rabbitmq-messaging-topology-operator multicluster-global-hub-operator
quayside render
`
	const then = `quayside catalog search rabbitmq
sed -i.bak '/^  version: /d' subscriptions/rabbitmq-cluster-operator.yaml
rm subscriptions/rabbitmq-cluster-operator.yaml.bak
quayside diff --upgrade --exit-zero
quayside upgrade
quayside verify
quayside remove multicluster-global-hub-operator
quayside render
`
	for name, c := range map[string]struct {
		push  func(t *testing.T, host string)
		words *strings.Replacer
	}{
		"corpus": {pushCommunity, strings.NewReplacer()},
		"example": {pushExample, strings.NewReplacer(
			"rabbitmq-cluster-operator", "memcached-operator", "2.22.2", "0.0.1",
			"rabbitmq-messaging-topology-operator", "vault", "multicluster-global-hub-operator", "at-operator",
		)},
	} {
		t.Run(name, func(t *testing.T) {
			server := ocitest.New(t)
			c.push(t, server.Host)
			top := t.TempDir()
			put(t, top, "registries.conf", fmt.Sprintf("[[registry]]\nprefix = \"registry.redhat.io\"\nlocation = %q\n[[registry]]\nprefix = \"quay.io/community-operator-pipeline-prod\"\nlocation = %q\n",
				server.Host, server.Host+"/community-operator-pipeline-prod"))
			dir := filepath.Join(top, "fleet")
			check(t, os.Mkdir(dir, 0o777))
			gittest.Run(t, top, "init", "-q")
			runBlock(t, top, dir, c.words.Replace(first))
			checkTree(t, dir, strings.Fields(c.words.Replace("rabbitmq-cluster-operator rabbitmq-messaging-topology-operator multicluster-global-hub-operator")))
			runBlock(t, top, dir, c.words.Replace(then))
		})
	}
}

// runBlock runs a block of commands in a shell, with the cache and the Git settings in top.
func runBlock(t *testing.T, top, dir, block string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eux", "-c", block)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+top, "XDG_CACHE_HOME="+filepath.Join(top, "cache"),
		"GIT_AUTHOR_NAME=ops", "GIT_AUTHOR_EMAIL=ops@example.com", "GIT_COMMITTER_NAME=ops", "GIT_COMMITTER_EMAIL=ops@example.com")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%v: %s", err, block)
	}
}

// checkTree checks that the tree is for Argo CD, has the operators, and builds.
func checkTree(t *testing.T, dir string, operators []string) {
	t.Helper()
	declared, err := filepath.Glob(filepath.Join(dir, "subscriptions", "*.yaml"))
	check(t, err)
	if len(declared) != len(operators) {
		t.Errorf("%d files of declarations, want %d", len(declared), len(operators))
	}
	for _, name := range operators {
		found, err := filepath.Glob(filepath.Join(dir, "rendered", "operators", "*."+name, "deployment-*.yaml"))
		check(t, err)
		if len(found) == 0 {
			t.Errorf("the tree has no Deployment of %s", name)
		}
	}
	tree := readTree(t, dir, "rendered")
	applications := 0
	for _, text := range tree {
		applications += strings.Count("\n"+text, "\nkind: Application\n")
	}
	if applications == 0 {
		t.Errorf("no Application among %d files", len(tree))
	}
	pieces, err := filepath.Glob(filepath.Join(dir, "rendered", "operators", "*"))
	check(t, err)
	size := 0
	for _, piece := range pieces {
		built, err := kustomize(piece)
		check(t, err)
		size += len(built)
	}
	t.Logf("%d files; %d pieces build to %d bytes", len(tree), len(pieces), size)
}

// pushCommunity pushes a published catalog, and the bundles that TestThreeCommands needs, under the
// names that the catalog uses.
func pushCommunity(t *testing.T, host string) {
	t.Helper()
	root, dir := clitest.Corpus(t), t.TempDir()
	clitest.Unpack(t, filepath.Join(root, "catalogs/community-v4.20.tar.zst"), dir)
	packed, err := oci.Pack(os.DirFS(filepath.Join(dir, "v4.20")), oci.PackOptions{
		Prefix: "configs", Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	})
	check(t, err)
	client := &oci.Client{}
	check(t, client.Push(context.Background(), host+"/redhat/community-operator-index:v4.20", packed))
	for _, at := range []string{
		"rabbitmq-cluster-operator/2.22.2", "rabbitmq-cluster-operator/2.22.3",
		"rabbitmq-messaging-topology-operator/1.19.3", "multicluster-global-hub-operator/1.7.0",
	} {
		files, labels, err := bundle.Image(os.DirFS(filepath.Join(root, "bundles", at)))
		check(t, err)
		packed, err := oci.Pack(files, oci.PackOptions{Labels: labels})
		check(t, err)
		check(t, client.Push(context.Background(), host+"/community-operator-pipeline-prod/"+strings.Replace(at, "/", ":", 1), packed))
	}
}

// pushExample pushes the catalog of the quickstart in place of the published one.
func pushExample(t *testing.T, host string) {
	t.Helper()
	mustRun(t, quickstart(t), "push", "catalog-src", host+"/redhat/community-operator-index:v4.20",
		"--bundle-repository", host+"/community-operator-pipeline-prod/{package}")
}
