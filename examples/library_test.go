package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibrary builds and runs the programs in examples/library, a separate module like the module of a user.
func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds programs")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./...")
	build.Dir = "library"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	changed := t.TempDir()
	for name, replicas := range map[string]string{"before": "1", "after": "3"} {
		text := strings.ReplaceAll("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: ops}\nspec: {replicas: N}\n", "N", replicas)
		if err := os.Mkdir(filepath.Join(changed, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(changed, name, "app.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"resolve", "quickstart/subscriptions", "quickstart/catalog-src"}, []string{"kind: Lock\n", "package: vault\n", "operators/vault.vault/role_vault-operator.yaml\n"}},
		{[]string{"images", "quickstart/quayside.lock"}, []string{"vault/vault "}},
		{[]string{"compare", filepath.Join(changed, "before"), filepath.Join(changed, "after")}, []string{"pods.replicas Deployment ops/app 3 replicas, was 1\n"}},
	} {
		source, err := os.ReadFile(filepath.Join("library", c.args[0], "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte("\n")); n > 40 {
			t.Errorf("%s has %d lines, want at most 40", c.args[0], n)
		}
		out, err := exec.Command(filepath.Join(bin, c.args[0]), c.args[1:]...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", c.args[0], err, out)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s does not print %q:\n%s", c.args[0], want, out)
			}
		}
	}
}
