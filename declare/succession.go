package declare

import (
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// Operator returns "namespace/package" of the operator that s installs. It returns "" if only the bundle
// determines the namespace or the package.
func (s Subscription) Operator() string {
	if s.Namespace == "" || s.Package == "" {
		return ""
	}
	return s.Namespace + "/" + s.Package
}

// Successors returns the declared successor of each replaced operator. The keys are the replaced operators, as
// "namespace/package". The error is a diag.List. It is a fault if an operator replaces itself, is still
// declared although it is replaced, or has two successors. So every cycle is a fault. Conflicts that depend on
// the content of a bundle are found later.
func (s *Set) Successors() (map[string]*Subscription, error) {
	out := map[string]*Subscription{}
	var errs diag.List
	for i := range s.Subscriptions {
		d := &s.Subscriptions[i]
		first := out[d.Replaces]
		switch at := d.At(FieldReplaces); {
		case d.Replaces == "":
		case d.Replaces == d.Operator():
			errs.Addf(at, "%s cannot replace itself: set spec.replaces to another operator", d.Replaces)
		case first == nil:
			out[d.Replaces] = d
			s.checkReplacedDeclared(d, &errs)
		case first.Operator() != d.Operator():
			errs.Addf(at, "%s can have only one successor: subscription %q at %s also replaces it", d.Replaces, first.Key(), first.At(FieldReplaces))
		}
	}
	return out, errs.Err()
}

// checkReplacedDeclared adds a fault if the operator that d replaces is still declared.
func (s *Set) checkReplacedDeclared(d *Subscription, errs *diag.List) {
	for _, old := range s.Subscriptions {
		if old.Operator() == d.Replaces {
			errs.Addf(d.At(FieldReplaces), "%s is still declared at %s, but this declaration replaces it: remove the old declaration, or spec.replaces here", d.Replaces, old.Pos)
			return
		}
	}
}

// dropSuccessions drops the subscriptions that have faults of Successors. They become unread.
func (s *Set) dropSuccessions() {
	_, err := s.Successors()
	var faults diag.List
	faults.Add(diag.Pos{}, err)
	for _, e := range faults {
		s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(d Subscription) bool {
			isIt := d.Replaces != "" && d.At(FieldReplaces) == e.Pos
			if isIt {
				s.Unread = append(s.Unread, unreadSubscription(e, d))
			}
			return isIt
		})
	}
}
