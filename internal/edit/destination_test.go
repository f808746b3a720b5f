package edit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

type quiet struct{}

func (quiet) Progress(string, ...any) {}
func (quiet) Pull(registry.Progress)  {}
func (quiet) Done()                   {}
func (quiet) Detail(string, ...any)   {}
func (quiet) Note(string, ...any)     {}
func (quiet) Warn([]diag.Warning)     {}

// TestDestination chooses where declarations are written to, and asks where that is
// ambiguous.
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
		{"[../../built]", "", "", "quayside.yaml: spec.declarations names no plain directory to put declarations in: add one, such as subscriptions"},
		{"[../../built, patches]", "newDeclarations: ../../built", "", "quayside.yaml:5:20: spec.newDeclarations: ../../built: built by a kustomization: edit that by hand, or name another of spec.declarations"},
		{"[../../absent, patches]", "", "../../absent", "--to ../../absent: not one of spec.declarations (patches)"},
	} {
		files := fstest.MapFS{
			"operators/etcd.yaml":      {},
			"production/etcd.yaml":     {},
			"built/kustomization.yaml": {},
			"envs/dev/patches/a.yaml":  {},
			"envs/dev/quayside.yaml":   {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: " + c.declarations + "\n  " + c.more + "\n")},
		}
		p, err := project.Open(project.Files(files, "", "envs/dev"), project.Env{Talk: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		asked := ""
		got, err := destination(t.Context(), p, Wish{To: c.to, Choose: func(_ context.Context, _ string, options []string) (string, error) {
			asked = "asked for " + strings.Join(options, " ") + ": "
			return options[len(options)-1], nil
		}})
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
