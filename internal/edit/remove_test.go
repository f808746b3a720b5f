package edit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/subscription"
)

// TestWithout takes documents out of files as people write them: what is left
// declares the others, and every line of theirs is still there.
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
		before, err := subscription.Parse("a.yaml", []byte(text.String()))
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
		left := without([]byte(text.String()), lines)
		if len(gone) == 0 && string(left) != text.String() {
			t.Fatalf("changed without anything to go:\n%s", left)
		}
		after, err := subscription.Parse("a.yaml", left)
		if err != nil {
			t.Fatalf("%v\n%s", err, left)
		}
		if len(after.Subscriptions) != n-len(gone) || empty(left) != (len(gone) == n) {
			t.Fatalf("%d are left of %d without %d:\n%s", len(after.Subscriptions), n, len(gone), left)
		}
		for i := range n {
			if strings.Contains(string(left), fmt.Sprintf("# keep %d", i)) == slices.Contains(gone, i) {
				t.Fatalf("document %d:\n%s", i, left)
			}
		}
	})
}

// TestDraftsAreRead reads what is written in every dialect back.
func TestDraftsAreRead(t *testing.T) {
	name := rapid.StringMatching(`[a-z]([a-z0-9]{0,6}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		d := draft{
			dialect:   rapid.SampledFrom([]subscription.Dialect{subscription.Quayside, subscription.V0, subscription.V1}).Draw(t, "dialect"),
			name:      name.Draw(t, "name"),
			namespace: name.Draw(t, "namespace"), pkg: name.Draw(t, "package"),
			channel: rapid.SampledFrom([]string{"", "stable", "1.0", "true"}).Draw(t, "channel"),
		}
		d.catalog.Name = name.Draw(t, "catalog")
		switch d.dialect {
		case subscription.V0:
			d.catalog.Namespace, d.group = name.Draw(t, "catalog namespace"), rapid.Bool().Draw(t, "group")
			d.watch = rapid.SampledFrom([][]string{{"*"}, {"a"}, {"a", "b"}}).Draw(t, "watch")
		default:
			d.version = rapid.SampledFrom([]string{"", "1.2.3", ">=1 <2", "1.x"}).Draw(t, "version")
			d.watch = rapid.SampledFrom([][]string{nil, {"a"}}).Draw(t, "watch")
		}
		text := d.text()
		set, err := subscription.Parse("a.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s := set.Subscriptions[0]
		var channels []string
		if d.channel != "" {
			channels = []string{d.channel}
		}
		if s.Dialect != d.dialect || s.Namespace != d.namespace || s.Package != d.pkg || s.Range != d.version || !slices.Equal(s.Channels, channels) {
			t.Fatalf("%+v comes of\n%s", s, text)
		}
		if d.dialect != subscription.V0 && !slices.Equal(s.Watch, d.watch) {
			t.Fatalf("watches %q, want %q", s.Watch, d.watch)
		}
		if d.group != (len(set.OperatorGroups) == 1) {
			t.Fatalf("%d OperatorGroups:\n%s", len(set.OperatorGroups), text)
		}
		if again := yamlnode.Append(text, text); len(again) != 2*len(text)+len("---\n") {
			t.Fatalf("%s", again)
		}
	})
}
