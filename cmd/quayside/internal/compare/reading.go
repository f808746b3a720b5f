package compare

import (
	"context"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/diff"
)

// readings returns the changelogs and links of operators that were added or have a new bundle.
func (c *Comparison) readings(ctx context.Context) ([]diff.Reading, error) {
	was := map[string]string{}
	for _, p := range c.Before.Pins() {
		was[p.Key()] = p.Bundle
	}
	var before, after []string
	for _, p := range c.After.Pins() {
		old, had := was[p.Key()]
		if old == p.Bundle {
			continue
		}
		if after = append(after, p.Key()); had {
			before = append(before, p.Key())
		}
	}
	a, err := c.Before.csvs(ctx, before)
	if err != nil {
		return nil, c.Before.wrapName(err)
	}
	b, err := c.After.csvs(ctx, after)
	if err != nil {
		return nil, c.After.wrapName(err)
	}
	for _, key := range before {
		if b[key] == nil || a[key] == nil {
			c.notes = append(c.notes, "changelogs of "+key+" unknown: cannot read one of its bundles")
			delete(b, key)
		}
	}
	return diff.Readings(a, b), nil
}

// csvs returns the ClusterServiceVersions of the named operators of a side.
func (s *Side) csvs(ctx context.Context, operators []string) (map[string]*bundle.CSV, error) {
	if len(operators) == 0 {
		return map[string]*bundle.CSV{}, nil
	}
	return s.project.CSVs(ctx, s.Lock, operators)
}
