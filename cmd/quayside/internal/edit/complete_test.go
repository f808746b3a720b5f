package edit_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

const completionSettings = `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs:
  - {name: hub, namespace: olm, source: "dir:hub"}
  - {name: lab, source: "dir:lab"}
  - {name: absent, source: "dir:absent"}
  clusters: [{name: east}, {name: west}]
`

// writeCatalog returns a catalog with one package, whose channel has versions 1.0.0 and 1.1.0.
func writeCatalog(pkg, channel string) string {
	bundle := func(name, version string) string {
		return `{"schema": "olm.bundle", "package": "` + pkg + `", "name": "` + name + `", "image": "registry.example.com/b:1", "properties": [{"type": "olm.package", "value": {"packageName": "` + pkg + `", "version": "` + version + `"}}]}`
	}
	return `{"schema": "olm.package", "name": "` + pkg + `", "defaultChannel": "` + channel + `"}
{"schema": "olm.channel", "package": "` + pkg + `", "name": "` + channel + `", "entries": [{"name": "b.v2", "replaces": "b.v1"}, {"name": "b.v1"}]}
` + bundle("b.v1", "1.0.0") + bundle("b.v2", "1.1.0")
}

// newWorkspace returns a Completer for a workspace with files.
func newWorkspace(t *testing.T, files map[string]string) edit.Completer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	p, err := workspace.Open(workspace.Dir(dir), workspace.Env{Offline: true, Getenv: func(name string) string {
		return map[string]string{"HOME": dir, "XDG_CACHE_HOME": filepath.Join(dir, ".cache")}[name]
	}})
	check(t, err)
	return edit.Completer{Workspace: p, Here: p.Root}
}

// TestCompletions completes prefixes. Unreadable files must give no words.
func TestCompletions(t *testing.T) {
	full := map[string]string{
		"quayside.yaml": completionSettings, "hub/etcd.json": writeCatalog("etcd", "stable"), "lab/vault.json": writeCatalog("vault", "beta"),
		"quayside.lock": string(lockfile.Format(lockfile.New([]lockfile.Pin{
			{Namespace: "a", Package: "etcd", Version: "1.0.0", Bundle: "b.v1"},
			{Namespace: "b", Package: "etcd", Version: "1.0.0", Bundle: "b.v1"},
			{Namespace: "b", Package: "vault", Version: "1.0.0", Bundle: "b.v1"},
		}))),
	}
	broken := map[string]string{"quayside.yaml": completionSettings, "quayside.lock": "no lock", "hub/etcd.json": "{", "lab/vault.json": writeCatalog("vault", "beta")}
	for _, c := range []struct {
		name    string
		files   map[string]string
		words   func(edit.Completer, context.Context, string) []string
		catalog string
		prefix  string
		want    []string
	}{
		{"operators", full, edit.Completer.Operators, "", "", []string{"a/etcd", "b/etcd", "b/vault"}},
		{"operators without a lock", map[string]string{"quayside.yaml": completionSettings}, edit.Completer.Operators, "", "", nil},
		{"operators of a broken lock", broken, edit.Completer.Operators, "", "", nil},
		{"namespaces", full, edit.Completer.Namespaces, "", "", []string{"a", "b", "b"}},
		{"clusters", full, edit.Completer.Clusters, "", "", []string{"east", "west"}},
		{"catalogs", full, edit.Completer.Catalogs, "", "", []string{"absent", "lab", "olm/hub"}},
		{"pinned, at first whole", full, edit.Completer.Pinned, "", "", []string{"a/etcd", "b/etcd", "b/vault"}},
		{"pinned, by package where only one namespace has it", full, edit.Completer.Pinned, "", "v", []string{"a/etcd", "b/etcd", "b/vault", "vault"}},
		{"pinned, by namespace", full, edit.Completer.Pinned, "", "b/", []string{"a/etcd", "b/etcd", "b/vault"}},
		{"versions, before the @", full, edit.Completer.Versions, "", "v", []string{"a/etcd", "b/etcd", "b/vault", "vault"}},
		{"versions", full, edit.Completer.Versions, "", "a/etcd@", []string{"a/etcd@1.0.0", "a/etcd@1.1.0"}},
		{"versions of a package", full, edit.Completer.Versions, "", "vault@1", []string{"vault@1.0.0", "vault@1.1.0"}},
		{"versions of nothing", full, edit.Completer.Versions, "", "a/other@", nil},
		{"packages", full, edit.Completer.Packages, "", "", []string{"etcd", "vault"}},
		{"packages of one catalog", full, edit.Completer.Packages, "lab", "", []string{"vault"}},
		{"packages of an unknown catalog", full, edit.Completer.Packages, "other", "", nil},
		{"packages beside a broken catalog", broken, edit.Completer.Packages, "", "", []string{"vault"}},
		{"wishes, before the @", full, edit.Completer.Requests, "", "e", []string{"etcd", "vault"}},
		{"wishes", full, edit.Completer.Requests, "", "vault@", []string{"vault@1.0.0", "vault@1.1.0", "vault@beta"}},
		{"wishes of another catalog", full, edit.Completer.Requests, "hub", "vault@", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := newWorkspace(t, c.files)
			at.Catalog = c.catalog
			got := c.words(at, t.Context(), c.prefix)
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
