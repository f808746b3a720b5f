package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/lockfile"
)

// failingLogger is a logger that fails the test on notes and warnings. It permits warnings about
// deprecated fields, because some test kustomizations have such fields on purpose.
type failingLogger struct{ testing.TB }

func (failingLogger) Progress(string, ...any)           {}
func (failingLogger) Detail(string, ...any)             {}
func (failingLogger) Pull(string, string, int64, int64) {}
func (failingLogger) Done()                             {}
func (s failingLogger) Note(f string, args ...any) {
	s.Errorf(f, args...)
}

func (s failingLogger) Warn(ws []diag.Warning) {
	for _, w := range ws {
		if w.Code != "deprecated-field" {
			s.Errorf("warning: %v", w)
		}
	}
}

// env returns an environment with a new store. In this environment, creating a temporary directory fails.
func env(t testing.TB) workspace.Env {
	cache := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(cache, "no", "such", "directory"))
	getenv := func(key string) string {
		if key == "XDG_CACHE_HOME" {
			return cache
		}
		return ""
	}
	return workspace.Env{Getenv: getenv, Version: "test", Offline: true, Log: failingLogger{t}}
}

const quickstart = "../../../../examples/quickstart"

// quickstartFiles returns the files of the quickstart with replaced contents. An empty content removes
// the file.
func quickstartFiles(t testing.TB, replaced map[string]string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	check(t, fs.WalkDir(os.DirFS(quickstart), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(quickstart, name))
		out[name] = &fstest.MapFile{Data: data}
		return err
	}))
	for name, text := range replaced {
		if text == "" {
			delete(out, name)
		} else {
			out[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return out
}

// commitFiles commits files as the directory ops, and returns the revision. The work tree is
// empty afterwards.
func commitFiles(t testing.TB, files fs.FS) *gitrepo.Revision {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(filepath.Join(dir, "ops"), files))
	gittest.Run(t, dir, "init", "-q")
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-qm", "all")
	check(t, os.RemoveAll(filepath.Join(dir, "ops")))
	repo, err := gitrepo.Open(dir)
	check(t, err)
	rev, err := repo.Revision("main")
	check(t, err)
	return rev
}

// forEachRoot calls run with the same files opened from a directory, a map and a revision.
func forEachRoot(t *testing.T, files fstest.MapFS, run func(t *testing.T, p *workspace.Project)) {
	rev := commitFiles(t, files)
	dir := t.TempDir()
	check(t, os.CopyFS(dir, files))
	for name, open := range map[string]func(workspace.Env) (*workspace.Project, error){
		"directory": func(e workspace.Env) (*workspace.Project, error) { return workspace.Open(workspace.Dir(dir), e) },
		"map": func(e workspace.Env) (*workspace.Project, error) {
			return workspace.Open(workspace.Files(files, "map:", "."), e)
		},
		"revision": func(e workspace.Env) (*workspace.Project, error) {
			return workspace.Open(workspace.Revision(rev, "ops"), e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := open(env(t))
			check(t, err)
			run(t, p)
		})
	}
}

// TestRoots resolves and renders a workspace on every kind of root, and compares the results
// with the committed lock and tree.
func TestRoots(t *testing.T) {
	for name, replaced := range map[string]map[string]string{
		"with its lock":    nil,
		"without its lock": {"quayside.lock": ""},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(quickstart, workspace.LockFile))
			check(t, err)
			forEachRoot(t, quickstartFiles(t, replaced), func(t *testing.T, p *workspace.Project) {
				ctx := context.Background()
				in, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: p.ResolveOptions()})
				check(t, err)
				res, err := workspace.Resolve(ctx, in)
				check(t, errors.Join(err, res.Failed))
				if got := lockfile.Format(res.Lock); string(got) != string(want) {
					t.Errorf("the lock differs:\n%s", got)
				}
				rendered, err := p.Render(ctx, res.Lock)
				check(t, err)
				have, err := p.Rendered(filetree.New())
				check(t, err)
				if d := filetree.Diff(have, rendered.Tree); have.Len() < 10 || len(d) > 0 {
					t.Errorf("of %d files in the tree there differ: %v", have.Len(), d)
				}
			})
		})
	}
}

// TestCatalogForms reads catalogs in every file format, on every kind of root.
func TestCatalogForms(t *testing.T) {
	settings := func(source string) map[string]string {
		data, err := os.ReadFile(filepath.Join(quickstart, "quayside.yaml"))
		check(t, err)
		return map[string]string{
			"quayside.lock": "", "quayside.yaml": strings.ReplaceAll(string(data), "oci:catalog", source),
		}
	}
	for _, source := range []string{"oci:catalog", "bundles:catalog-src"} {
		t.Run(source, func(t *testing.T) {
			forEachRoot(t, quickstartFiles(t, settings(source)), func(t *testing.T, p *workspace.Project) {
				in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions()})
				check(t, err)
				if got := len(in.Index.CatalogsWith("etcd")); got != 1 {
					t.Errorf("%d catalogs have etcd: %v", got, in.Index.Broken())
				}
			})
		})
	}
}

