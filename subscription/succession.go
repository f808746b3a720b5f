package subscription

import "github.com/quayside/quayside/internal/diag"

// Operator returns "namespace/package", the identity of what s installs; empty
// where the bundle that s names is to say it.
func (s Subscription) Operator() string {
	if s.Namespace == "" || s.Package == "" {
		return ""
	}
	return s.Namespace + "/" + s.Package
}

// Followers returns, for each operator that another one is declared to follow,
// the first declaration that says so, by "namespace/package". The error is a
// diag.List of those that follow themselves, that are declared all the same, and
// that two follow; among them are all that go round in a circle. What is not known
// before bundles were read is only found afterwards.
func (s *Set) Followers() (map[string]*Subscription, error) {
	out := map[string]*Subscription{}
	var errs diag.List
	for i := range s.Subscriptions {
		d := &s.Subscriptions[i]
		first := out[d.Replaces]
		switch at := d.At(FieldReplaces); {
		case d.Replaces == "":
		case d.Replaces == d.Operator():
			errs.Addf(at, "%s cannot follow itself: spec.replaces names another operator", d.Replaces)
		case first == nil:
			out[d.Replaces] = d
			s.stillDeclared(d, &errs)
		case first.Operator() != d.Operator():
			errs.Addf(at, "%s is followed by one operator, and %s says that it is subscription %q", d.Replaces, first.At(FieldReplaces), first.Key())
		}
	}
	return out, errs.Err()
}

// stillDeclared adds a fault where what d follows is declared as well.
func (s *Set) stillDeclared(d *Subscription, errs *diag.List) {
	for _, old := range s.Subscriptions {
		if old.Operator() == d.Replaces {
			errs.Addf(d.At(FieldReplaces), "%s is declared at %s: what another operator follows is declared no longer, so take one of the two out", d.Replaces, old.Pos)
			return
		}
	}
}

// successions adds what is wrong with who follows whom.
func (s *Set) successions(errs *diag.List) {
	_, err := s.Followers()
	errs.Add(diag.Pos{}, err)
}
