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

// maxHops limits the search for a supported version. The longest real chain has 120
// versions; a longer path is not practical before a cluster upgrade.
const maxHops = 32

// attempt is a lock that the search has tried, with its result.
type attempt struct {
	lock *lockfile.File
	Judgement
}

// searchOptions select the operators to upgrade in the search. Each hop starts from the
// lock of the hop before.
type searchOptions struct {
	named []resolve.Target // upgraded; nil: at each hop the operators blocked then
	all   bool             // upgrade all other operators, too
	held  []resolve.Hold   // not upgraded
}

// search fills in the upgrades, or the reasons for having none.
func (c *platformChecker) search(ctx context.Context, r *PlatformReport) error {
	must := operatorTargets(r.blockedOperators())
	var conflicts explain.Conflicts
	var first attempt
	for _, how := range []searchOptions{{}, {named: must}, {all: true}, {named: must, all: true}} {
		lock, last, err := c.findNearest(ctx, r, how)
		if err != nil && !errors.As(err, &conflicts) {
			return err
		}
		if first.lock == nil {
			first = last
		}
		if lock == nil {
			continue
		}
		if lock, err = c.dropNeedless(ctx, r, how, lock); err != nil {
			return err
		}
		r.Upgrades = c.steps(lock)
		return c.addText(ctx, r)
	}
	c.explain(r, must, first)
	if len(conflicts) > 0 {
		r.Why = append(r.Why, conflicts.Error())
	}
	return nil
}

// findNearest returns the first lock that helps, with as few hops as possible; nil if there
// is none. It also returns the last attempt.
func (c *platformChecker) findNearest(ctx context.Context, r *PlatformReport, how searchOptions) (*lockfile.File, attempt, error) {
	last := attempt{c.lock, r.Judgement}
	for range maxHops {
		named := how.named
		if named == nil {
			named = operatorTargets(last.blockedOperators())
		}
		lock, err := c.resolve(ctx, last.lock, resolve.Options{Named: named, Upgrade: how.all, Hops: 1, Held: how.held})
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

// dropNeedless returns an equally good lock without needless upgrades.
func (c *platformChecker) dropNeedless(ctx context.Context, r *PlatformReport, how searchOptions, lock *lockfile.File) (*lockfile.File, error) {
	for _, s := range c.steps(lock) {
		if s.From == "" || slices.Contains(r.blockedOperators(), s.Operator) {
			continue
		}
		without := how
		t := operatorTargets([]string{s.Operator})[0]
		without.held = append(slices.Clone(how.held), resolve.Hold{Namespace: t.Namespace, Package: t.Package, Reason: "tried without this upgrade"})
		got, _, err := c.findNearest(ctx, r, without)
		var conflicts explain.Conflicts
		if err != nil && !errors.As(err, &conflicts) {
			return nil, err
		}
		if got != nil {
			how, lock = without, got
		}
	}
	return lock, nil
}

// try returns the lock resolved with these options, or nil if it does not help.
func (c *platformChecker) try(ctx context.Context, r *PlatformReport, opt resolve.Options) (*lockfile.File, error) {
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

// resolve resolves from a lock with the upgrade options in opt, and otherwise with those of
// the workspace.
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

// isImprovement reports whether no operator is blocked, and there are no new blocking
// problems in the user's own objects.
func isImprovement(before *PlatformReport, after Judgement) bool {
	was := before.ownProblems()
	return len(after.blockedOperators()) == 0 && !slices.ContainsFunc(after.ownProblems(), func(p Problem) bool {
		return !slices.ContainsFunc(was, func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object })
	})
}

// explain adds the reasons why no upgrade helps, from the last attempt.
func (c *platformChecker) explain(r *PlatformReport, must []resolve.Target, last attempt) {
	ages := c.in.Outdated("")
	for _, t := range must {
		key := t.Namespace + "/" + t.Package
		was, _ := c.lock.Pin(t.Namespace, t.Package)
		now, there := last.lock.Pin(t.Namespace, t.Package)
		i := slices.IndexFunc(last.Problems, func(p Problem) bool { return p.Operator == key && p.Blocks })
		switch {
		case !there || i < 0:
		case was.Bundle != now.Bundle:
			r.Why = append(r.Why, fmt.Sprintf("%s: %s, the newest reachable version, cannot either: %s", key, now.VersionText(), last.Problems[i].Message))
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
			r.Why = append(r.Why, fmt.Sprintf("%s would have to be upgraded as well, and then: %s", p.Operator, p.Message))
		}
	}
	if len(last.blockedOperators()) == 0 && len(last.ownProblems()) == len(r.ownProblems()) {
		r.Why = append(r.Why, "no set of upgrades removes all blockers")
	}
	for _, p := range last.ownProblems() {
		if !slices.ContainsFunc(r.ownProblems(), func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object }) {
			r.Why = append(r.Why, fmt.Sprintf("after the upgrades, %s would be refused: %s", problemPlace(p), p.Message))
		}
	}
}
