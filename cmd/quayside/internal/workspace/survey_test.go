package workspace_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// TestSurveyedOnce checks that a workspace surveys its repository once, and a copy with other settings does so again.
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

// TestUnreadReasons lists the reasons why declarations are not read.
func TestUnreadReasons(t *testing.T) {
	request := func(name, more string) string {
		return "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: " + name + ", namespace: a}\nspec: {name: " + name + ", source: hub, sourceNamespace: olm" + more + "}\n"
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"quayside.yaml":           "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {declarations: [cluster, both, other]}\n",
		"base/k.yaml":             request("k", ""),
		"base/kustomization.yaml": "resources: [k.yaml]\n", "cluster/kustomization.yaml": "resources: [../base, apps]\n",
		"cluster/apps/kustomization.yaml": "resources: [missing.yaml]\n",
		"both/kustomization.yaml":         "resources: [one.yaml, two]\n", "both/one.yaml": request("b", ", channel: x"), "both/two/kustomization.yaml": "resources: [two.yaml]\nnameSuffix: -x\n", "both/two/two.yaml": request("y", ""),
		"cluster/left.yaml": request("l", ""),
		"other/s.yaml":      request("s", ""), "elsewhere/s.yaml": request("s", ", channel: fast"),
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	dir := t.TempDir()
	check(t, os.CopyFS(dir, files))
	p, err := workspace.Open(workspace.Dir(dir), workspace.Env{})
	check(t, err)
	states, err := p.DeclarationStates()
	check(t, err)
	got := map[string]string{}
	for _, s := range states {
		got[s.Pos] = s.Reason
	}
	want := map[string]string{
		"base/k.yaml:1:1":       `kustomization "cluster" cannot be built: cluster/apps/kustomization.yaml:1:13: "missing.yaml": file does not exist`,
		"both/one.yaml:1:1":     "",
		"both/two/two.yaml:1:1": "",
		"cluster/left.yaml:1:1": `is not listed by the kustomization "cluster"`,
		"other/s.yaml:1:1":      "",
		"elsewhere/s.yaml:1:1":  "no path of spec.declarations includes it: a/s is read from other/s.yaml:1:1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
