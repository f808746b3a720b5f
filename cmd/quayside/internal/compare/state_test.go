package compare_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/lockfile"
)

// noteLogger is a logger that records notes and warnings.
type noteLogger struct{ notes []string }

func (*noteLogger) Progress(string, ...any)           {}
func (*noteLogger) Detail(string, ...any)             {}
func (*noteLogger) Pull(string, string, int64, int64) {}
func (*noteLogger) Done()                             {}
func (s *noteLogger) Note(f string, _ ...any) {
	s.notes = append(s.notes, f)
}

func (s *noteLogger) Warn(ws []diag.Warning) {
	for _, w := range ws {
		s.notes = append(s.notes, w.String())
	}
}

// repository returns the directory of a repository with the quickstart in ops/. The commit HEAD~1 lacks one pin
// and the tree.
func repository(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ops := filepath.Join(dir, "ops")
	check(t, os.CopyFS(ops, os.DirFS("../../../../examples/quickstart")))
	tree := filepath.Join(ops, "rendered")
	check(t, os.Rename(tree, filepath.Join(dir, ".away")))
	name := filepath.Join(ops, workspace.LockFile)
	lock, err := os.ReadFile(name)
	check(t, err)
	full, err := lockfile.Parse(name, lock)
	check(t, err)
	less := full.With(slices.DeleteFunc(slices.Clone(full.Pins), func(p lockfile.Pin) bool { return p.Package == "vault" }))
	if len(less.Pins) != len(full.Pins)-1 {
		t.Fatalf("the lock has no pin of vault:\n%s", lock)
	}
	check(t, os.WriteFile(name, lockfile.Format(less), 0o600))
	gittest.Run(t, dir, "init", "-q", "-b", "main")
	gittest.Run(t, dir, "add", "ops")
	gittest.Run(t, dir, "commit", "-qm", "before")
	check(t, os.WriteFile(name, lock, 0o600))
	check(t, os.Rename(filepath.Join(dir, ".away"), tree))
	gittest.Run(t, dir, "add", "ops")
	gittest.Run(t, dir, "commit", "-qm", "after")
	return dir
}

func open(t testing.TB, dir string, log workspace.Logger) *workspace.Project {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(cache, "no", "such", "directory"))
	p, err := workspace.Open(workspace.Dir(dir), workspace.Env{
		Getenv: func(key string) string {
			if key == "XDG_CACHE_HOME" {
				return cache
			}
			return ""
		},
		Version: "test", Offline: true, Log: log,
	})
	check(t, err)
	return p
}

// TestRevisions compares two revisions. The first must be rendered. The work tree lacks the catalog, and must
// not be used.
func TestRevisions(t *testing.T) {
	for _, c := range []struct {
		name, revisions string
		from            compare.TreeSource
		notes           int
		same            bool
	}{
		{"auto", "HEAD~1..HEAD", compare.Auto, 0, false},
		{"both rendered", "HEAD~1..HEAD", compare.Lock, 0, false},
		{"rendered and committed are the same", "HEAD..HEAD", compare.Lock, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := repository(t)
			check(t, os.RemoveAll(filepath.Join(dir, "ops", "catalog")))
			log := &noteLogger{}
			cmp, err := compare.Revisions(open(t, filepath.Join(dir, "ops"), log), c.from, "", c.revisions)
			check(t, err)
			report, err := cmp.Report(context.Background(), time.Unix(0, 0))
			check(t, err)
			if report.Empty() != c.same {
				t.Errorf("empty: %v, want %v", report.Empty(), c.same)
			}
			if len(log.notes) != c.notes {
				t.Errorf("said: %q", log.notes)
			}
			files, err := cmp.Files(context.Background())
			check(t, err)
			for _, f := range files {
				if !strings.HasPrefix(f.Path, "ops/rendered/") || strings.Contains(f.Path, "memcached") {
					t.Errorf("%s differs", f.Path)
				}
			}
			if got := cmp.InRepo(workspace.LockFile); got != "ops/quayside.lock" {
				t.Errorf("the lock is %s", got)
			}
		})
	}
}

// TestTrees compares directories, including a directory with itself.
func TestTrees(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	p := open(t, a, &noteLogger{})
	check(t, os.WriteFile(filepath.Join(b, "x.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"), 0o600))
	for _, c := range []struct {
		before, after string
		files         int
	}{{a, b, 1}, {b, a, 1}, {b, b, 0}} {
		cmp, err := compare.Trees(p, c.before, c.after)
		check(t, err)
		files, err := cmp.Files(context.Background())
		check(t, err)
		if c.before != c.after && len(files) != c.files || cmp.Before.Name != c.before || cmp.After.Name != c.after {
			t.Errorf("%s %s: %v", c.before, c.after, files)
		}
	}
	if _, err := compare.Trees(p, a, filepath.Join(b, "x.yaml")); err == nil || !strings.HasSuffix(err.Error(), "x.yaml is not a directory") {
		t.Errorf("a file: %v", err)
	}
}
