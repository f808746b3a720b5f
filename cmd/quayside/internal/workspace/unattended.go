package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// In an unattended run, a fault of one operator must not affect other operators. Examples are a package that
// its catalog dropped, an unreadable catalog, and a bundle that cannot be fetched. The operator is then held
// back at its version, with a warning.

// HeldError is returned if operators are held back although the user named them or required their
// upgrades.
type HeldError struct{ Holds []resolve.Hold }

// Error lists the operators.
func (e *HeldError) Error() string {
	var names []string
	for _, l := range e.Holds {
		names = append(names, l.Operator)
	}
	return "operators held back at their versions: " + strings.Join(names, ", ")
}

// AddHolds returns holds and more, sorted by operator. It keeps only the first hold of an operator.
func AddHolds(holds []resolve.Hold, more ...resolve.Hold) []resolve.Hold {
	out := slices.Clone(holds)
	for _, h := range more {
		if !resolve.IsHeld(out, h.Operator) {
			h.Reason = strings.Join(strings.Fields(h.Reason), " ")
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b resolve.Hold) int { return strings.Compare(a.Operator, b.Operator) })
	return out
}

// reportedHolds returns the holds with a code. Only such holds are reported with the resolution.
func reportedHolds(holds []resolve.Hold) []resolve.Hold {
	return AddHolds(nil, slices.DeleteFunc(slices.Clone(holds), func(h resolve.Hold) bool { return h.Code == "" })...)
}

// conflictHolds returns a hold for each operator that takes part in a conflict.
func (pr *Problem) conflictHolds(conflicts []*explain.Conflict) []resolve.Hold {
	var out []resolve.Hold
	for _, c := range conflicts {
		for _, operator := range operatorsOf(pr.Declared, c) {
			code := "no-solution"
			switch {
			case len(c.UnreadableCatalogs) > 0:
				code = "broken-catalog"
			case isWithdrawn(pr.Index, pr.Lock, operator):
				code = "withdrawn"
			}
			out = append(out, resolve.Hold{Operator: operator, Code: code, Reason: strings.TrimPrefix(c.Reason(), "subscription "+operator+": ")})
		}
	}
	return out
}

// operatorsOf returns the operators whose declarations take part in a conflict.
func operatorsOf(declared *declare.Set, c *explain.Conflict) []string {
	var out []string
	for _, s := range declared.Subscriptions {
		if slices.Contains(c.Subscriptions, s.Key()) {
			out = append(out, s.Namespace+"/"+s.Package)
		}
	}
	return out
}

// isWithdrawn reports whether the catalog of a pinned operator no longer has the package or the
// channel.
func isWithdrawn(x *catalog.Index, lock *lockfile.File, operator string) bool {
	pin, pinned := lock.Operator(operator)
	cat, read := x.Catalog(pin.Catalog.ID)
	if !pinned || !read {
		return false
	}
	p, found := cat.Package(pin.Package)
	if found && pin.Channel != "" {
		_, found = p.Channel(pin.Channel)
	}
	return !found
}

// holdWarnings returns a warning for each operator that is held back. lock may be nil.
func holdWarnings(lock *lockfile.File, holds []resolve.Hold) []diag.Warning {
	var out []diag.Warning
	for _, h := range holds {
		text := h.Operator + " is not pinned: "
		if pin, ok := lock.Operator(h.Operator); ok {
			text = h.Operator + " is held back at " + pin.Version + ": "
		}
		out = append(out, diag.Warning{Code: h.Code, Subject: h.Operator, Msg: text + h.Reason})
	}
	return out
}

// withoutHeldWarnings returns ws without the warnings "held" and "dropped" about operators in holds, because
// holdWarnings returns warnings about them.
func withoutHeldWarnings(ws []diag.Warning, holds []resolve.Hold) []diag.Warning {
	return slices.DeleteFunc(slices.Clone(ws), func(w diag.Warning) bool {
		return (w.Code == "held" || w.Code == "dropped") && resolve.IsHeld(holds, w.Subject)
	})
}

// namedError returns an error with the conflicts and holds of operators that the user named, or
// nil.
func (pr *Problem) namedError(conflicts []*explain.Conflict, holds []resolve.Hold) error {
	var named explain.Conflicts
	explained := map[string]bool{}
	for _, c := range conflicts {
		if of := operatorsOf(pr.Declared, c); slices.ContainsFunc(of, pr.IsNamed) {
			named = append(named, c)
			for _, operator := range of {
				explained[operator] = true
			}
		}
	}
	var errs []error
	if len(named) > 0 {
		errs = append(errs, pr.blameCatalogs(named))
	}
	held := slices.DeleteFunc(slices.Clone(holds), func(h resolve.Hold) bool { return !pr.IsNamed(h.Operator) || explained[h.Operator] })
	if len(held) > 0 {
		errs = append(errs, &HeldError{held})
	}
	return errors.Join(errs...)
}

