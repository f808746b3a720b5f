package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/filetree"
)

// TestEditedFile checks that an edited file in the tree prevents all writes, unless force is set.
func TestEditedFile(t *testing.T) {
	const name = "operators/my-etcd.etcd/kustomization.yaml"
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(quickstart)))
	p, err := workspace.Open(workspace.Dir(dir), env(t))
	check(t, err)
	file := filepath.Join(dir, "rendered", name)
	before, err := os.ReadFile(file)
	check(t, err)
	check(t, os.WriteFile(file, append(before, "# edited\n"...), 0o600))

	report, err := p.CheckTree(t.Context(), true)
	check(t, err)
	if d := cmp.Diff([]filetree.FileChange{{Path: name, Kind: filetree.Modified}}, report.Changes); d != "" {
		t.Errorf("check: %s", d)
	}
	_, err = p.WriteTree(t.Context(), false)
	var refused *workspace.EditedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "rendered/"+name) || !strings.Contains(err.Error(), "overlays/<cluster>/") {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) == string(before) {
		t.Errorf("refused, but the file was written: %v", err)
	}
	_, err = p.WriteTree(t.Context(), true)
	check(t, err)
	if got, err := os.ReadFile(file); err != nil || string(got) != string(before) {
		t.Errorf("forced, but not written: %v", err)
	}
}
