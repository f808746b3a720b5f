package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/lockfile"
)

// holdReverted holds back the operators whose upgrade in next a person reverted, unless the user named
// them. It reports whether it held back any operator.
func (in *Inputs) holdReverted(ctx context.Context, next *lockfile.File) (bool, error) {
	clone, err := in.project.Clone()
	if errors.Is(err, gitrepo.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	found := false
	for _, pin := range next.Pins {
		old, pinned := in.pin(pin.Key())
		upgrade := pin.Key() + " " + pin.Bundle
		if !pinned || in.IsNamed(pin.Key()) || in.notReverted[upgrade] || in.isHeld(pin.Key()) || old.CompareVersions(pin) >= 0 {
			continue
		}
		reason, err := clone.RevertReason(ctx, old, pin)
		if err != nil {
			return false, err
		}
		if reason == "" {
			in.notReverted[upgrade] = true
			continue
		}
		in.RecordHeld(pin.Key(), "declined", reason)
		in.holdPin(old, reason)
		found = true
	}
	return found, nil
}

// RevertReason returns the reason why the upgrade from one pin to another must not be proposed again,
// or "": the last change to the pin in the history of HEAD was from the bundle of the upgrade to a lower
// version. Any later change, such as an edit of the declaration, permits the upgrade.
func (c *Clone) RevertReason(ctx context.Context, from, to lockfile.Pin) (string, error) {
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
