package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// maxHops limits the search for a supported version. More hops are not practical before a
// cluster upgrade.
const maxHops = 32

// attempt is a lock that the search has tried, with its judgement.
type attempt struct {
	lock *lockfile.File
	Judgement
}

// searchOptions select the operators to upgrade at each hop of the search.
type searchOptions struct {
	named []resolve.Target // operators to upgrade; nil: the operators that are still blocked
	all   bool             // upgrade all other operators, too
	held  []resolve.Hold   // operators to hold back
}

// search sets the upgrades of r, or the reasons why there are none.
func (c *platformChecker) search(ctx context.Context, r *PlatformReport) error {
	blocked := operatorTargets(r.blockedOperators())
	var conflicts explain.Conflicts
	var first attempt
	for _, opt := range []searchOptions{{}, {named: blocked}, {all: true}, {named: blocked, all: true}} {
		lock, last, err := c.findNearest(ctx, r, opt)
		if err != nil && !errors.As(err, &conflicts) {
			return err
		}
		if first.lock == nil {
			first = last
		}
		if lock == nil {
			continue
		}
		if lock, err = c.dropNeedless(ctx, r, opt, lock); err != nil {
			return err
		}
		r.Upgrades = c.steps(lock)
		return c.addCommand(ctx, r)
	}
	c.explain(r, blocked, first)
	if len(conflicts) > 0 {
		r.Why = append(r.Why, conflicts.Error())
	}
	return nil
}

// findNearest upgrades hop by hop, and returns the first lock that is an improvement, or nil. It
// also returns the last attempt.
func (c *platformChecker) findNearest(ctx context.Context, r *PlatformReport, opt searchOptions) (*lockfile.File, attempt, error) {
	last := attempt{c.lock, r.Judgement}
	for range maxHops {
		named := opt.named
		if named == nil {
			named = operatorTargets(last.blockedOperators())
		}
		lock, err := c.resolve(ctx, last.lock, resolve.Options{Named: named, Upgrade: opt.all, Hops: 1, Held: opt.held})
		if err != nil || slices.Equal(bundleNames(lock), bundleNames(last.lock)) {
			return nil, last, err
		}
		last.lock = lock
		if _, err := c.judge(ctx, lock, &last.Judgement); err != nil {
			return nil, last, err
		}
		if isImprovement(r, last.Judgement) {
			return lock, last, nil
		}
	}
	return nil, last, nil
}

// dropNeedless returns a lock without needless upgrades: it holds back each upgraded operator
// that is not blocked, and searches again.
func (c *platformChecker) dropNeedless(ctx context.Context, r *PlatformReport, opt searchOptions, lock *lockfile.File) (*lockfile.File, error) {
	for _, s := range c.steps(lock) {
		if s.From == "" || slices.Contains(r.blockedOperators(), s.Operator) {
			continue
		}
		without := opt
		without.held = append(slices.Clone(opt.held), resolve.Hold{Operator: s.Operator, Reason: "tried without this upgrade"})
		got, _, err := c.findNearest(ctx, r, without)
		var conflicts explain.Conflicts
		if err != nil && !errors.As(err, &conflicts) {
			return nil, err
		}
		if got != nil {
			opt, lock = without, got
		}
	}
	return lock, nil
}

// tryResolve returns the lock resolved with opt, or nil if it is no improvement.
func (c *platformChecker) tryResolve(ctx context.Context, r *PlatformReport, opt resolve.Options) (*lockfile.File, error) {
	lock, err := c.resolve(ctx, c.lock, opt)
	if err != nil {
		return nil, err
	}
	var j Judgement
	if _, err := c.judge(ctx, lock, &j); err != nil || !isImprovement(r, j) {
		return nil, err
	}
	return lock, nil
}

// resolve resolves from a lock with the options of the workspace, and Named, Upgrade, Hops and
// Held of opt.
func (c *platformChecker) resolve(ctx context.Context, from *lockfile.File, opt resolve.Options) (*lockfile.File, error) {
	in := *c.in
	if from != c.lock {
		in.Lock, in.Read = from, from
	}
	in.Options.Named, in.Options.Upgrade, in.Options.Hops, in.Options.Held = opt.Named, opt.Upgrade, opt.Hops, opt.Held
	got, err := in.Resolve(ctx)
	switch {
	case err != nil:
		return nil, err
	case got.Failed != nil:
		return nil, got.Failed
	}
	return got.Lock, nil
}

// isImprovement reports whether after has no blocked operators, and no new blocking problems in
// objects of the user.
func isImprovement(before *PlatformReport, after Judgement) bool {
	existing := before.userProblems()
	return len(after.blockedOperators()) == 0 && !slices.ContainsFunc(after.userProblems(), func(p Problem) bool {
		return !slices.ContainsFunc(existing, func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object })
	})
}

// explain adds the reasons why upgrades do not unblock the operators in blocked, according to the
// last attempt.
func (c *platformChecker) explain(r *PlatformReport, blocked []resolve.Target, last attempt) {
	ages := c.in.Outdated("")
	for _, t := range blocked {
		key := t.Namespace + "/" + t.Package
		old, _ := c.lock.Pin(t.Namespace, t.Package)
		now, pinned := last.lock.Pin(t.Namespace, t.Package)
		i := slices.IndexFunc(last.Problems, func(p Problem) bool { return p.Operator == key && p.Blocks })
		switch {
		case !pinned || i < 0:
		case old.Bundle != now.Bundle:
			r.Why = append(r.Why, fmt.Sprintf("%s: the newest reachable version %s is blocked, too: %s", key, now.VersionText(), last.Problems[i].Message))
		default:
			text := key + ": no newer version is reachable"
			if j := slices.IndexFunc(ages, func(a resolve.Age) bool { return a.Namespace == t.Namespace && a.Package == t.Package }); j >= 0 && ages[j].HeldBackReason != "" {
				text += ": " + ages[j].HeldBackReason
			}
			r.Why = append(r.Why, text)
		}
	}
	for _, p := range last.Problems {
		if p.Blocks && p.Operator != "" && !slices.Contains(r.blockedOperators(), p.Operator) {
			r.Why = append(r.Why, fmt.Sprintf("%s would also have to be upgraded: %s", p.Operator, p.Message))
		}
	}
	if len(last.blockedOperators()) == 0 && len(last.userProblems()) == len(r.userProblems()) {
		r.Why = append(r.Why, "no set of upgrades removes all blockers")
	}
	for _, p := range last.userProblems() {
		if !slices.ContainsFunc(r.userProblems(), func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object }) {
			r.Why = append(r.Why, fmt.Sprintf("after the upgrades, %s would be rejected: %s", problemPlace(p), p.Message))
		}
	}
}
