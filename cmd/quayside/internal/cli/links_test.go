package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// secret is the content of files outside of the repository.
const secret = "c2VjcmV0LW91dHNpZGU="

// newAttackedRepo writes a repository with the quickstart in envs/dev. Outside of the repository,
// it writes the directory victim with the same files and a Secret.
func newAttackedRepo(t *testing.T, settings string) (top, dir string) {
	t.Helper()
	top = t.TempDir()
	dir = filepath.Join(top, "repo/envs/dev")
	for _, to := range []string{dir, filepath.Join(top, "victim")} {
		check(t, os.CopyFS(to, os.DirFS("../../../../examples/quickstart")))
	}
	put(t, top, "victim/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: outside}\ndata: {key: "+secret+"}\n")
	put(t, top, "victim/blobs/keep", secret)
	put(t, top, "repo/envs/dev/quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: [subscriptions, more]\n  kubernetesVersion: \"1.34\"\n"+settings)
	put(t, dir, "more/README.md", "")
	gittest.Run(t, filepath.Join(top, "repo"), "init", "-q", "-b", "main")
	return top, dir
}

// replaceByLink replaces a file or directory with a symbolic link.
func replaceByLink(t *testing.T, dir, name, target string) {
	t.Helper()
	name = filepath.Join(dir, name)
	check(t, os.RemoveAll(name))
	check(t, os.MkdirAll(filepath.Dir(name), 0o755))
	check(t, os.Symlink(target, name))
}

const ociCatalog = "  catalogs: [{name: quickstart, namespace: olm, source: \"oci:catalog\"}]\n"

