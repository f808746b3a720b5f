package declare

import "github.com/quayside/quayside/internal/base/diag"

// Operator returns "namespace/package", the identity of the operator installed by s. It
// returns "" if only the bundle of s can determine it.
func (s Subscription) Operator() string {
	if s.Namespace == "" || s.Package == "" {
		return ""
	}
	return s.Namespace + "/" + s.Package
}

// Followers returns the first declaration of a successor for each replaced operator, by its
// "namespace/package". The error is a diag.List of operators that replace themselves, that are
// still declared, or that have two successors; this includes all cycles. Conflicts that depend
// on unread bundles are found later.
func (s *Set) Followers() (map[string]*Subscription, error) {
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
			s.stillDeclared(d, &errs)
		case first.Operator() != d.Operator():
			errs.Addf(at, "%s can have only one successor, but at %s it is subscription %q", d.Replaces, first.At(FieldReplaces), first.Key())
		}
	}
	return out, errs.Err()
}

// stillDeclared adds a fault if the operator replaced by d is still declared.
func (s *Set) stillDeclared(d *Subscription, errs *diag.List) {
	for _, old := range s.Subscriptions {
		if old.Operator() == d.Replaces {
			errs.Addf(d.At(FieldReplaces), "%s is declared at %s, but has a successor: remove one of the two declarations", d.Replaces, old.Pos)
			return
		}
	}
}

// successions adds the faults of all successors.
func (s *Set) successions(errs *diag.List) {
	_, err := s.Followers()
	errs.Add(diag.Pos{}, err)
}
