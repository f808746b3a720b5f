package workspace

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Upgrade is a part of the pending upgrades. It can be merged without the other parts.
type Upgrade struct {
	*Resolution
	Operators    []string // upgraded operators as namespace/package; see resolve.Part
	Bonds        []resolve.Bond
	Observations []string // observations in other environments, one per line
	Named        bool     // whether the user named its operators, so that it is proposed even if a person declined it
}

// Upgrades contains the pending upgrades of a problem.
type Upgrades struct {
	*Problem
	Parts []Upgrade
	Holds []resolve.Hold // operators that are held back

	all *resolve.Result // result of resolving all upgrades together
}

// Split returns the pending upgrades in parts. The lock of a part is the current lock with the upgrades of
// only that part. Removals that observations confirm are a separate part. An unattended run has no parts for
// operators that it holds back.
//
// If the lock is out of date with the declarations, Split returns the same error as Check.
// Otherwise, every part would also contain the changes that update the lock.
func Split(ctx context.Context, confirmed *Problem) (*Upgrades, error) {
	keeping := *confirmed
	keeping.Options.Settled, keeping.Options.Removed = nil, nil
	pr := &keeping
	if _, err := pr.Check(ctx, CheckScope{}); err != nil {
		return nil, err
	}
	all, x, err := resolveFacts(ctx, pr)
	if err != nil {
		return nil, pr.blameCatalogs(err)
	}
	pr.Index = x // index with the APIs of the upgraded contents
	opt := pr.Options
	opt.Held = all.Held
	parts, trees, waiting, err := splitParts(ctx, pr, opt)
	if err != nil {
		return nil, err
	}
	out, err := resolveParts(ctx, pr, parts, reportedHolds(all.Held))
	if err != nil {
		return nil, err
	}
	opt = confirmed.Options
	opt.Held = all.Held
	removal, err := pr.removalPart(ctx, opt, parts, trees)
	if err != nil {
		return nil, err
	}
	migrations, err := pr.migrationParts(ctx, all.Held)
	if err != nil {
		return nil, err
	}
	var upgraded []string
	for _, u := range out.Parts {
		upgraded = append(upgraded, u.Operators...)
	}
	out.Holds = slices.DeleteFunc(AddHolds(out.Holds, pr.conflictHolds(all.Conflicts)...), func(h resolve.Hold) bool { return slices.Contains(upgraded, h.Operator) })
	out.Parts = slices.Concat(out.Parts, removal, migrations)
	all.Warnings = append(all.Warnings, waiting...)
	out.all = all
	return out, nil
}

// resolveParts adds the content digests to the pins of the parts. It also holds back operators that take part in
// conflicts, and operators whose bundles cannot be fetched.
func resolveParts(ctx context.Context, pr *Problem, parts []resolve.Part, holds []resolve.Hold) (*Upgrades, error) {
	out := &Upgrades{Problem: pr, Holds: holds}
	for _, p := range parts {
		res, err := newResolution(ctx, pr, p.Result)
		if res != nil {
			out.Holds = AddHolds(out.Holds, res.Holds...)
		}
		var unfetched *fetchError
		switch {
		case errors.As(err, &unfetched):
			for _, operator := range p.Operators {
				out.Holds = AddHolds(out.Holds, resolve.Hold{Operator: operator, Code: "not-fetched", Reason: err.Error()})
			}
		case err != nil:
			return nil, err
		default:
			out.Parts = append(out.Parts, Upgrade{Resolution: res, Operators: p.Operators, Bonds: p.Bonds})
		}
	}
	return out, nil
}

// removalPart returns a part that removes the leftover objects whose removal is permitted now. It returns nil
// if there are none, or if Git might be unable to merge this part with another part.
func (pr *Problem) removalPart(ctx context.Context, opt resolve.Options, parts []resolve.Part, trees *partTrees) ([]Upgrade, error) {
	if len(pr.Lock.Leaving) == 0 {
		return nil, nil
	}
	opt.Upgrade, opt.Named, opt.KeepGoing = false, nil, true
	res, err := resolve.Resolve(pr.Index, pr.Declared, pr.Lock, opt)
	if err != nil {
		return nil, err
	}
	lock := pr.Lock.With(pr.Lock.Pins)
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
		if other := p.Result.Partial; !lockfile.CanMerge(pr.Lock, other, lock) || trees.areConnected(ctx, other, lock) {
			return nil, nil // propose the removal after the other part is merged
		}
	}
	if lock, err = addDigests(ctx, pr, lock); err != nil {
		return nil, err
	}
	return []Upgrade{{Operators: removed, Resolution: &Resolution{Lock: lock, Pins: len(lock.Pins), Changes: Changes(pr.Read, lock, nil)}}}, nil
}

// Pending returns a Resolution without a lock, but with holds and the conflicts and warnings of all upgrades.
func (u *Upgrades) Pending(holds []resolve.Hold) *Resolution {
	return &Resolution{
		Pins: len(u.Lock.Pins), Conflicts: u.all.Conflicts, Failed: u.namedError(u.all.Conflicts, holds), Holds: holds,
		Warnings: u.project.Waive(u.allWarnings(u.all.Warnings, holds)),
	}
}

// WhyNotProposed returns the reason why no part upgrades an operator. holds are the holds of the run.
func (u *Upgrades) WhyNotProposed(operator string, holds []resolve.Hold) string {
	pr := u.Problem
	for _, h := range holds {
		if h.Operator == operator {
			return operator + ": " + h.Reason
		}
	}
	for _, h := range u.all.Held {
		if h.Operator == operator {
			return operator + " is held back: " + h.Reason
		}
	}
	if _, leaves := pr.Read.LeavingOperator(operator); leaves {
		return operator + ": its removal was not observed in every cluster"
	}
	pin, pinned := pr.Lock.Operator(operator)
	switch {
	case !pinned:
		return operator + ": it is not in the lock"
	case pr.Index.Broken()[pin.Catalog.ID] != nil:
		return fmt.Sprintf("%s: catalog %s cannot be read", operator, pin.Catalog.ID)
	case pin.Hold != "":
		return operator + " is held by its declaration: " + pin.Hold
	case pin.Approval == string(declare.Manual):
		return operator + " is upgraded only if it is named, because of installPlanApproval: Manual"
	}
	for _, w := range u.all.Warnings {
		if w.Subject == operator {
			return operator + ": " + w.Msg
		}
	}
	return fmt.Sprintf("%s: catalog %s currently has no upgrade from %s", operator, pin.Catalog.ID, pin.VersionText())
}

// migrationParts returns a part for each package whose migration step in the given holds differs
// from that in the lock; see [lockfile.Storage].
func (pr *Problem) migrationParts(ctx context.Context, holds []resolve.Hold) ([]Upgrade, error) {
	var packages []string
	changed := map[string][]resolve.Hold{} // holds by package
	for _, p := range pr.Read.Pins {
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
		lock, err := addDigests(ctx, pr, withStorage(pr.Lock, changed[name]))
		if err != nil {
			return nil, err
		}
		u := Upgrade{Resolution: &Resolution{Lock: lock, Pins: len(lock.Pins), Changes: Changes(pr.Read, lock, nil)}}
		for _, h := range changed[name] {
			u.Operators = append(u.Operators, h.Operator)
		}
		out = append(out, u)
	}
	return out, nil
}

// CSVs returns the ClusterServiceVersions of the named operators of a lock, by namespace/package.
// It omits unreadable bundles, whose errors rendering reports.
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
		if b, err := c.Bundle(ctx, pin); err == nil {
			out[pin.Key()] = b.CSV
		}
	}
	return out, nil
}
