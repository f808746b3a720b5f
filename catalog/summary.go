package catalog

import (
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// Summary holds the fields of a package that package lists show.
type Summary struct {
	Name           string
	DefaultChannel string
	Version        string // version of the default channel's head, with its release
	DisplayName    string // display name of the default channel's head
	Description    string // one line
	Deprecation    string
}

// Rank returns the rank of the package in the results of a search for words. Lower is better: a
// match in the name, then in the display name, then in any other field.
func (s Summary) Rank(words []string) int {
	query := strings.Join(words, " ")
	name, display := diag.Like(query, s.Name), diag.Like(query, s.DisplayName)
	switch {
	case name <= diag.Words:
		return int(name)
	case display <= diag.Words:
		return int(diag.Part + display)
	default:
		return int(diag.Part + min(name, display))
	}
}

// Summary returns the summary of p for package lists.
func (p *Package) Summary() Summary {
	s := Summary{Name: p.Name(), DefaultChannel: p.DefaultChannel(), Deprecation: p.Deprecation()}
	if c, ok := p.Channel(p.DefaultChannel()); ok {
		b := c.Head().Bundle()
		s.Version = b.VersionText()
		s.DisplayName, s.Description = b.data.Metadata.DisplayName, b.data.Metadata.Description
	}
	if s.Description == "" {
		s.Description, _, _ = strings.Cut(strings.TrimSpace(p.Description()), "\n")
	}
	return s
}

// SearchText returns the text of p that searches match, in lower case, one item per line: names,
// descriptions, provider, keywords, and the APIs of every channel head.
func (p *Package) SearchText() string {
	texts := []string{p.Name(), p.Description()}
	for _, c := range p.channels {
		b := c.Head().bundle
		m := &b.data.Metadata
		texts = append(texts, m.DisplayName, m.Description, m.Provider)
		texts = append(texts, m.Keywords...)
		for _, gvk := range b.facts.Provides {
			texts = append(texts, gvk.String())
		}
	}
	return strings.ToLower(strings.Join(texts, "\n"))
}
