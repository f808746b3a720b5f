package inventory

import (
	"cmp"
	"slices"
	"strings"

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

// ListPackages returns a list of the packages in found, in order.
func ListPackages(found []cache.Summary) PackageList {
	l := PackageList{Packages: []Package{}}
	for _, s := range found {
		l.Packages = append(l.Packages, newPackage(s.Summary, s.Catalog))
	}
	return l
}

// RankPackages is like ListPackages, but with the best matches for words first: the package with this
// name, then the packages that provide an API with this name. It sorts found.
func RankPackages(found []cache.Summary, words []string) PackageList {
	rank := func(s cache.Summary) int {
		r := s.Rank(words)
		if r > int(diag.Same) && s.Provides(words...) {
			return int(diag.Same)
		}
		return r
	}
	slices.SortStableFunc(found, func(a, b cache.Summary) int { return cmp.Compare(rank(a), rank(b)) })
	return ListPackages(found)
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
