package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// An unattended run must not fail for every operator because of a fault of one: a package that its
// catalog dropped, an unreadable catalog, or a bundle that cannot be fetched. Such an operator is
// held back at its version, with a warning.

// HeldError is returned if operators are held back although the user requires or names their
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

// Unattended returns a copy of p for runs without a user. A fault of one operator or one catalog
// does not hold back other operators: see [Inputs.Holds].
func (p *Project) Unattended() *Project {
	out := *p
	out.unattended = true
	return &out
}

// Holds returns the operators that are held back at their versions, sorted.
func (in *Inputs) Holds() []resolve.Hold {
	return slices.SortedFunc(slices.Values(in.holds), func(a, b resolve.Hold) int { return strings.Compare(a.Operator, b.Operator) })
}

// RecordHold records that an operator is held back at its version. Only its first hold counts.
func (in *Inputs) RecordHold(h resolve.Hold) {
	if !resolve.IsHeld(in.holds, h.Operator) {
		h.Reason = strings.Join(strings.Fields(h.Reason), " ")
		in.holds = append(in.holds, h)
	}
}

// recordHolds records the holds with a code.
func (in *Inputs) recordHolds(holds []resolve.Hold) {
	for _, h := range holds {
		if h.Code != "" {
			in.RecordHold(h)
		}
	}
}

// recordConflicts records the operators that take part in conflicts.
func (in *Inputs) recordConflicts(conflicts []*explain.Conflict) {
	for _, c := range conflicts {
		for _, operator := range in.operatorsOf(c) {
			code := "no-solution"
			switch {
			case len(c.UnreadableCatalogs) > 0:
				code = "broken-catalog"
			case in.isWithdrawn(operator):
				code = "withdrawn"
			}
			in.RecordHold(resolve.Hold{Operator: operator, Code: code, Reason: strings.TrimPrefix(c.Reason(), "subscription "+operator+": ")})
		}
	}
}

// operatorsOf returns the operators whose subscriptions take part in a conflict.
func (in *Inputs) operatorsOf(c *explain.Conflict) []string {
	var out []string
	for _, s := range in.Declared.Subscriptions {
		if slices.Contains(c.Subscriptions, s.Key()) {
			out = append(out, s.Namespace+"/"+s.Package)
		}
	}
	return out
}

// isWithdrawn reports whether the catalog of a pinned operator no longer has its package or channel.
func (in *Inputs) isWithdrawn(operator string) bool {
	pin, pinned := in.pin(operator)
	cat, read := in.Index.Catalog(pin.Catalog.ID)
	if !pinned || !read {
		return false
	}
	p, found := cat.Package(pin.Package)
	if found && pin.Channel != "" {
		_, found = p.Channel(pin.Channel)
	}
	return !found
}

// pin returns the pin of an operator in the lock, if there is one.
func (in *Inputs) pin(operator string) (lockfile.Pin, bool) {
	if in.Lock == nil {
		return lockfile.Pin{}, false
	}
	ns, pkg, _ := strings.Cut(operator, "/")
	return in.Lock.Pin(ns, pkg)
}

// holdWarnings returns a warning for each operator that is held back.
func (in *Inputs) holdWarnings() []diag.Warning {
	var out []diag.Warning
	for _, l := range in.Holds() {
		text := l.Operator + " is not pinned: "
		if pin, ok := in.pin(l.Operator); ok {
			text = l.Operator + " is held back at " + pin.Version + ": "
		}
		out = append(out, diag.Warning{Code: l.Code, Subject: l.Operator, Msg: text + l.Reason})
	}
	return out
}

// withoutHeldWarnings returns ws without the warnings "held" and "dropped" of operators that are held
// back, because holdWarnings returns the reason.
func (in *Inputs) withoutHeldWarnings(ws []diag.Warning) []diag.Warning {
	return slices.DeleteFunc(slices.Clone(ws), func(w diag.Warning) bool {
		return (w.Code == "held" || w.Code == "dropped") && resolve.IsHeld(in.holds, w.Subject)
	})
}

// namedError returns the error for operators that the user named and that are held back at their
// versions, or nil. It contains the conflicts of these operators.
func (in *Inputs) namedError(conflicts []*explain.Conflict) error {
	var named explain.Conflicts
	explained := map[string]bool{}
	for _, c := range conflicts {
		if of := in.operatorsOf(c); slices.ContainsFunc(of, in.IsNamed) {
			named = append(named, c)
			for _, operator := range of {
				explained[operator] = true
			}
		}
	}
	var errs []error
	if len(named) > 0 {
		errs = append(errs, in.blameCatalogs(named))
	}
	held := slices.DeleteFunc(in.Holds(), func(l resolve.Hold) bool { return !in.IsNamed(l.Operator) || explained[l.Operator] })
	if len(held) > 0 {
		errs = append(errs, &HeldError{held})
	}
	return errors.Join(errs...)
}

