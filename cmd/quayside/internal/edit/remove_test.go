package edit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestWithout removes documents from handwritten files. All lines of the other documents must remain.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		n := rapid.IntRange(1, 6).Draw(t, "documents")
		mark := rapid.SampledFrom([]string{"---\n", "--- # next\n", "\n---\n", "# end\n---\n# begin\n"}).Draw(t, "marker")
		if rapid.Bool().Draw(t, "first marker") {
			text.WriteString("---\n")
		}
		for i := range n {
			if i > 0 {
				text.WriteString(mark)
			}
			fmt.Fprintf(&text, "%sapiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: s%d, namespace: ns}\nspec: {package: p%d} # keep %d\n",
				rapid.SampledFrom([]string{"", "# a comment\n", "\n\n"}).Draw(t, "before"), i, i, i)
		}
		before, err := declare.Parse("a.yaml", []byte(text.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		gone := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "gone")
		var lines []int
		for _, s := range before.Subscriptions {
			if slices.Contains(gone, int(s.Name[1]-'0')) {
				lines = append(lines, s.Pos.Line)
			}
		}
		left := yamlnode.DeleteDocuments([]byte(text.String()), lines)
		if len(gone) == 0 && string(left) != text.String() {
			t.Fatalf("changed without anything to go:\n%s", left)
		}
		after, err := declare.Parse("a.yaml", left)
		if err != nil {
			t.Fatalf("%v\n%s", err, left)
		}
		if len(after.Subscriptions) != n-len(gone) || yamlnode.HasDocuments(left) == (len(gone) == n) {
			t.Fatalf("%d are left of %d without %d:\n%s", len(after.Subscriptions), n, len(gone), left)
		}
		for i := range n {
			if strings.Contains(string(left), fmt.Sprintf("# keep %d", i)) == slices.Contains(gone, i) {
				t.Fatalf("document %d:\n%s", i, left)
			}
		}
	})
}

// TestDraftsAreRead writes random declarations in every dialect to drafts, and parses the drafts.
func TestDraftsAreRead(t *testing.T) {
	name := rapid.StringMatching(`[a-z]([a-z0-9]{0,6}[a-z0-9])?`)
	p, err := workspace.Open(workspace.Files(fstest.MapFS{"quayside.yaml": {Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n")}}, "", "."), workspace.Env{})
	check(t, err)
	rapid.Check(t, func(t *rapid.T) {
		w := declare.Writers()[rapid.IntRange(0, len(declare.Writers())-1).Draw(t, "dialect")]
		d := declare.Declaration{
			Name:      name.Draw(t, "name"),
			Namespace: name.Draw(t, "namespace"), Package: name.Draw(t, "package"),
			Channel: rapid.SampledFrom([]string{"", "stable", "1.0", "true"}).Draw(t, "channel"),
		}
		d.Catalog.Name = name.Draw(t, "catalog")
		switch {
		case w.HasGroup:
			d.Catalog.Namespace, d.Group = name.Draw(t, "catalog namespace"), rapid.Bool().Draw(t, "group")
			d.Watch = rapid.SampledFrom([][]string{{"*"}, {"a"}, {"a", "b"}}).Draw(t, "watch")
		default:
			d.Version = rapid.SampledFrom([]string{"", "1.2.3", ">=1 <2", "1.x"}).Draw(t, "version")
			d.Watch = rapid.SampledFrom([][]string{nil, {"a"}}).Draw(t, "watch")
		}
		var text []byte
		for _, o := range w.Objects(d) {
			text = yamlnode.Append(text, yamlnode.Encode(o))
		}
		draft := edit.NewDraft(p)
		if _, err := draft.Add("a.yaml", w.Objects(d)...); err != nil {
			t.Fatal(err)
		}
		set, err := draft.Declared(&declare.Set{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s := set.Subscriptions[0]
		var channels []string
		if d.Channel != "" {
			channels = []string{d.Channel}
		}
		if s.Dialect != w.Dialect || s.Namespace != d.Namespace || s.Package != d.Package || s.Range != d.Version || !slices.Equal(s.Channels, channels) {
			t.Fatalf("%+v comes of\n%s", s, text)
		}
		if !w.HasGroup && !slices.Equal(s.Watch, d.Watch) {
			t.Fatalf("watches %q, want %q", s.Watch, d.Watch)
		}
		if d.Group != (len(set.OperatorGroups) == 1) {
			t.Fatalf("%d OperatorGroups:\n%s", len(set.OperatorGroups), text)
		}
		if again := yamlnode.Append(text, text); len(again) != 2*len(text)+len("---\n") {
			t.Fatalf("%s", again)
		}
	})
}
