package edit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// TestDestination checks which entry of spec.declarations Destination returns, and the question that it asks if
// several entries are possible.
func TestDestination(t *testing.T) {
	for _, c := range []struct{ declarations, more, to, want string }{
		{"[subscriptions]", "", "", "subscriptions"},
		{"[../../operators]", "", "", "../../operators"},
		{"[../../operators, patches]", "", "", "patches"},
		{"[../../operators, patches]", "", "../../operators/", "../../operators"},
		{"[../../operators, patches]", "newDeclarations: ../../operators/", "", "../../operators"},
		{"[../../operators, patches]", "newDeclarations: ../../operators", "patches", "patches"},
		{"[../../operators, ../../production]", "", "", "asked for ../../operators ../../production: ../../production"},
		{"[patches, subscriptions]", "", "", "asked for patches subscriptions: subscriptions"},
		{"[../../operators/etcd.yaml]", "", "", "../../operators/etcd.yaml, a file"},
		{"[../../operators/etcd.yaml, ../../production]", "", "", "../../production"},
		{"[../../built, ../../operators]", "", "", "../../operators"},
		{"[../../built]", "", "", "quayside.yaml: spec.declarations has no plain directory for new declarations: add one, such as subscriptions"},
		{"[../../built, patches]", "newDeclarations: ../../built", "", "quayside.yaml:5:20: spec.newDeclarations: ../../built: built by a kustomization: edit the kustomization by hand, or choose another path of spec.declarations"},
		{"[../../absent, patches]", "", "../../absent", "--to ../../absent: not one of spec.declarations (patches)"},
	} {
		files := fstest.MapFS{
			"operators/etcd.yaml":      {},
			"production/etcd.yaml":     {},
			"built/kustomization.yaml": {},
			"envs/dev/patches/a.yaml":  {},
			"envs/dev/quayside.yaml":   {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: " + c.declarations + "\n  " + c.more + "\n")},
		}
		p, err := workspace.Open(workspace.Files(files, "", "envs/dev"), workspace.Env{})
		if err != nil {
			t.Fatal(err)
		}
		asked := ""
		got, err := edit.Destination(t.Context(), p, c.to, func(_ context.Context, _ string, options []string) (string, error) {
			asked = "asked for " + strings.Join(options, " ") + ": "
			return options[len(options)-1], nil
		})
		text := asked + got.Path
		if got.IsFile {
			text += ", a file"
		}
		if err != nil {
			text = fmt.Sprint(err)
		}
		if text != c.want {
			t.Errorf("%s %s --to %q:\ngot  %s\nwant %s", c.declarations, c.more, c.to, text, c.want)
		}
	}
}
