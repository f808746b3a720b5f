package inventory_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
)

// TestRankPackages checks that matches in names come before matches in descriptions, and that equally good
// matches keep their order.
func TestRankPackages(t *testing.T) {
	id := catalog.ID{Namespace: "olm", Name: "test"}
	summary := func(name, display, description string) cache.Summary {
		return cache.Summary{Summary: catalog.Summary{Name: name, DisplayName: display, Description: description, Version: "1.0.0", DefaultChannel: "stable"}, Catalog: id}
	}
	all := []cache.Summary{
		summary("store", "", "keeps lamp oil"), summary("desk-lamp", "", ""), summary("box", "Lamp Box", ""), summary("lamp", "", ""),
	}
	names := func(l inventory.PackageList) string {
		var out []string
		for _, p := range l.Packages {
			out = append(out, p.Package)
		}
		return strings.Join(out, " ")
	}
	if got := names(inventory.ListPackages(all)); got != "store desk-lamp box lamp" {
		t.Errorf("listed %s", got)
	}
	if got := names(inventory.RankPackages(all, []string{"lamp"})); got != "lamp desk-lamp box store" {
		t.Errorf("found %s", got)
	}
	all = []cache.Summary{summary("a", "", ""), summary("b", "", ""), summary("c", "", "")}
	all[0].Text, all[1].Text, all[2].Text = "a\na long text about clamps", "b\na long text about lamps", "c\nlamps"
	if got := names(inventory.RankPackages(all, []string{"lamp"})); got != "c b a" {
		t.Errorf("found %s by keywords", got)
	}
	if inventory.ListPackages(nil).Packages == nil {
		t.Error("no packages are null in JSON")
	}
}

// TestMatchWords checks that every word must match, regardless of upper and lower case.
func TestMatchWords(t *testing.T) {
	for words, want := range map[string]bool{"": true, "lamp": true, "LAMP oil": true, "lamp water": false} {
		if got := inventory.MatchWords(strings.Fields(words))("oil for a lamp"); got != want {
			t.Errorf("%q: %t, want %t", words, got, want)
		}
	}
}
