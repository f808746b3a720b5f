package workspace_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/workspace"
)

var update = flag.Bool("update", false, "write the shipped schema anew")

func TestSchemaIsShipped(t *testing.T) {
	const file = "../schema/workspace.schema.json"
	if *update {
		if err := os.WriteFile(file, workspace.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(workspace.Schema()), string(got)); d != "" {
		t.Errorf("%s is out of step, run go test ./workspace -update: -want +got\n%s", file, d)
	}
}

func TestDefaults(t *testing.T) {
	for name, in := range map[string]string{
		"empty":  "",
		"header": "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n",
		"nulls":  "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {output: ~, clusters: [], gitops: ~}\n",
	} {
		got, err := workspace.Parse("quayside.yaml", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(workspace.Default(), got, cmpopts.IgnoreFields(workspace.Workspace{}, "File", "Fields")); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}