// conflictError returns the error of a resolution with conflicts. In an unattended run, it records the
// operators of the conflicts as held back, and returns only the error for operators that the user named.
func (in *Inputs) conflictError(conflicts []*explain.Conflict) error {
	if in.project.unattended {
		in.recordConflicts(conflicts)
		return in.namedError(conflicts)
	}
	var errs []error
	if len(conflicts) > 0 {
		errs = append(errs, in.blameCatalogs(explain.Conflicts(conflicts)))
	}
	if len(in.holds) > 0 {
		errs = append(errs, &HeldError{in.Holds()})
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// findUnreadable returns holds of the operators of a result that cannot be upgraded or installed,
// because a bundle cannot be fetched or verified. An unattended run opens each bundle, because rendering
// needs it. Other runs only search for bundles that their catalog no longer contains.
func (j *judge) findUnreadable(ctx context.Context, res *resolve.Result) ([]resolve.Hold, error) {
	c, err := j.project.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var holds []resolve.Hold
	for _, pin := range res.Lock.Pins {
		old, pinned := j.pin(pin.Key())
		if pinned && old.Bundle == pin.Bundle || pin.Image != "" && !j.project.unattended || resolve.IsHeld(holds, pin.Key()) {
			continue
		}
		complete, err := c.AddDigest(ctx, pin, j.Lock)
		if err == nil && j.project.unattended {
			_, err = c.Open(ctx, complete)
		}
		var dropped *NoContentError
		if err == nil || !j.project.unattended && !errors.As(err, &dropped) {
			continue
		}
		if resolve.IsHeld(res.Held, pin.Key()) {
			return nil, fmt.Errorf("bundle %q of %s: %w", pin.Bundle, pin.Key(), err)
		}
		if holds, err = j.addUnreadable(holds, res.Lock, pin, err); err != nil {
			return nil, err
		}
	}
	return holds, nil
}

// addUnreadable adds holds of the operators of next that cannot be upgraded or installed without the
// bundle of pin. It returns an error if one of them is not pinned, but rendered: the lock would be
// without it, and the GitOps tool would remove an operator that runs.
func (j *judge) addUnreadable(holds []resolve.Hold, next *lockfile.File, pin lockfile.Pin, cause error) ([]resolve.Hold, error) {
	hold := func(operator string) {
		holds = append(holds, resolve.Hold{Operator: operator, Code: "not-fetched", Reason: fmt.Sprintf("bundle %s cannot be fetched: %v", pin.Bundle, cause)})
	}
	if _, pinned := j.pin(pin.Key()); pinned {
		hold(pin.Key())
		return holds, nil
	}
	for _, p := range next.Pins {
		old, pinned := j.pin(p.Key())
		if pinned && old.Bundle == p.Bundle || p.Key() != pin.Key() && !next.Needed(p.Key())[pin.Key()] {
			continue
		}
		if !pinned {
			rendered, err := j.project.isRendered(p)
			if err != nil {
				return nil, err
			}
			if rendered {
				return nil, diag.Hintf(diag.Pos{}, "restore its pin in quayside.lock, or add the InstallPlan of the cluster to the declarations: it names the image of the bundle",
					"%s is rendered, but cannot be pinned: bundle %q of %s: %w", p.Key(), pin.Bundle, pin.Key(), cause)
			}
		}
		hold(p.Key())
	}
	return holds, nil
}

// Unreadable returns the pins of lock whose bundles cannot be opened, and the reasons, by
// namespace/package.
func (p *Project) Unreadable(ctx context.Context, lock *lockfile.File) (map[string]error, error) {
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

// WithoutPins returns lock without the named pins that are equal in base.
func WithoutPins(lock, base *lockfile.File, operators map[string]error) *lockfile.File {
	if len(operators) == 0 {
		return lock
	}
	return lock.With(slices.DeleteFunc(slices.Clone(lock.Pins), func(p lockfile.Pin) bool {
		old, pinned := base.Pin(p.Namespace, p.Package)
		return operators[p.Key()] != nil && pinned && old.Checksum() == p.Checksum()
	}))
}

// IncludesAll reports whether the user named no operator, so that the run includes all.
func (in *Inputs) IncludesAll() bool { return len(in.named) == 0 }

// IsNamed reports whether the user named an operator.
func (in *Inputs) IsNamed(operator string) bool {
	return slices.ContainsFunc(in.named, func(t resolve.Target) bool { return t.Namespace+"/"+t.Package == operator })
}

// WhyNotProposed returns the reason why a run has no upgrade of a pinned operator.
func (in *Inputs) WhyNotProposed(operator string) string {
	for _, l := range in.holds {
		if l.Operator == operator {
			return operator + ": " + l.Reason
		}
	}
	for _, h := range in.pending.Held {
		if h.Operator == operator {
			return operator + " is held back: " + h.Reason
		}
	}
	if _, leaves := in.Read.LeavingOperator(operator); leaves {
		return operator + ": its removal was not observed in every cluster"
	}
	pin, pinned := in.pin(operator)
	switch {
	case !pinned:
		return operator + ": it is not in the lock"
	case in.Index.Broken()[pin.Catalog.ID] != nil:
		return fmt.Sprintf("%s: catalog %s cannot be read", operator, pin.Catalog.ID)
	case pin.Hold != "":
		return operator + " is held by its declaration: " + pin.Hold
	case pin.Approval == string(declare.Manual):
		return operator + " is upgraded only if it is named, because of installPlanApproval: Manual"
	}
	for _, w := range in.pending.Warnings {
		if w.Subject == operator {
			return operator + ": " + w.Msg
		}
	}
	return fmt.Sprintf("%s: catalog %s currently has no upgrade from %s", operator, pin.Catalog.ID, pin.VersionText())
}
