package workspace

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// Upgrade is a part of the pending upgrades that can be merged alone.
type Upgrade struct {
	*Resolution
	Operators    []string // namespace/package of the upgraded operators: see resolve.Part
	Bonds        []resolve.Bond
	Observations []string // observations in other environments, a line each
	Named        bool     // the user named its operators, so it is proposed although a person declined it
}

// Split returns the pending upgrades in parts. The lock of a part is the current lock with only the
// upgrades of that part. A lock that is out of date with the declarations is an error, as in Check,
// because the difference would be in every part. For a lock of an older schema, Split returns a
// single part without operators, which migrates the lock: the migration rewrites every block. An
// unattended run has no parts for the operators that it holds back. Removals that observations
// confirm form a separate part.
func (in *Inputs) Split(ctx context.Context) ([]Upgrade, error) {
	confirmed := in.Options
	in.Options.Settled, in.Options.Removed = nil, nil
	if _, err := in.Check(ctx, false); err != nil {
		return nil, err
	}
	if in.Read.IsOlder() {
		return []Upgrade{{Resolution: &Resolution{Lock: in.Read, Pins: len(in.Read.Pins)}}}, nil
	}
	all, err := in.solve(ctx)
	var conflicts explain.Conflicts
	if err != nil {
		if errors.As(err, &conflicts) {
			err = in.blameCatalogs(err)
		}
		return nil, err
	}
	in.recordHolds(all.Held)
	trees := in.newTreeComparer(ctx)
	opt := in.Options
	opt.Held, confirmed.Held = all.Held, all.Held
	parts, waiting, err := resolve.Split(in.Index, in.Declared, in.Lock, opt, trees)
	if err == nil {
		err = trees.err
	}
	if err != nil {
		return nil, err
	}
	var out []Upgrade
	var upgraded []string
	for _, p := range parts {
		res, err := in.newResolution(ctx, p.Result)
		var unfetched *fetchError
		if errors.As(err, &unfetched) {
			for _, operator := range p.Operators {
				in.RecordHold(resolve.Hold{Operator: operator, Code: "not-fetched", Reason: err.Error()})
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		out, upgraded = append(out, Upgrade{Resolution: res, Operators: p.Operators, Bonds: p.Bonds}), append(upgraded, p.Operators...)
	}
	removal, err := in.removalPart(ctx, confirmed, parts, trees)
	if err != nil {
		return nil, err
	}
	migrations, err := in.migrationParts(ctx, all.Held)
	if err != nil {
		return nil, err
	}
	in.recordConflicts(all.Conflicts)
	in.holds = slices.DeleteFunc(in.holds, func(l resolve.Hold) bool { return slices.Contains(upgraded, l.Operator) })
	all.Warnings = append(all.Warnings, waiting...)
	in.pending = *all
	return slices.Concat(out, removal, migrations), nil
}

// removalPart returns the part that removes the leftover objects that the options no longer keep. It
// returns nil if there are none, or if Git could not merge the part with each of the other parts.
func (in *Inputs) removalPart(ctx context.Context, opt resolve.Options, parts []resolve.Part, trees *treeComparer) ([]Upgrade, error) {
	if len(in.Lock.Leaving) == 0 {
		return nil, nil
	}
	opt.Upgrade, opt.Named, opt.KeepGoing = false, nil, true
	res, err := resolve.Resolve(in.Index, in.Declared, in.Lock, opt)
	if err != nil {
		return nil, err
	}
	lock := in.Lock.With(in.Lock.Pins)
	var removed []string
	lock.Leaving = slices.DeleteFunc(slices.Clone(lock.Leaving), func(l lockfile.Leaving) bool {
		_, remains := res.Partial.LeavingOperator(l.Key())
		if !remains {
			removed = append(removed, l.Key())
		}
		return !remains
	})
	if len(removed) == 0 {
		return nil, nil
	}
	if len(lock.Leaving) == 0 {
		lock.Leaving = nil
	}
	for _, p := range parts {
		other := p.Result.Partial
		if !lockfile.CanMerge(in.Lock, other, lock) || !trees.CanMerge(other, lock) || !trees.MergeEquals(lockfile.Merge(in.Lock, other, lock), []*lockfile.File{other, lock}) {
			return nil, trees.err
		}
	}
	if lock, err = in.addDigests(ctx, lock); err != nil {
		return nil, err
	}
	return []Upgrade{{Operators: removed, Resolution: &Resolution{Lock: lock, Pins: len(lock.Pins), Changes: Changes(in.Read, lock, nil)}}}, nil
}

// Pending returns the resolution of all upgrades that Split has returned, without its lock and
// changes.
func (in *Inputs) Pending() *Resolution {
	return &Resolution{
		Pins: len(in.Lock.Pins), Conflicts: in.pending.Conflicts, Failed: in.namedError(in.pending.Conflicts), Holds: in.Holds(),
		Warnings: in.project.Waive(in.allWarnings(in.pending.Warnings)),
	}
}

// migrationParts returns a part for each package with a new migration step among the holds: see
// [lockfile.Storage].
func (in *Inputs) migrationParts(ctx context.Context, holds []resolve.Hold) ([]Upgrade, error) {
	var packages []string
	changed := map[string][]resolve.Hold{} // by package
	for _, p := range in.Read.Pins {
		for _, h := range holds {
			if h.Operator != p.Key() || h.Storage == nil || reflect.DeepEqual(h.Storage, p.Storage) {
				continue
			}
			if changed[p.Package] == nil {
				packages = append(packages, p.Package)
			}
			changed[p.Package] = append(changed[p.Package], h)
		}
	}
	var out []Upgrade
	for _, name := range packages {
		lock, err := in.addDigests(ctx, withStorage(in.Lock, changed[name]))
		if err != nil {
			return nil, err
		}
		u := Upgrade{Resolution: &Resolution{Lock: lock, Pins: len(lock.Pins), Changes: Changes(in.Read, lock, nil)}}
		for _, h := range changed[name] {
			u.Operators = append(u.Operators, h.Operator)
		}
		out = append(out, u)
	}
	return out, nil
}

// CSVs returns the ClusterServiceVersions of the named operators of a lock, by
// namespace/package. It leaves out unreadable bundles; rendering reports their errors.
func (p *Project) CSVs(ctx context.Context, lock *lockfile.File, operators []string) (map[string]*bundle.CSV, error) {
	part, err := SelectPins(lock, operators)
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
