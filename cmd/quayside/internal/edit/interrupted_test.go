package edit_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// TestInterrupted stops an edit before it writes one of the files, and repeats the edit. To stop the edit, it puts
// a directory in the place of the file. In the end, the files must be equal to those of an uninterrupted run.
func TestInterrupted(t *testing.T) {
	add := func(packages ...string) func(context.Context, *workspace.Project) (*edit.Edit, error) {
		return func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) {
			return edit.Add(ctx, p, edit.AddOptions{Packages: packages, Namespace: "other"})
		}
	}
	remove := func(operators ...string) func(context.Context, *workspace.Project) (*edit.Edit, error) {
		return func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) {
			return edit.Remove(ctx, p, operators, false)
		}
	}
	for name, change := range map[string]func(context.Context, *workspace.Project) (*edit.Edit, error){
		"add": add("vault", "etcd@singlenamespace-alpha"), "add one": add("vault"),
		"remove": remove("vault/vault", "at-operator"), "remove one": remove("memcached-operator"),
	} {
		t.Run(name, func(t *testing.T) {
			start := func(dir string) *edit.Edit {
				p, err := workspace.Open(workspace.Dir(dir), workspace.Env{Offline: true, Getenv: func(key string) string {
					return map[string]string{"XDG_CACHE_HOME": t.TempDir()}[key]
				}})
				check(t, err)
				e, err := change(t.Context(), p)
				check(t, err)
				return e
			}
			write := func(e *edit.Edit) error { _, err := e.Write(t.Context(), false); return err }
			once := copyQuickstart(t)
			all := start(once)
			check(t, write(all))
			names := []string{workspace.LockFile}
			for _, f := range all.Files {
				names = append(names, f.Path)
			}
			if len(names) < 2 {
				t.Fatalf("writes only %v", names)
			}
			for _, name := range names {
				dir := copyQuickstart(t)
				e, away := start(dir), t.TempDir()
				name, old := filepath.Join(dir, name), filepath.Join(away, "old")
				existed := os.Rename(name, old) == nil
				check(t, os.MkdirAll(filepath.Join(name, "full"), 0o755))
				if err := write(e); err == nil {
					t.Fatalf("not interrupted at %s", name)
				}
				check(t, os.RemoveAll(name))
				if existed {
					check(t, os.Rename(old, name))
				}
				check(t, write(start(dir)))
				if d := cmp.Diff(readFiles(t, once), readFiles(t, dir)); d != "" {
					t.Errorf("interrupted at %s (-once +again):\n%s", name, d)
				}
			}
		})
	}
}

func copyQuickstart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS("../../../../examples/quickstart")))
	return dir
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	check(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(data)
		return err
	}))
	return out
}
