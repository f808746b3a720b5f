package propose

import (
	"context"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
)

// links returns, for the operators that have a new version, links of Markdown to
// what was released: what the bundle itself names, and the comparison of both
// versions where its forge is known.
func (b *proposal) links(ctx context.Context, before *lockfile.File) (map[string][]string, error) {
	var moved []string
	for _, c := range b.upgrade.Changes {
		if c.Operator != "" && c.To != "" && c.From != c.To {
			moved = append(moved, c.Operator)
		}
	}
	said, err := b.project.CSVs(ctx, b.upgrade.Lock, moved)
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
		out[key] = released(csv, from)
	}
	return out, nil
}

// released returns links to what a bundle names, and to what changed since a
// version, which may be empty.
func released(csv *bundle.CSV, from string) []string {
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