// TestFaultsNameTheFile checks that errors name the invalid file relative to the workspace, or with its revision.
func TestFaultsNameTheFile(t *testing.T) {
	t.Run("settings", func(t *testing.T) {
		rev := commitFiles(t, fstest.MapFS{"quayside.yaml": {Data: []byte("nonsense: true\n")}})
		if _, err := workspace.Open(workspace.Revision(rev, "ops"), env(t)); err == nil || !strings.HasPrefix(err.Error(), "main:ops/quayside.yaml:1") {
			t.Errorf("error %v", err)
		}
	})
	for name, c := range map[string]struct {
		files map[string]string
		read  func(p *workspace.Project) error
		want  string
	}{
		"lock": {map[string]string{"quayside.lock": "x: y\n"}, func(p *workspace.Project) error { _, err := p.Lock(); return err }, "quayside.lock:"},
		"no lock": {
			map[string]string{"quayside.lock": ""},
			func(p *workspace.Project) error { _, err := p.NeedLock(); return err },
			"no quayside.lock in ",
		},
		"declarations": {
			map[string]string{"subscriptions/etcd.yaml": "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nspec: {nam: x}\n"},
			func(p *workspace.Project) error { _, err := p.Declarations(); return err }, "subscriptions/etcd.yaml:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachRoot(t, quickstartFiles(t, c.files), func(t *testing.T, p *workspace.Project) {
				err := c.read(p)
				if err == nil || strings.Count(err.Error(), c.want) == 0 {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if again := c.read(p); again == nil || again.Error() != err.Error() {
					t.Errorf("the second time: %v", again)
				}
			})
		})
	}
}

// TestOutside checks the error for a path outside of a root that is not on disk.
func TestOutside(t *testing.T) {
	files := quickstartFiles(t, nil)
	settings := string(files["quayside.yaml"].Data) + "  mirrors: [../mirrors.yaml]\n"
	files["quayside.yaml"] = &fstest.MapFile{Data: []byte(settings)}
	p, err := workspace.Open(workspace.Files(files, "map:", "."), workspace.Env{Log: failingLogger{t}})
	check(t, err)
	want := "map:quayside.yaml:10:13: ../mirrors.yaml is outside of the repository"
	if _, err := p.Mirrors(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestDeclarationsAround builds a kustomization that refers to files of the repository outside of the
// workspace. It does so on disk and in a revision. In both cases, symbolic links must be rejected.
func TestDeclarationsAround(t *testing.T) {
	dir := t.TempDir()
	check(t, os.CopyFS(dir, fstest.MapFS{
		"operators/etcd/base/kustomization.yaml":         {Data: []byte("resources: [etcd.yaml]\n")},
		"operators/etcd/base/etcd.yaml":                  {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: etcd}\nspec: {package: etcd, channel: none}\n")},
		"envs/prod/quayside.yaml":                        {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n")},
		"envs/prod/subscriptions/kustomization.yaml":     {Data: []byte("resources: [../../../operators/etcd/base]\npatches: [{path: channel.yaml}]\n")},
		"envs/prod/subscriptions/channel.yaml":           {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: etcd}\nspec: {channel: stable}\n")},
		"envs/linked/quayside.yaml":                      {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n")},
		"envs/linked/subscriptions/kustomization.yaml":   {Data: []byte("resources: [etcd.yaml]\n")},
		"envs/outside/quayside.yaml":                     {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n")},
		"envs/outside/subscriptions/a/kustomization.yml": {Data: []byte("resources: [../../../../../elsewhere]\n")},
	}))
	check(t, os.Symlink("../../../operators/etcd/base/etcd.yaml", filepath.Join(dir, "envs/linked/subscriptions/etcd.yaml")))
	gittest.Run(t, dir, "init", "-q")
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-qm", "all")
	repo, err := gitrepo.Open(dir)
	check(t, err)
	rev, err := repo.Revision("main")
	check(t, err)
	for name, root := range map[string]func(env string) workspace.Root{
		"directory": func(env string) workspace.Root { return workspace.Dir(filepath.Join(dir, "envs", env)) },
		"revision":  func(env string) workspace.Root { return workspace.Revision(rev, "envs/"+env) },
	} {
		t.Run(name, func(t *testing.T) {
			p, err := workspace.Open(root("prod"), env(t))
			check(t, err)
			set, err := p.Declarations()
			check(t, err)
			s := set.Subscriptions[0]
			if got := s.Pos.String() + " " + s.At(declare.FieldChannel).String() + " " + s.Channels[0]; got != "../../operators/etcd/base/etcd.yaml:1:1 subscriptions/channel.yaml:4:17 stable" {
				t.Errorf("declared at %s", got)
			}
			for env, want := range map[string]string{
				"linked":  "subscriptions/kustomization.yaml:1:13: ",
				"outside": "subscriptions/a/kustomization.yml:1:13: \"../../../../../elsewhere\" is outside of the repository",
			} {
				p, err := workspace.Open(root(env), p.Env)
				check(t, err)
				if _, err := p.Declarations(); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s: %v, want %s", env, err, want)
				}
			}
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
