package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// TestSurveyedOnce surveys the repository of a workspace once, and again for a copy with other settings.
func TestSurveyedOnce(t *testing.T) {
	dir := t.TempDir()
	request := func(name string) {
		t.Helper()
		text := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: " + name + ", namespace: a}\nspec: {name: " + name + "}\n"
		check(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600))
	}
	request("first")
	p, err := workspace.Open(workspace.Dir(dir), workspace.Env{})
	check(t, err)
	count := func(p *workspace.Project) int {
		t.Helper()
		states, err := p.DeclarationStates()
		check(t, err)
		return len(states)
	}
	before := count(p)
	request("second")
	if before != 1 || count(p) != 1 {
		t.Errorf("%d, then %d declarations, want the same one", before, count(p))
	}
	if got := count(p.With(p.Settings, nil, nil)); got != 2 {
		t.Errorf("a copy has %d declarations, want 2", got)
	}
}
