package deliver

import (
	"context"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// links returns Markdown links for each upgraded or added operator, by operator; see releaseLinks.
func (b *proposal) links(ctx context.Context, before *lockfile.File) (map[string][]string, error) {
	var upgraded []string
	for _, c := range b.upgrade.Changes {
		if c.Operator != "" && c.To != "" && c.From != c.To {
			upgraded = append(upgraded, c.Operator)
		}
	}
	csvs, err := b.clone.Project.CSVs(ctx, b.upgrade.Lock, upgraded)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, key := range upgraded {
		if csv := csvs[key]; csv != nil {
			old, _ := before.Operator(key)
			out[key] = releaseLinks(csv, old.Version)
		}
	}
	return out, nil
}

// releaseLinks returns the links in a bundle's CSV. If the forge of the sources is known and from
// is not empty, it adds a link to the changes since the version in from.
func releaseLinks(csv *bundle.CSV, from string) []string {
	var out []string
	if repository := diff.Address(csv.Annotations["repository"]); repository != "" {
		out = append(out, sanitize.Link("repository", repository))
		if page, a, b := diff.Comparison(csv, from); page != "" {
			out = append(out, sanitize.Link(a+"..."+b, page))
		}
	}
	if support := diff.Address(csv.Annotations["support"]); support != "" {
		out = append(out, sanitize.Link("support", support))
	}
	return out
}
