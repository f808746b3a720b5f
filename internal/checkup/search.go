package checkup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// maxHops bounds the search for a version that lives: the longest real chain has
// 120 versions, and what is farther away is no step before a cluster's upgrade.
const maxHops = 32

// attempt is a lock that did not help.
type attempt struct {
	lock *lockfile.File
	Judgement
}

// way says how operators move in the search: hop by hop, each from the lock that the
// one before made.
type way struct {
	named []resolve.Target // these move; nil: at each hop those that are in the way then
	all   bool             // everything else moves, too
	held  []resolve.Hold   // these stay
}

// search fills in the upgrades, or why there are none.
func (c *checker) search(ctx context.Context, r *Report) error {
	must := operators(r.blocked())
	var conflicts resolve.Conflicts
	var first attempt
	for _, how := range []way{{}, {named: must}, {all: true}, {named: must, all: true}} {
		lock, last, err := c.nearest(ctx, r, how)
		if err != nil && !errors.As(err, &conflicts) {
			return err
		}
		if first.lock == nil {
			first = last
		}
		if lock == nil {
			continue
		}
		if lock, err = c.fewer(ctx, r, how, lock); err != nil {
			return err
		}
		r.Upgrades = c.steps(lock)
		return c.say(ctx, r)
	}
	c.explain(r, must, first)
	if len(conflicts) > 0 {
		r.Why = append(r.Why, conflicts.Error())
	}
	return nil
}

// nearest returns the lock in which operators have moved by as few hops as help;
// nil where none does, with the last one that was tried.
func (c *checker) nearest(ctx context.Context, r *Report, how way) (*lockfile.File, attempt, error) {
	last := attempt{c.lock, r.Judgement}
	for range maxHops {
		named := how.named
		if named == nil {
			named = operators(last.blocked())
		}
		lock, err := c.resolve(ctx, last.lock, resolve.Options{Named: named, Upgrade: how.all, Hops: 1, Held: how.held})
		if err != nil || slices.Equal(bundles(lock), bundles(last.lock)) {
			return nil, last, err
		}
		last.lock = lock
		if _, err := c.judge(ctx, lock, &last.Judgement); err != nil {
			return nil, last, err
		}
		if helps(r, last.Judgement) {
			return lock, last, nil
		}
	}
	return nil, last, nil
}

// fewer returns a lock that helps as well as the one that is given, without moves
// that can be left out.
func (c *checker) fewer(ctx context.Context, r *Report, how way, lock *lockfile.File) (*lockfile.File, error) {
	for _, s := range c.steps(lock) {
		if s.From == "" || slices.Contains(r.blocked(), s.Operator) {
			continue
		}
		without := how
		t := operators([]string{s.Operator})[0]
		without.held = append(slices.Clone(how.held), resolve.Hold{Namespace: t.Namespace, Package: t.Package, Reason: "tried without it"})
		got, _, err := c.nearest(ctx, r, without)
		var conflicts resolve.Conflicts
		if err != nil && !errors.As(err, &conflicts) {
			return nil, err
		}
		if got != nil {
			how, lock = without, got
		}
	}
	return lock, nil
}

// try returns the lock that resolving with these options makes, or nil where it
// does not help.
func (c *checker) try(ctx context.Context, r *Report, opt resolve.Options) (*lockfile.File, error) {
	lock, err := c.resolve(ctx, c.lock, opt)
	if err != nil {
		return nil, err
	}
	var j Judgement
	if _, err := c.judge(ctx, lock, &j); err != nil || !helps(r, j) {
		return nil, err
	}
	return lock, nil
}

// resolve moves what opt says from a lock on; the rest is as the workspace has it.
func (c *checker) resolve(ctx context.Context, from *lockfile.File, opt resolve.Options) (*lockfile.File, error) {
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

// helps reports whether no operator is blocked any more, and nothing of the user's
// is that was not before.
func helps(before *Report, after Judgement) bool {
	was := before.own()
	return len(after.blocked()) == 0 && !slices.ContainsFunc(after.own(), func(p Problem) bool {
		return !slices.ContainsFunc(was, func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object })
	})
}

// explain says why no upgrade helps, from the last that was tried.
func (c *checker) explain(r *Report, must []resolve.Target, last attempt) {
	ages := c.in.Outdated("")
	for _, t := range must {
		key := t.Namespace + "/" + t.Package
		was, _ := c.lock.Pin(t.Namespace, t.Package)
		now, there := last.lock.Pin(t.Namespace, t.Package)
		i := slices.IndexFunc(last.Problems, func(p Problem) bool { return p.Operator == key && p.Blocks })
		switch {
		case !there || i < 0:
		case was.Bundle != now.Bundle:
			r.Why = append(r.Why, fmt.Sprintf("%s: nor can %s, the furthest that can be reached now: %s", key, now.VersionText(), last.Problems[i].Message))
		default:
			text := key + ": nothing newer can be reached"
			if j := slices.IndexFunc(ages, func(a resolve.Age) bool { return a.Namespace == t.Namespace && a.Package == t.Package }); j >= 0 && ages[j].Stays != "" {
				text += ": " + ages[j].Stays
			}
			r.Why = append(r.Why, text)
		}
	}
	for _, p := range last.Problems {
		if p.Blocks && p.Operator != "" && !slices.Contains(r.blocked(), p.Operator) {
			r.Why = append(r.Why, fmt.Sprintf("%s would have to move, too, and then: %s", p.Operator, p.Message))
		}
	}
	if len(last.blocked()) == 0 && len(last.own()) == len(r.own()) {
		r.Why = append(r.Why, "no upgrades were found after which nothing is in the way")
	}
	for _, p := range last.own() {
		if !slices.ContainsFunc(r.own(), func(o Problem) bool { return o.Rule == p.Rule && *o.Object == *p.Object }) {
			r.Why = append(r.Why, fmt.Sprintf("after upgrades, %s would be refused: %s", place(p), p.Message))
		}
	}
}
