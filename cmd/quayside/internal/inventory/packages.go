package inventory

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/diag"
)

// PackageList is a list of packages, for output as JSON.
type PackageList struct {
	Packages []Package `json:"packages"`
}

// Package is one package of one catalog.
type Package struct {
	Package        string `json:"package"`
	DefaultChannel string `json:"defaultChannel"`
	Version        string `json:"version"` // version of the default channel's head
	Catalog        string `json:"catalog"`
	DisplayName    string `json:"displayName,omitempty"`
	Description    string `json:"description,omitempty"`
	Deprecation    string `json:"deprecation,omitempty"`
}

// ListPackages returns a list of the packages in found, in the same order.
func ListPackages(found []cache.Summary) PackageList {
	l := PackageList{Packages: []Package{}}
	for _, s := range found {
		l.Packages = append(l.Packages, newPackage(s.Summary, s.Catalog))
	}
	return l
}

// RankPackages is like ListPackages, but sorts the packages by how well they match words: first the
// package with this name, then the packages that provide an API with this name, then other packages
// by rankText. It sorts found in place.
func RankPackages(found []cache.Summary, words []string) PackageList {
	rank := func(s cache.Summary) int {
		r := s.Rank(words)
		if r > int(diag.Same) && s.Provides(words...) {
			return int(diag.Same)
		}
		return r
	}
	type ranked struct {
		cache.Summary
		rank, text int
	}
	list := make([]ranked, len(found))
	for i, s := range found {
		list[i] = ranked{s, rank(s), rankText(s.Text, words)}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text)) })
	for i, r := range list {
		found[i] = r.Summary
	}
	return ListPackages(found)
}

// rankText rates how well words match the search text of a package. It returns:
//   - 0: each word is the beginning of a word in a keyword or another short line
//   - 1: each word is the beginning of a word anywhere in text
//   - 2: otherwise
func rankText(text string, words []string) int {
	var short []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "/") && len(strings.Fields(line)) <= 3 { // neither an API nor a description
			short = append(short, line)
		}
	}
	for rank, in := range []string{strings.Join(short, "\n"), text} {
		parts := strings.FieldsFunc(in, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		begins := func(word string) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, strings.ToLower(word)) })
		}
		if !slices.ContainsFunc(words, func(w string) bool { return !begins(w) }) {
			return rank
		}
	}
	return 2
}

func newPackage(s catalog.Summary, id catalog.ID) Package {
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

// MatchWords returns a function that reports whether a text contains every word. The text must be
// in lower case.
func MatchWords(words []string) func(text string) bool {
	return func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
	}
}

// CatalogChanges is the list of changes between two catalogs.
type CatalogChanges struct {
	Before  string           `json:"before"`
	After   string           `json:"after"`
	Changes []catalog.Change `json:"changes"`
}
