package deliver

import (
	"context"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/bundle"
	"github.com/quayside/quayside/lockfile"
)

// links returns Markdown links for each operator with a new version: the links in its
// bundle, and the comparison of both versions on its forge, if that is known.
func (b *proposal) links(ctx context.Context, before *lockfile.File) (map[string][]string, error) {
	var moved []string
	for _, c := range b.upgrade.Changes {
		if c.Operator != "" && c.To != "" && c.From != c.To {
			moved = append(moved, c.Operator)
		}
	}
	said, err := b.clone.Project.CSVs(ctx, b.upgrade.Lock, moved)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, key := range moved {
		csv := said[key]
		if csv == nil {
			continue
		}
		from := ""
		if namespace, pkg, _ := strings.Cut(key, "/"); before != nil {
			pin, _ := before.Pin(namespace, pkg)
			from = pin.Version
		}
		out[key] = releaseLinks(csv, from)
	}
	return out, nil
}

// releaseLinks returns the links in a bundle, and a link to the changes since version from,
// which may be empty.
func releaseLinks(csv *bundle.CSV, from string) []string {
	var out []string
	if repository := diff.Address(csv.Annotations["repository"]); repository != "" {
		out = append(out, inert.Link("repository", repository))
		if page, a, b := diff.Comparison(csv, from); page != "" {
			out = append(out, inert.Link(a+"..."+b, page))
		}
	}
	if support := diff.Address(csv.Annotations["support"]); support != "" {
		out = append(out, inert.Link("support", support))
	}
	return out
}