// TestLinksOutOfRepository replaces each path that a command reads or writes with a symbolic link
// out of the repository. The error must name the link, and the command must not read or write
// outside.
func TestLinksOutOfRepository(t *testing.T) {
	const up = "../../../../" // out of envs/dev
	bundles := func(source string) string {
		return "  catalogs: [{name: quickstart, namespace: olm, source: \"" + source + "\"}]\n"
	}
	for _, c := range []struct {
		name, settings string
		link, target   string // below envs/dev
		commands       []string
		want           string // message; empty: the usual one
	}{
		{"the tree", ociCatalog, "rendered", up + "victim", []string{"render", "render --force", "verify", "add vault -n other --to subscriptions --render --offline", "diff"}, ""},
		{"a new tree", ociCatalog, "rendered", up + "new", []string{"render"}, ""},
		{"a directory of the tree", ociCatalog, "rendered/operators", up + "../victim/rendered/operators", []string{"render", "verify"}, "is a file that quayside did not write|is out of date"},
		{"the lock", ociCatalog, "quayside.lock", up + "victim/quayside.lock", []string{"resolve --upgrade", "render", "verify", "add vault -n other --to subscriptions --offline", "remove vault/vault --offline", "why vault", "images", "diff"}, ""},
		{"the settings", ociCatalog, "quayside.yaml", up + "victim/secret.yaml", []string{"resolve", "render", "verify", "config"}, ""},
		{"declarations", ociCatalog, "subscriptions", up + "victim/subscriptions", []string{"resolve", "add vault -n other --to subscriptions --offline", "remove vault/vault --offline"}, ""},
		{"new declarations", ociCatalog + "  newDeclarations: more\n", "more", up + "more", []string{"add vault -n other --offline"}, ""},
		{"a declaration", ociCatalog, "subscriptions/vault.yaml", "../" + up + "victim/subscriptions/vault.yaml", []string{"resolve", "remove vault/vault --offline"}, ""},
		{"a layout", ociCatalog, "catalog", up + "victim/catalog", []string{"resolve --upgrade", "render", "catalog list", "catalog validate oci:catalog"}, ""},
		{"blobs of a layout", ociCatalog, "catalog/blobs", "../" + up + "victim/catalog/blobs", []string{"resolve --upgrade", "render", "catalog list"}, ""},
		{"a directory of bundles", bundles("bundles:catalog-src"), "catalog-src", up + "victim/catalog-src", []string{"resolve --upgrade", "catalog list", "catalog validate catalog-src", "build catalog-src oci:out", "push catalog-src oci:out"}, ""},
		{"a bundle", bundles("bundles:catalog-src"), "catalog-src/vault/0.1.9", "../../" + up + "victim/catalog-src/vault/0.1.9", []string{"build catalog-src/vault/0.1.9 oci:out", "bundle validate catalog-src/vault/0.1.9"}, ""},
		{"a manifest of a bundle", bundles("bundles:catalog-src"), "catalog-src/vault/0.1.9/manifests/secret.yaml", "../../../../" + up + "victim/secret.yaml", []string{"resolve --upgrade", "catalog validate catalog-src", "build catalog-src/vault/0.1.9 oci:out", "build catalog-src oci:out", "bundle validate catalog-src/vault/0.1.9"}, ""},
		{"manifests of a bundle", bundles("bundles:catalog-src"), "catalog-src/vault/0.1.9/manifests", "../../../../" + up + "victim/catalog-src/vault/0.1.9/manifests", []string{"build catalog-src/vault/0.1.9 oci:out", "bundle validate catalog-src/vault/0.1.9"}, ""},
		{"a file of a file-based catalog", bundles("dir:fbc"), "fbc/vault/catalog.yaml", "../../" + up + "victim/secret.yaml", []string{"resolve --upgrade", "catalog list", "catalog validate fbc"}, "symbolic links in a catalog are not followed"},
		{"a database", bundles("sqlite:index.db"), "index.db", up + "victim/secret.yaml", []string{"resolve --upgrade"}, ""},
		{"an archive", bundles("oci-archive:image.tar"), "image.tar", up + "victim/secret.yaml", []string{"resolve --upgrade"}, ""},
		{"mirrors", ociCatalog + "  mirrors: [mirrors.yaml]\n", "mirrors.yaml", up + "victim/secret.yaml", []string{"render", "resolve --upgrade"}, ""},
		{"shared settings", ociCatalog + "  extends: base.yaml\n", "base.yaml", up + "victim/secret.yaml", []string{"render", "resolve"}, ""},
		{"overlays", ociCatalog, "overlays", up + "victim", []string{"render", "verify"}, ""},
		{"an overlay", ociCatalog, "overlays/default/kustomization.yaml", "../../" + up + "victim/secret.yaml", []string{"render", "verify"}, ""},
		{"a patch", ociCatalog, "overlays/default/patch.yaml", "../../" + up + "victim/secret.yaml", []string{"diff", "verify"}, ""},
		{"a new layout", ociCatalog, "out", up + "victim", []string{"build catalog-src oci:out", "build catalog-src/vault/0.1.9 oci:out", "mirror oci:out", "push oci:out"}, ""},
		{"blobs of a new layout", ociCatalog, "out/blobs", "../" + up + "victim/blobs", []string{"build catalog-src oci:out", "push oci:out"}, ""},
		{"a report", ociCatalog, "report.md", up + "victim/blobs/keep", []string{"diff --save markdown=report.md"}, ""},
		{"a feed", ociCatalog, "feed", up + "victim", []string{"outdated --feed feed"}, ""},
		{"an ignore file", ociCatalog, ".gitignore", up + "victim/secret.yaml", []string{"diff"}, ""},
		{"scans", ociCatalog, "scans", up + "victim", []string{"diff --scan scans"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused := regexp.MustCompile("symbolic link (\\S+/)?" + regexp.QuoteMeta(c.link) + " points outside the repository" + map[bool]string{true: "|" + c.want}[c.want != ""])
			var top, dir string
			for i, command := range c.commands {
				committed := strings.HasPrefix(command, "diff") || strings.HasPrefix(command, "push oci")
				if i == 0 || committed {
					top, dir = newAttackedRepo(t, c.settings)
					if strings.HasPrefix(c.link, "fbc/") {
						put(t, dir, "fbc/etcd/catalog.yaml", "schema: olm.package\nname: etcd\ndefaultChannel: a\n")
					}
					if strings.Contains(c.link, "overlays/default/patch") {
						put(t, dir, "overlays/default/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: patch.yaml}]\n")
					}
					if committed {
						gittest.Run(t, dir, "add", "-A")
						gittest.Run(t, dir, "commit", "-qm", "before")
					}
					replaceByLink(t, dir, c.link, c.target)
				}
				if c.link == "quayside.lock" || !committed {
					gittest.Run(t, dir, "add", "-A")
				}
				before := snapshot(t, filepath.Join(top, "victim"))
				args := strings.Fields(command)
				got := quayside(t, dir, args...)
				if got.code == 0 || !refused.MatchString(got.stderr+got.stdout) {
					t.Errorf("%s: exit code %d:\n%s%s", command, got.code, got.stdout, got.stderr)
				}
				if strings.Contains(got.stdout+got.stderr, secret) {
					t.Errorf("%s: printed a file outside:\n%s%s", command, got.stdout, got.stderr)
				}
				if snapshot(t, filepath.Join(top, "victim")) != before {
					t.Errorf("%s: wrote outside", command)
				}
				entries, err := os.ReadDir(top)
				check(t, err)
				if names := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == "repo" || e.Name() == "victim" }); len(names) > 0 {
					t.Errorf("%s: wrote %s", command, names)
				}
				if out, err := exec.Command("grep", "-rl", secret, filepath.Join(top, "repo")).Output(); err == nil {
					t.Errorf("%s: copied a file outside to %s", command, out)
				}
			}
		})
	}
}

