package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// TestOlderSchema opens a workspace with a lock of an older schema. The lock satisfies the
// declarations without a migration, every write migrates it with a note, and a split proposes
// only the migration.
func TestOlderSchema(t *testing.T) {
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(quickstart)))
	e := env(t)
	e.Log = failingLogger{t}
	p, err := workspace.Open(workspace.Dir(dir), e)
	check(t, err)
	set, err := p.Declarations()
	check(t, err)
	lock, err := p.NeedLock()
	check(t, err)
	want := lockfile.Format(lock)
	lock.ReadSchema = lockfile.Schema - 2
	older := p.With(p.Settings, set, lock)

	opt := older.ResolveOptions()
	opt.Upgrade = true
	in, err := workspace.ReadProblem(t.Context(), older, workspace.Request{Options: opt})
	check(t, err)
	if v, err := in.Check(t.Context(), workspace.CheckScope{}); err != nil || len(v.Stale) > 0 {
		t.Errorf("an older lock is not accepted: %v, %v", err, v.Stale)
	}
	upgrades, err := workspace.Split(t.Context(), in)
	check(t, err)
	parts := upgrades.Parts
	if len(parts) != 1 || len(parts[0].Operators) > 0 || string(lockfile.Format(parts[0].Lock)) != string(want) {
		t.Errorf("want one part that migrates, got %+v", parts)
	}

	file := filepath.Join(dir, workspace.LockFile)
	check(t, os.WriteFile(file, []byte("older"), 0o600))
	r, err := older.WriteTree(t.Context(), false)
	check(t, err)
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("the lock was not migrated: %v\n%s", err, got)
	}
	if note := fmt.Sprintf("migrated quayside.lock from schema %d to %d", lock.ReadSchema, lockfile.Schema); !slices.Contains(r.Notes, note) {
		t.Errorf("noted %q, want %q", r.Notes, note)
	}
}
