package workspace

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/bundle"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// Upgrade is a part of the pending upgrades that can be merged by itself.
type Upgrade struct {
	*Resolution
	Operators []string // namespace/package of the upgraded operators: see resolve.Part
	Bonds     []resolve.Bond
	Seen      []string // observations in other environments, a line each
}

// Split returns the pending upgrades in parts, each with a lock of its own based on the
// current one, and the warnings of all. A lock that is out of date with the declarations
// is an error, as in Check, because the difference would be in every part. A lock of an
// older schema is migrated first, by a part without operators: it rewrites every block.
func (in *Inputs) Split(ctx context.Context) ([]Upgrade, []diag.Warning, error) {
	if _, err := in.Check(ctx, false); err != nil {
		return nil, nil, err
	}
	if in.Read.IsOlder() {
		return []Upgrade{{Resolution: &Resolution{Lock: in.Read, Pins: len(in.Read.Pins)}}}, nil, nil
	}
	all, err := in.solve(ctx)
	var conflicts explain.Conflicts
	if err != nil {
		if errors.As(err, &conflicts) {
			err = in.blame(err)
		}
		return nil, nil, err
	}
	known := in.trees(ctx)
	parts, waiting, err := resolve.Split(in.Index, in.Declared, in.Lock, in.Options, known)
	if err == nil {
		err = known.failed
	}
	if err != nil {
		return nil, nil, err
	}
	var out []Upgrade
	for _, p := range parts {
		res, err := in.resolution(ctx, p.Result)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, Upgrade{Resolution: res, Operators: p.Operators, Bonds: p.Bonds})
	}
	waits, err := in.waits(ctx)
	if err != nil {
		return nil, nil, err
	}
	return append(out, waits...), in.project.Waive(diag.SortWarnings(slices.Concat(all.Warnings, waiting, in.heldBack(all.Warnings), in.unread))), nil
}

// waits returns a part for each package that enters another migration step: see
// [lockfile.Storage].
func (in *Inputs) waits(ctx context.Context) ([]Upgrade, error) {
	var out []Upgrade
	of := map[string]int{} // index in out, by package
	for _, p := range in.Read.Pins {
		if next := in.storage[p.Key()]; next == nil || reflect.DeepEqual(next, p.Storage) {
			continue
		}
		i, known := of[p.Package]
		if !known {
			i = len(out)
			of[p.Package], out = i, append(out, Upgrade{})
		}
		out[i].Operators = append(out[i].Operators, p.Key())
	}
	for i, u := range out {
		lock, err := in.complete(ctx, in.withStorage(in.Lock, u.Operators...))
		if err != nil {
			return nil, err
		}
		out[i].Resolution = &Resolution{Lock: lock, Pins: len(lock.Pins), Changes: Changes(in.Read, lock, nil)}
	}
	return out, nil
}

// CSVs returns the ClusterServiceVersions of some operators of a lock, by
// namespace/package. It leaves out bundles that cannot be read: rendering reports these.
func (p *Project) CSVs(ctx context.Context, lock *lockfile.File, operators []string) (map[string]*bundle.CSV, error) {
	part, err := Chosen(lock, operators)
	if err != nil || len(operators) == 0 {
		return nil, err
	}
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	out := map[string]*bundle.CSV{}
	for _, pin := range part.Pins {
		fsys, err := c.Open(ctx, pin)
		if err != nil {
			continue
		}
		if b, err := bundle.Load(fsys); err == nil {
			out[pin.Key()] = b.CSV
		}
	}
	return out, nil
}
