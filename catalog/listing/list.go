// Package listing is what catalogs have, as the documents and the text that people
// and programs read: packages, channels, all of one package, and what changed between
// two catalogs.
//
// It reads nothing and looks nothing up: what is shown was picked from the catalogs
// by others, and days are given to it.
//
// Start from [Of], [Show] and [Changed].
package listing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/terminal"
)

// List is packages, a line each.
type List struct {
	Packages []Package `json:"packages"`
}

// Package is one package of one catalog.
type Package struct {
	Package        string `json:"package"`
	DefaultChannel string `json:"defaultChannel"`
	Version        string `json:"version"` // at the head of the default channel
	Catalog        string `json:"catalog"`
	DisplayName    string `json:"displayName,omitempty"`
	Description    string `json:"description,omitempty"`
	Deprecation    string `json:"deprecation,omitempty"`
}

// Of returns the list of packages.
func Of(found []cache.Summary) List {
	l := List{Packages: []Package{}}
	for _, s := range found {
		l.Packages = append(l.Packages, packageOf(s.Summary, s.Catalog))
	}
	return l
}

// Found is Of, with those first that answer best what somebody looks for.
func Found(found []cache.Summary, words []string) List {
	slices.SortStableFunc(found, func(a, b cache.Summary) int { return cmp.Compare(a.Answers(words), b.Answers(words)) })
	return Of(found)
}

func packageOf(s catalog.Summary, id catalog.ID) Package {
	return Package{
		Package:        s.Name,
		DefaultChannel: s.DefaultChannel,
		Version:        s.Version,
		Catalog:        id.String(),
		DisplayName:    s.DisplayName,
		Description:    s.Description,
		Deprecation:    s.Deprecation,
	}
}

// Table returns l as text.
func (l List) Table() *terminal.Table {
	t := &terminal.Table{Head: []string{"package", "version", "channel", "catalog", "description"}}
	for _, r := range l.Packages {
		t.Add(r.Package, r.Version, r.DefaultChannel, r.Catalog, r.Description)
	}
	return t
}

// Mentions returns what reports whether a text, in lower case, mentions every word.
func Mentions(words []string) func(text string) bool {
	return func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
	}
}
