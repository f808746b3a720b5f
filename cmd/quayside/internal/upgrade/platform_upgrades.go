package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// maxHops limits the number of versions to try for one operator. A longer series of upgrades is not practical
// before a cluster upgrade.
const maxHops = 32

// PlatformStep is an upgrade of one operator before the cluster upgrade.
type PlatformStep struct {
	Operator string `json:"operator" doc:"namespace/package."`
	From     string `json:"from" doc:"The pinned version."`
	To       string `json:"to" doc:"The first version that is not blocked."`
}

// addUpgrades adds an upgrade for each blocked operator, to the first version that is not blocked. If there
// is no such version, it adds the reason. If every blocked operator has an upgrade, it adds the command for
// all upgrades.
func (c *platformChecker) addUpgrades(ctx context.Context, r *PlatformReport) error {
	command := "quayside upgrade --hops all"
	var named []resolve.Target
	for _, pin := range c.lock.Pins {
		if !slices.Contains(r.blockedOperators(), pin.Key()) {
			continue
		}
		to, why, err := c.findFirst(ctx, pin)
		switch {
		case err != nil:
			return err
		case why != "":
			r.Why = append(r.Why, pin.Key()+": "+why)
		default:
			r.Upgrades = append(r.Upgrades, PlatformStep{Operator: pin.Key(), From: pin.VersionText(), To: to.VersionText()})
			named = append(named, resolve.Target{Namespace: pin.Namespace, Package: pin.Package, Version: to.Version})
			command += " " + pin.Key() + "@" + to.Version
		}
	}
	if len(named) == 0 || len(named) < len(r.blockedOperators()) {
		return nil
	}
	_, why, err := c.resolve(ctx, named)
	if why != "" {
		r.Why = append(r.Why, why)
	} else if err == nil {
		r.Command = command
	}
	return err
}

// findFirst returns the pin of a blocked operator at the first version that is not blocked. If no
// such version can be reached, it returns the reason.
func (c *platformChecker) findFirst(ctx context.Context, pin lockfile.Pin) (first lockfile.Pin, why string, err error) {
	bundles := c.problem.Hops(pin)
	for _, bundle := range bundles[:min(len(bundles), maxHops)] {
		lock, conflict, err := c.resolve(ctx, []resolve.Target{{Namespace: pin.Namespace, Package: pin.Package, Version: bundle}})
		if err != nil {
			return first, "", err
		}
		if conflict != "" {
			why = conflict
			continue
		}
		var j Judgement
		if _, err := c.judge(ctx, lock, &j); err != nil {
			return first, "", err
		}
		next, _ := lock.Pin(pin.Namespace, pin.Package)
		i := slices.IndexFunc(j.Problems, func(p Problem) bool { return p.Operator == pin.Key() && p.Blocks })
		if i < 0 {
			return next, "", nil
		}
		why = fmt.Sprintf("the newest reachable version %s is blocked, too: %s", next.VersionText(), j.Problems[i].Message)
	}
	if why == "" {
		why = "no newer version is reachable"
		ages := c.problem.Outdated("")
		if i := slices.IndexFunc(ages, func(a resolve.Age) bool { return a.Namespace == pin.Namespace && a.Package == pin.Package }); i >= 0 && ages[i].HeldBackReason != "" {
			why += ": " + ages[i].HeldBackReason
		}
	}
	return first, why, nil
}

// resolve returns the lock after the upgrades in named, or a description of the conflicts that prevent them.
func (c *platformChecker) resolve(ctx context.Context, named []resolve.Target) (lock *lockfile.File, conflict string, err error) {
	pr := *c.problem
	pr.Options.Named, pr.Options.Hops = named, -1
	res, err := workspace.Resolve(ctx, &pr)
	if err == nil && res.Failed != nil {
		err = res.Failed
	}
	var conflicts explain.Conflicts
	switch {
	case errors.As(err, &conflicts):
		return nil, conflicts.Error(), nil
	case err != nil:
		return nil, "", err
	}
	return res.Lock, "", nil
}
