package workspace_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/testing/repotest"
	"github.com/quayside/quayside/lockfile"
)

// workspaceOf returns the files of r, plus a workspace for the declarations in r, and a catalog of packages.
func workspaceOf(r repotest.Repository, packages []repotest.Operator) fstest.MapFS {
	files := r.Files()
	write := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	write("quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: ["+strings.Join(r.Paths, ", ")+"]\n  catalogs: [{name: hub, namespace: olm, source: 'dir:catalog'}]\n")
	for _, o := range packages {
		csv := fmt.Sprintf(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "%s.v1.0.0"}, "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}], "install": {"strategy": "deployment", "spec": {"deployments": []}}}}`, o.Package)
		text := fmt.Sprintf("schema: olm.package\nname: %s\ndefaultChannel: stable\n", o.Package)
		for _, channel := range []string{"stable", "fast", "component", "patched", "replaced", "tool", "variable"} {
			text += fmt.Sprintf("---\nschema: olm.channel\npackage: %s\nname: %s\nentries: [{name: %[1]s.v1.0.0}]\n", o.Package, channel)
		}
		text += fmt.Sprintf("---\nschema: olm.bundle\npackage: %s\nname: %[1]s.v1.0.0\nproperties:\n- {type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}\n- {type: olm.bundle.object, value: {data: %s}}\n", o.Package, base64.StdEncoding.EncodeToString([]byte(csv)))
		write("catalog/"+o.Package+".yaml", text)
	}
	return files
}

func resolvePartial(t *rapid.T, p *workspace.Project) *lockfile.File {
	in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions(), Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	res, err := workspace.Resolve(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return res.Lock
}

// TestPinsProperty resolves random repositories twice. Between the two runs, it removes operators and adds
// faults. A pin may disappear only if its declaration was certainly removed.
func TestPinsProperty(t *testing.T) {
	e := env(t)
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, false)
		if len(r.Applied) == 0 {
			t.Skip("no operators")
		}
		open := func(files fstest.MapFS) *workspace.Project {
			p, err := workspace.Open(workspace.Files(files, "map:", "."), e)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		before := resolvePartial(t, open(workspaceOf(r, r.Applied)))
		later := r.Changed(t)
		if len(later.Applied)+len(later.Lost) == 0 {
			t.Skip("nothing is declared")
		}
		files := workspaceOf(later, r.Applied)
		files["quayside.lock"] = &fstest.MapFile{Data: lockfile.Format(before)}
		after := resolvePartial(t, open(files))
		for _, o := range r.Applied {
			pinned := func(lock *lockfile.File) int {
				return slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool { return p.Namespace == o.Namespace && p.Package == o.Package })
			}
			declares := func(list []repotest.Operator) bool {
				return slices.ContainsFunc(list, func(x repotest.Operator) bool {
					return x.Namespace == o.Namespace && x.Name == o.Name
				})
			}
			was, is := pinned(before), pinned(after)
			switch {
			case was < 0:
				t.Fatalf("%s is not pinned", o)
			case is < 0 && (declares(later.Applied) || declares(later.Lost)):
				t.Fatalf("the pin of %s disappeared", o)
			case is >= 0 && !declares(later.Applied) && !declares(later.Lost) && later.Faults == 0:
				t.Fatalf("%s was removed, but is still pinned", o)
			case is >= 0 && declares(later.Lost) && !declares(later.Applied) && (after.Pins[is].Channel != before.Pins[was].Channel || string(after.Pins[is].Config) != string(before.Pins[was].Config)):
				t.Fatalf("the pin of %s changed, although its declaration cannot be read", o)
			}
		}
	})
}