// judgeConflicts returns the operators that a result holds back, and the error for the result. In an
// unattended run, it also holds back operators that take part in conflicts. Then only conflicts and holds of
// operators that the user named are errors.
func (pr *Problem) judgeConflicts(res *resolve.Result) ([]resolve.Hold, error) {
	holds := reportedHolds(res.Held)
	if pr.Unattended {
		holds = AddHolds(holds, pr.conflictHolds(res.Conflicts)...)
		return holds, pr.namedError(res.Conflicts, holds)
	}
	var errs []error
	if len(res.Conflicts) > 0 {
		errs = append(errs, pr.blameCatalogs(explain.Conflicts(res.Conflicts)))
	}
	if len(holds) > 0 {
		errs = append(errs, &HeldError{holds})
	}
	if len(errs) == 1 {
		return holds, errs[0]
	}
	return holds, errors.Join(errs...)
}

// findUnreadable returns a hold for each operator that cannot be upgraded or installed because a
// bundle cannot be fetched or verified. An unattended run opens every bundle, because rendering
// needs them. Other runs only look for bundles that are no longer in their catalog.
func findUnreadable(ctx context.Context, pr *Problem, res *resolve.Result) ([]resolve.Hold, error) {
	c, err := pr.project.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var holds []resolve.Hold
	for _, pin := range res.Lock.Pins {
		old, pinned := pr.Lock.Operator(pin.Key())
		if pinned && old.Bundle == pin.Bundle || pin.Image != "" && !pr.Unattended || resolve.IsHeld(holds, pin.Key()) {
			continue
		}
		complete, err := c.AddDigest(ctx, pin, pr.Lock)
		if err == nil && pr.Unattended {
			_, err = c.Open(ctx, complete)
		}
		var dropped *NoContentError
		if err == nil || !pr.Unattended && !errors.As(err, &dropped) {
			continue
		}
		if resolve.IsHeld(res.Held, pin.Key()) {
			return nil, fmt.Errorf("bundle %q of %s: %w", pin.Bundle, pin.Key(), err)
		}
		if holds, err = addUnreadable(pr, holds, res.Lock, pin, "cannot be fetched", err); err != nil {
			return nil, err
		}
	}
	return holds, nil
}

// addUnreadable adds a hold for each operator in the lock next that cannot be upgraded or installed without
// the bundle of pin. what describes the fault, as the end of a sentence. It returns an error if such an
// operator is rendered but not pinned, because the GitOps tool would then remove a running operator.
func addUnreadable(pr *Problem, holds []resolve.Hold, next *lockfile.File, pin lockfile.Pin, what string, cause error) ([]resolve.Hold, error) {
	hold := func(operator string) {
		holds = append(holds, resolve.Hold{Operator: operator, Code: "not-fetched", Reason: fmt.Sprintf("bundle %s %s: %v", pin.Bundle, what, cause)})
	}
	if _, pinned := pr.Lock.Operator(pin.Key()); pinned {
		hold(pin.Key())
		return holds, nil
	}
	for _, p := range next.Pins {
		old, pinned := pr.Lock.Operator(p.Key())
		if pinned && old.Bundle == p.Bundle || p.Key() != pin.Key() && !next.Needed(p.Key())[pin.Key()] {
			continue
		}
		if !pinned {
			rendered, err := pr.project.isRendered(p)
			if err != nil {
				return nil, err
			}
			if rendered {
				return nil, diag.Hintf(diag.Pos{}, "restore its pin in quayside.lock, or add the cluster's InstallPlan, which names the image of the bundle, to the declarations",
					"%s is rendered, but cannot be pinned: bundle %q of %s: %w", p.Key(), pin.Bundle, pin.Key(), cause)
			}
		}
		hold(p.Key())
	}
	return holds, nil
}

// Unreadable returns, by namespace/package, the error for each pin of lock whose bundle cannot be
// opened.
func (p *Registries) Unreadable(ctx context.Context, lock *lockfile.File) (map[string]error, error) {
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	out := map[string]error{}
	for _, pin := range lock.Pins {
		if _, err := c.Open(ctx, pin); err != nil {
			out[pin.Key()] = err
		}
	}
	return out, nil
}

// WithoutPins returns lock without the pins of the given operators, except for pins that differ from those in base.
func WithoutPins(lock, base *lockfile.File, operators map[string]error) *lockfile.File {
	if len(operators) == 0 {
		return lock
	}
	return lock.With(slices.DeleteFunc(slices.Clone(lock.Pins), func(p lockfile.Pin) bool {
		old, pinned := base.Pin(p.Namespace, p.Package)
		return operators[p.Key()] != nil && pinned && old.Checksum() == p.Checksum()
	}))
}

// IncludesAll reports whether the run is for all operators, because the user named none.
func (pr *Problem) IncludesAll() bool { return len(pr.named) == 0 }

// IsNamed reports whether the user named an operator.
func (pr *Problem) IsNamed(operator string) bool {
	return slices.ContainsFunc(pr.named, func(t resolve.Target) bool { return t.Namespace+"/"+t.Package == operator })
}
