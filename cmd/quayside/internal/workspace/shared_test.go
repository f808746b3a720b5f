package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// environments returns a repository of environments that share declarations and a catalog.
func environments() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	settings := func(declarations string) *fstest.MapFile {
		return file("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: " + declarations + "\n  catalogs: [{name: hub, source: 'dir:../../catalog'}]\n  mirrors: [../../mirrors.yaml]\n")
	}
	etcd := func(channel string) *fstest.MapFile {
		return file("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: etcd}\nspec: {package: etcd, channel: " + channel + "}\n")
	}
	return fstest.MapFS{
		"operators/etcd.yaml":         etcd("stable"),
		"catalog/etcd.yaml":           file("schema: olm.package\nname: etcd\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: etcd\nname: stable\nentries: [{name: etcd.v1}]\n---\nschema: olm.bundle\npackage: etcd\nname: etcd.v1\nimage: e\nproperties: [{type: olm.package, value: {packageName: etcd, version: 1.0.0}}]\n"),
		"mirrors.yaml":                file("apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: m}\nspec: {imageTagMirrors: [{source: a.example.com, mirrors: [b.example.com]}]}\n"),
		"envs/dev/quayside.yaml":      settings("[../../operators]"),
		"envs/prod/quayside.yaml":     settings("[../../operators, {path: patches, overrides: true}]"),
		"envs/prod/patches/etcd.yaml": etcd("slow"),
		"envs/both/quayside.yaml":     settings("[../../operators, patches]"),
		"envs/both/patches/etcd.yaml": etcd("slow"),
		"envs/out/quayside.yaml":      settings("[../../operators, {path: ../../../operators}]"),
		"envs/none/quayside.yaml":     settings("[../../operatos]"),
	}
}

// TestSharedDeclarations reads declarations, a catalog and mirrors from other directories of
// the workspace's repository: on disk, in a revision and in a map.
func TestSharedDeclarations(t *testing.T) {
	files := environments()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, files))
	gittest.Run(t, dir, "init", "-q")
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-qm", "all")
	repo, err := gitrepo.Open(dir)
	check(t, err)
	rev, err := repo.Revision("main")
	check(t, err)
	for name, root := range map[string]func(env string) workspace.Root{
		"directory": func(env string) workspace.Root { return workspace.Dir(filepath.Join(dir, env)) },
		"revision":  func(env string) workspace.Root { return workspace.Revision(rev, env) },
		"map":       func(env string) workspace.Root { return workspace.Files(files, "", env) },
	} {
		t.Run(name, func(t *testing.T) {
			for env, want := range map[string]string{
				"dev":  "../../operators/etcd.yaml:4:32 stable",
				"prod": "patches/etcd.yaml:4:32 slow",
				"both": "error: patches/etcd.yaml:1:1: subscription \"etcd/etcd\" is declared twice, first at ../../operators/etcd.yaml:1:1: ",
				"out":  "error: quayside.yaml:4:42: \"../../../operators\" is outside of the workspace's Git repository, or of the workspace if there is none",
				"none": "error: ../../operatos: no such file or directory",
			} {
				p, err := workspace.Open(root("envs/"+env), workspace.Env{Getenv: func(string) string { return t.TempDir() }, Log: failingLogger{t}})
				check(t, err)
				if got := strings.Replace(channelOf(p), "main:envs/"+env+"/", "", 1); !strings.HasPrefix(got, want) {
					t.Errorf("%s: got %s, want %s", env, got, want)
				}
				if _, err := p.Mirrors(); err != nil {
					t.Errorf("%s: %v", env, err)
				}
			}
			p, err := workspace.Open(root("envs/dev"), env(t))
			check(t, err)
			set, err := p.Declarations()
			check(t, err)
			sh, err := p.OpenCatalogs(t.Context(), p.Catalogs(set), workspace.CatalogOptions{})
			check(t, err)
			defer sh.Close()
			for _, c := range p.Catalogs(set) {
				if err := sh.Broken(c.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// channelOf returns the position and the value of the channel of the only subscription, or the
// error.
func channelOf(p *workspace.Project) string {
	set, err := p.Declarations()
	if err != nil {
		return "error: " + err.Error()
	}
	s := set.Subscriptions[0]
	return s.At(declare.FieldChannel).String() + " " + s.Channels[0]
}

// TestSharedByLinks checks that links inside the repository are followed, and links out of it
// are rejected: links to a directory, to a file, and on the path to them. Without a repository,
// no file above the workspace is read.
func TestSharedByLinks(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "repo")
	check(t, os.CopyFS(dir, environments()))
	check(t, os.Rename(filepath.Join(dir, "operators"), filepath.Join(dir, "real")))
	check(t, os.CopyFS(filepath.Join(top, "outside"), mustSub(t, environments(), "operators")))
	relink := func(t *testing.T, name, target string) {
		check(t, os.RemoveAll(filepath.Join(dir, name)))
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		check(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for _, c := range []struct{ name, target, want string }{
		{"operators", "real", "../../operators/etcd.yaml:4:32 stable"},
		{"operators", "../outside", "error: ../../operators: symbolic link ../../operators points outside the repository: replace it with a copy of its target"},
		{"operators", filepath.Join(top, "outside"), "error: ../../operators: symbolic link ../../operators points outside the repository"},
		{"operators/etcd.yaml", "../real/etcd.yaml", "../../operators/etcd.yaml:4:32 stable"},
		{"operators/etcd.yaml", "../../outside/etcd.yaml", "error: ../../operators/etcd.yaml: symbolic link ../../operators/etcd.yaml points outside the repository"},
	} {
		check(t, os.RemoveAll(filepath.Join(dir, "operators")))
		relink(t, c.name, c.target)
		for _, repository := range []bool{true, false} {
			want := c.want
			check(t, os.RemoveAll(filepath.Join(dir, ".git")))
			if repository {
				gittest.Run(t, dir, "init", "-q")
			} else {
				want = "error: quayside.yaml:4:18: \"../../operators\" is outside of the workspace's Git repository"
			}
			p, err := workspace.Open(workspace.Dir(filepath.Join(dir, "envs/dev")), env(t))
			check(t, err)
			if got := channelOf(p); !strings.HasPrefix(got, want) {
				t.Errorf("%s → %s, repository %v:\ngot  %s\nwant %s", c.name, c.target, repository, got, want)
			}
		}
	}
}

func mustSub(t *testing.T, fsys fs.FS, dir string) fs.FS {
	t.Helper()
	sub, err := fs.Sub(fsys, dir)
	check(t, err)
	return sub
}
