package declare_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
)

// repository draws a base with a chain of overlays and a component. It returns the directory at the
// end of the chain.
func repository(t *rapid.T) (fstest.MapFS, string) {
	fsys := fstest.MapFS{}
	write := func(name, text string) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }
	names := []string{"etcd", "kafka", "vault"}[:rapid.IntRange(1, 3).Draw(t, "operators")]
	list, inList := "", rapid.Bool().Draw(t, "list")
	for _, name := range names {
		object := fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: %s\n  namespace: ops\nspec:\n  name: %s\n  channel: base\n  source: hub\n  sourceNamespace: olm\n", name, name)
		if rapid.Bool().Draw(t, "flow") {
			object = fmt.Sprintf("# first\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {namespace: ops, name: %s}\nspec: {channel: 'base', name: %s, source: hub, sourceNamespace: olm}\n", name, name)
		}
		if inList {
			list += "- " + strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(object, "# first\n")), "\n", "\n  ") + "\n"
		} else {
			list += "---\n" + object
		}
	}
	if inList {
		list = "apiVersion: v1\nkind: List\nitems:\n" + list
	}
	write("base/all.yaml", list)
	write("base/kustomization.yaml", "resources:\n- all.yaml\n")
	dir := "base"
	for i := range rapid.IntRange(0, 3).Draw(t, "overlays") {
		next := fmt.Sprintf("over%d", i)
		k := "resources: [../" + dir + "]\n" + rapid.SampledFrom([]string{"", "", "namespace: team\n", "nameSuffix: -x\n", "labels: [{pairs: {a: b}}]\n"}).Draw(t, "change")
		name := rapid.SampledFrom(names).Draw(t, "patched")
		target := "- target: {kind: Subscription, name: " + name + ".*}\n"
		switch channel := fmt.Sprintf("c%d", i); rapid.IntRange(0, 4).Draw(t, "patch") {
		case 0:
			k += "patches:\n" + target + "  patch: |\n    - {op: replace, path: /spec/channel, value: " + channel + "}\n"
		case 1:
			k += "patches:\n" + target + "  path: p.yaml\n"
			write(next+"/p.yaml", "kind: any\nmetadata: {name: any}\nspec:\n  channel: "+channel+"\n")
		case 2:
			k += "patches:\n" + target + "  patch: |-\n    kind: any\n    metadata: {name: any}\n    spec: {installPlanApproval: Manual, channel: " + channel + "}\n"
		case 3:
			k += "components: [../part]\n"
			write("part/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"+target+"  patch: \"- op: replace\\n  path: /spec/channel\\n  value: part\"\n")
		}
		write(next+"/kustomization.yaml", k)
		dir = next
	}
	return fsys, dir
}

// TestKustomizeEqualsUpstream compares the declarations of a kustomization with the declarations in the output
// of kustomize. It also compares their positions with the source files.
func TestKustomizeEqualsUpstream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys, dir := repository(t)
		got, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths(dir)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := overlay.New(overlay.FileFunc(func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) })).Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		built, err := o.Build()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, object := range built {
			text.WriteString("---\n" + string(object) + "\n")
		}
		want, err := declare.Parse("built", []byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{})); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		for _, s := range got.Subscriptions {
			for field, pos := range s.Fields {
				lineAt(t, fsys, field, pos)
			}
			pos := s.At(declare.FieldChannel)
			said := strings.Trim(lineAt(t, fsys, "spec.channel", pos), "'")
			if !strings.HasPrefix(said, s.Channels[0]) && !strings.Contains(said, "value: part") {
				t.Fatalf("channel %s of %s at %s: the line has %q", s.Channels[0], s.Key(), pos, said)
			}
		}
	})
}

// lineAt returns the rest of the line at a position, and fails if there is none.
func lineAt(t *rapid.T, fsys fs.FS, field string, pos diag.Pos) string {
	data, err := fs.ReadFile(fsys, pos.File)
	lines := strings.Split(string(data), "\n")
	if err != nil || pos.Line > len(lines) || pos.Line > 0 && pos.Col > len(lines[pos.Line-1]) {
		t.Fatalf("position of %s: %s: %v", field, pos, err)
	}
	if pos.Line == 0 {
		return ""
	}
	return lines[pos.Line-1][pos.Col-1:]
}
