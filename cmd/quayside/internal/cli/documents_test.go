package cli_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
)

// documentCommands returns command lines for every command of this package with a schema, by
// schema. Addresses with port 1 stand for servers that do not answer.
func documentCommands() map[string][]string {
	return map[string][]string{
		"add":              {"add etcd -n databases --check", "add nothing"},
		"build":            {"build catalog-src/vault/0.1.9 oci:dist/vault:v1", "build catalog-src oci:dist/catalog"},
		"bundle-validate":  {"bundle validate catalog-src/vault/0.1.9", "bundle validate catalog"},
		"catalog-diff":     {"catalog diff olm/quickstart catalog-src", "catalog diff catalog-src catalog-src"},
		"catalog-graph":    {"catalog graph etcd", "catalog graph etcd --namespace nowhere"},
		"catalog-list":     {"catalog list", "catalog list --catalog nothing"},
		"catalog-search":   {"catalog search database", "catalog search nothing-like-it"},
		"catalog-show":     {"catalog show etcd", "catalog show nothing"},
		"catalog-validate": {"catalog validate catalog-src", "catalog validate subscriptions"},
		"config":           {"config", "config --all"},
		"declarations":     {"declarations", "declarations --check"},
		"diff":             {"diff", "diff --upgrade", "diff --locks quayside.lock quayside.lock", "diff --trees DIR/rendered DIR/subscriptions", "diff --hops 0 --upgrade"},
		"images":           {"images", "images --inspect"},
		"init":             {"init more", "init more --profile nothing"},
		"mirror":           {"mirror 127.0.0.1:1/mirror --check", "mirror 127.0.0.1:1/mirror", "mirror oci:"},
		"outdated":         {"outdated", "outdated --feed feed", "outdated --observed quayside.yaml"},
		"promote":          {"promote", "promote . ./a", "promote a b --observed absent"},
		"propose":          {"propose", "propose --one-branch --branch one", "propose --check --prune", "propose --promote"},
		"remove":           {"remove vault/vault --check", "remove nothing"},
		"push":             {"push oci:dist/tree:main", "push catalog-src/vault/0.1.9 127.0.0.1:1/vault:v1", "push catalog-src 127.0.0.1:1/catalog:v1", "push oci://127.0.0.1:1/tree --cluster nothing", "push oci://127.0.0.1:1/tree --sign absent.key"},
		"render":           {"render", "render --check", "render --overlay a"},
		"resolve":          {"resolve", "resolve --check", "resolve --upgrade", "resolve --upgrade=vault/nothing"},
		"resources":        {"resources", "resources --all"},
		"status":           {"status", "status --timeout 1s"},
		"tree":             {"tree"},
		"upgrade":          {"upgrade --check", "upgrade vault/nothing", "upgrade --check --kubernetes 1.37", "upgrade --check --kubernetes 1.10 --openshift 9.9", "upgrade --check --kubernetes 1.37 --cluster nothing"},
		"vendor":           {"vendor", "vendor --check"},
		"verify":           {"verify", "verify --strict", "verify oci:catalog"},
		"version":          {"version"},
		"why":              {"why etcd", "why vault/etcd", "why nothing"},
		"why-not":          {"why-not etcd", "why-not vault/etcd@9.9.9", "why-not a/b/c"},
	}
}

// TestDocuments runs every command with JSON and YAML output, in valid and invalid workspaces. The
// helper quayside validates the output with the schema.
func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command in a dozen workspaces")
	}
	lines := documentCommands()
	if d := cmp.Diff(clitest.Documented(nil), slices.Sorted(maps.Keys(lines))); d != "" {
		t.Errorf("commands that print a document (-have +tested):\n%s", d)
	}
	places := map[string]func(dir string){
		"ok":                  func(string) {},
		"error/no lock":       func(dir string) { remove(t, dir, "quayside.lock") },
		"error/no workspace":  func(dir string) { remove(t, dir, "quayside.yaml", "quayside.lock", "subscriptions", "catalog") },
		"error/settings":      func(dir string) { put(t, dir, "quayside.yaml", "spec: [\n") },
		"error/declaration":   func(dir string) { put(t, dir, "subscriptions/bad.yaml", "kind: Subscription\napiVersion: v9\n") },
		"error/lock":          func(dir string) { put(t, dir, "quayside.lock", "lockVersion: 99\n") },
		"error/catalog":       func(dir string) { remove(t, dir, "catalog") },
		"error/no solution":   func(dir string) { put(t, dir, "subscriptions/nowhere.yaml", nowhere) },
		"ok/nothing to store": func(dir string) { remove(t, dir, "subscriptions"); put(t, dir, "quayside.lock", "") },
	}
	for place, spoil := range places {
		t.Run(place, func(t *testing.T) {
			dir, cache := quickstart(t), t.TempDir()
			spoil(dir)
			for _, name := range clitest.Documented(nil) {
				some := lines[name]
				if strings.HasPrefix(place, "error/") { // all commands fail in the same way
					some = some[:1]
				}
				for _, line := range some {
					quaysideIn(t, dir, cache, append(strings.Fields(line), "-o", "json")...)
				}
			}
		})
	}
	t.Run("error/usage", func(t *testing.T) {
		dir, cache := quickstart(t), t.TempDir()
		for _, line := range lines {
			for _, args := range [][]string{{"--nothing", "-o", "json"}, {"--nothing=1", "--output=yaml"}, {"-oyaml", "--offline=maybe"}, {"-o", "json", "a", "b", "c", "d"}} {
				quaysideIn(t, dir, cache, append(strings.Fields(line[0]), args...)...)
			}
		}
	})
}

// TestStdoutError checks that a failed write to stdout is reported.
func TestStdoutError(t *testing.T) {
	dir := quickstart(t)
	for _, line := range []string{
		"catalog list", "catalog show etcd", "catalog graph vault", "catalog graph vault -o dot", "catalog graph vault -o svg", "tree -o html",
		"catalog validate catalog-src -o json", "images", "images -o yaml", "images -o imageset", "images -o cyclonedx", "outdated", "render --stdout", "tree", "why vault",
		"why-not vault", "version", "--version", "--help", "schema", "schema lock", "completion bash",
		"diff --trees DIR/rendered DIR/rendered", "diff --trees DIR/rendered DIR/catalog-src --text", "images --all",
	} {
		var stderr bytes.Buffer
		args := append([]string{"-C", dir}, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		code := cli.Main(cli.Parts, args, nil, fullDevice{}, &stderr, []string{"XDG_CACHE_HOME=" + t.TempDir()})
		if code != 2 || strings.Count(stderr.String(), "error: no space left on device\n") != 1 {
			t.Errorf("quayside %s: exit code %d\n%s", line, code, &stderr)
		}
	}
}

// fullDevice is a writer to a full device.
type fullDevice struct{}

func (fullDevice) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

const nowhere = `apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: nowhere, namespace: more}
spec: {package: nowhere}
`
