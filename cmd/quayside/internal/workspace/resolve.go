package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// Resolution is the result of resolving a Problem.
type Resolution struct {
	Lock           *lockfile.File // lock with content digests for all pins; nil if the declarations cannot be resolved
	Conflicts      []*explain.Conflict
	Failed         error                          // conflicts, or faults of unreadable catalogs; in an unattended run, only those of operators that the user named; nil: success
	Holds          []resolve.Hold                 // operators that an unattended run holds back
	Pins           int                            // number of resolved pins
	Changes        []Change                       // changes to the pins; also set if Lock is nil
	HeldPromotions map[string]resolve.HeldUpgrade // operators that could not be promoted from Options.From, with the reason
	Warnings       []diag.Warning                 // all warnings except DeclarationWarnings
}

// Resolve resolves a problem to a lock. Together with an error, it may return a resolution that has
// warnings but no lock.
//
//house:path resolve
func Resolve(ctx context.Context, pr *Problem) (*Resolution, error) {
	if err := pr.checkSources(); err != nil {
		return nil, err
	}
	res, _, err := resolveFacts(ctx, pr)
	pr.project.Log.Detail("resolved")
	if res == nil {
		return nil, err
	}
	if res.Lock != nil {
		res.Lock = pr.unread.restore(withStorage(res.Lock, res.Held), pr.Read)
	}
	return newResolution(ctx, pr, res)
}

// newResolution converts res to a Resolution, and adds content digests to all pins.
func newResolution(ctx context.Context, pr *Problem, res *resolve.Result) (*Resolution, error) {
	p := pr.project
	res, err := withTemplates(ctx, pr, res)
	if err != nil {
		return nil, err
	}
	out := &Resolution{Conflicts: res.Conflicts, HeldPromotions: res.HeldPromotions}
	out.Holds, out.Failed = pr.judgeConflicts(res)
	if !pr.Unattended && pr.unread.faults != nil {
		out.Failed = errors.Join(pr.unread.faults, out.Failed)
	}
	out.Warnings = pr.allWarnings(res.Warnings, out.Holds)
	if res.Lock != nil {
		out.Warnings = append(out.Warnings, p.reviewWaivers(diag.Resolving, pr.DeclarationWarnings(), out.Warnings)...)
		out.Warnings = append(out.Warnings, p.unusedWaivers(res.Lock)...)
	}
	out.Warnings = p.Waive(out.Warnings)
	if res.Lock == nil { // without digests, no other changes can be listed
		out.Pins = len(res.Partial.Pins)
		out.Changes = slices.DeleteFunc(Changes(pr.Read, res.Partial, res.PinChanges), func(c Change) bool { return c.Change == lockfile.Changed })
		return out, nil
	}
	out.Pins = len(res.Lock.Pins)
	err = errors.Join(rejectDowngrades(pr.merge.downgrades, res.Lock), rules.Check(p.state(res.Lock), rules.Operators))
	if err != nil {
		return out, err
	}
	if out.Lock, err = addDigests(ctx, pr, res.Lock); err != nil {
		return out, err
	}
	out.Changes = pr.merge.explain(Changes(pr.Read, out.Lock, res.PinChanges))
	unfit, others := splitUnfit(out.Warnings)
	found, err := pr.judgeNewLock(ctx, out.Lock, unfit)
	if err == nil {
		out.Warnings = diag.SortWarnings(append(others, found.Warnings()...))
	}
	return out, errors.Join(err, found.Err())
}

// allWarnings returns the warnings of the resolver, of the problem, and about holds. They are sorted.
func (pr *Problem) allWarnings(ws []diag.Warning, holds []resolve.Hold) []diag.Warning {
	return diag.SortWarnings(slices.Concat(withoutHeldWarnings(ws, holds), holdWarnings(pr.Lock, holds), pr.merge.notCompared, pr.unread.warnings(pr.Unattended)))
}

// addDigests returns lock with content digests and signers for all pins. It reuses the digest in the problem's
// lock if that lock pins the same bundle. In an unattended run, the error is a *fetchError.
func addDigests(ctx context.Context, pr *Problem, lock *lockfile.File) (*lockfile.File, error) {
	out, err := pinContents(ctx, pr.project, lock, pr.Lock)
	if err == nil {
		out, err = addSigners(ctx, &pr.project.Registries, out, pr.Lock, pr.Unattended)
	}
	switch {
	case err != nil && pr.Unattended:
		return nil, &fetchError{err}
	case err != nil:
		return nil, err
	}
	return out, nil
}

// pinContents returns lock with content digests for all pins. before is the previous lock: if it
// pins the same bundle, pinContents reuses its digest.
func pinContents(ctx context.Context, p *Project, lock, before *lockfile.File) (*lockfile.File, error) {
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pins := make([]lockfile.Pin, len(lock.Pins))
	var faults diag.List
	for i, pin := range lock.Pins {
		p.Log.Progress("pinning bundle %s", pin.Bundle)
		if pins[i], err = c.AddDigest(ctx, pin, before); err != nil {
			hint := ""
			if dropped := new(NoContentError); errors.As(err, &dropped) {
				hint = "add the cluster's InstallPlan, which names the image of the bundle, to the declarations"
			}
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{}, hint, "bundle %q of %s: %w", pin.Bundle, pin.Key(), err))
			if !p.Offline {
				break // stop: a registry that does not respond would delay every further bundle
			}
		}
	}
	return lock.With(pins), faults.Err()
}

// ContentDigest returns the content digest that a pin of the bundle b in a namespace would have.
func (pr *Problem) ContentDigest(ctx context.Context, namespace string, b *catalog.Bundle) (catalog.Digest, error) {
	c, err := pr.project.Contents()
	if err != nil {
		return "", err
	}
	defer c.Close()
	from := b.Package().Catalog()
	pin, err := c.AddDigest(ctx, lockfile.Pin{
		Namespace: namespace, Package: b.Package().Name(), Bundle: b.Name(), Image: b.Image(),
		Catalog: lockfile.NewCatalog(from.ID(), from.Source(), from.Digest()),
	}, pr.Lock)
	return pin.BundleDigest(), err
}

// blameCatalogs returns an *InputError with the faults of the unreadable catalogs if err is a
// conflict that these catalogs cause. Otherwise it returns err.
func (pr *Problem) blameCatalogs(err error) error {
	var conflicts explain.Conflicts
	if !errors.As(err, &conflicts) {
		return err
	}
	var others explain.Conflicts
	var needed []catalog.ID
	var waiting []string
	for _, c := range conflicts {
		if len(c.UnreadableCatalogs) == 0 {
			others = append(others, c)
			continue
		}
		needed, waiting = append(needed, c.UnreadableCatalogs...), append(waiting, c.Subscriptions...)
	}
	if len(needed) == 0 {
		return err
	}
	faults := catalogFaults(pr.Index, func(id catalog.ID) bool { return slices.Contains(needed, id) })
	input := &InputError{fmt.Errorf("%w\nnot resolved because of this: %s", faults.Err(), diag.Count(len(waiting), "subscription"))}
	if len(others) == 0 {
		return input
	}
	return errors.Join(input, others)
}
