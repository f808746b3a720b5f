package edit

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/app/workspace"
)

// TestInterrupted stops an edit after each step and repeats it. The files must be equal to those
// of an uninterrupted run.
func TestInterrupted(t *testing.T) {
	add := func(packages ...string) func(context.Context, *workspace.Project) (*Edit, error) {
		return func(ctx context.Context, p *workspace.Project) (*Edit, error) {
			return Add(ctx, p, AddOptions{Packages: packages, Namespace: "other"})
		}
	}
	remove := func(operators ...string) func(context.Context, *workspace.Project) (*Edit, error) {
		return func(ctx context.Context, p *workspace.Project) (*Edit, error) { return Remove(ctx, p, operators) }
	}
	for name, edit := range map[string]func(context.Context, *workspace.Project) (*Edit, error){
		"add": add("vault", "etcd@singlenamespace-alpha"), "add one": add("vault"),
		"remove": remove("vault/vault", "at-operator"), "remove one": remove("memcached-operator"),
	} {
		t.Run(name, func(t *testing.T) {
			steps := func(dir string) []func() error {
				p, err := workspace.Open(workspace.Dir(dir), workspace.Env{Offline: true, Getenv: func(key string) string {
					return map[string]string{"XDG_CACHE_HOME": t.TempDir()}[key]
				}})
				if err != nil {
					t.Fatal(err)
				}
				e, err := edit(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if e.Resolution.Lock == nil {
					t.Fatal(e.Resolution.Failed)
				}
				return e.steps()
			}
			run := func(steps []func() error) {
				for _, step := range steps {
					if err := step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			once := copyQuickstart(t)
			all := steps(once)
			run(all)
			if len(all) < 2 {
				t.Fatalf("%d steps", len(all))
			}
			for n := range len(all) {
				dir := copyQuickstart(t)
				run(steps(dir)[:n])
				run(steps(dir))
				if d := cmp.Diff(readFiles(t, once), readFiles(t, dir)); d != "" {
					t.Errorf("after %d of %d steps (-once +again):\n%s", n, len(all), d)
				}
			}
		})
	}
}

func copyQuickstart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}
