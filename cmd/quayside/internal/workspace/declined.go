package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// findReverted returns a hold for each operator with an upgrade in res that a person has already
// reverted. It skips operators that the user named. known is the notReverted of an earlier call,
// whose upgrades are not checked again. notReverted contains all upgrades that nobody reverted.
func findReverted(ctx context.Context, pr *Problem, res *resolve.Result, known map[string]bool) (holds []resolve.Hold, notReverted map[string]bool, err error) {
	clone, err := pr.project.Clone()
	if err != nil && !errors.Is(err, gitrepo.ErrNone) {
		return nil, nil, err
	}
	notReverted = map[string]bool{}
	for _, pin := range res.Lock.Pins {
		old, pinned := pr.Lock.Operator(pin.Key())
		if !pinned || pr.IsNamed(pin.Key()) || resolve.IsHeld(res.Held, pin.Key()) || old.CompareVersions(pin) >= 0 {
			continue
		}
		upgrade, reason := pin.Key()+" "+pin.Bundle, ""
		if !known[upgrade] {
			if reason, err = clone.RevertReason(ctx, old, pin); err != nil {
				return nil, nil, err
			}
		}
		if reason == "" {
			notReverted[upgrade] = true
			continue
		}
		holds = append(holds, resolve.Hold{Operator: pin.Key(), Code: "declined", Reason: reason})
	}
	return holds, notReverted, nil
}

// RevertReason returns the reason why the upgrade between two pins must not be proposed, or "" if
// it may be. An upgrade counts as reverted if, in the history of HEAD, the last change to the pin
// was a downgrade from the bundle of the pin to. After a later change, such as an edit of the
// declaration, the upgrade may be proposed again. Without a repository, the result is "".
func (c *Clone) RevertReason(ctx context.Context, from, to lockfile.Pin) (string, error) {
	if c.Repo == nil {
		return "", nil
	}
	name := c.Path(LockFile)
	change, before, err := c.Repo.LastChange(ctx, name, "checksum: "+string(from.Checksum()))
	if err != nil || before == nil {
		return "", err
	}
	data, err := before.Read(name)
	if err != nil {
		return "", nil //nolint:nilerr // the commit added the lock
	}
	lock, err := lockfile.Parse(before.Name(), data)
	if err != nil {
		return "", nil //nolint:nilerr // not a lock, so nothing was reverted
	}
	if old, pinned := lock.Pin(from.Namespace, from.Package); !pinned || old.Bundle != to.Bundle {
		return "", nil
	}
	return fmt.Sprintf("the upgrade to %s was reverted in %s by %s: name the operator to propose it again", to.VersionText(), change.Name(), change.Author()), nil
}