// TestPathsOutOfRepository checks that quayside.yaml can name files outside of the repository only
// if the environment variable permits them.
func TestPathsOutOfRepository(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source string }{
		{"relative", "oci:../../../victim/catalog"},
		{"absolute", "oci:TOP/victim/catalog"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, dir := newAttackedRepo(t, "")
			put(t, dir, "quayside.yaml", read(t, dir, "quayside.yaml")+strings.Replace(ociCatalog, "oci:catalog", strings.Replace(c.source, "TOP", top, 1), 1))
			run := func(allowed string) (int, string) {
				var stdout, stderr bytes.Buffer
				env := []string{"XDG_CACHE_HOME=" + t.TempDir(), "QUAYSIDE_ALLOW_OUTSIDE=" + allowed}
				code := cli.Main(cli.Parts, []string{"-C", dir, "catalog", "list"}, nil, &stdout, &stderr, env)
				return code, stdout.String() + stderr.String()
			}
			if code, out := run(filepath.Join(top, "vic")); code != 2 || !strings.Contains(out, "victim/catalog is outside of the repository") {
				t.Errorf("exit code %d: %s", code, out)
			}
			if code, out := run("/nowhere:" + filepath.Join(top, "victim")); code != 0 || !strings.Contains(out, "vault") {
				t.Errorf("allowed: exit code %d: %s", code, out)
			}
			replaceByLink(t, filepath.Join(top, "victim"), "catalog/oci-layout", "/etc/passwd")
			replaceByLink(t, filepath.Join(top, "victim"), "catalog/index.json", "/etc/passwd")
			if code, out := run(filepath.Join(top, "victim")); code != 2 || !strings.Contains(out, "symbolic link catalog/index.json points outside the directory") {
				t.Errorf("a link out of the permitted directories: exit code %d: %s", code, out)
			}
		})
	}
}

// TestLinksInsideRepository checks that symbolic links inside the repository work.
func TestLinksInsideRepository(t *testing.T) {
	t.Parallel()
	_, dir := newAttackedRepo(t, ociCatalog)
	for _, name := range []string{"rendered", "catalog"} {
		check(t, os.MkdirAll(filepath.Join(dir, "../../shared"), 0o755))
		check(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "../../shared", name)))
		replaceByLink(t, dir, name, "../../shared/"+name)
	}
	cache := t.TempDir()
	for _, command := range []string{"resolve --upgrade=vault", "remove vault/vault --offline", "render --offline", "verify --offline"} {
		mustRunIn(t, dir, cache, strings.Fields(command)...)
	}
}
