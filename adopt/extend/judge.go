package extend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// judge leaves the operators that are not pinned at what is installed, and those
// that need something which is not, and reports whether there are any.
func (b *builder) judge(res *project.Resolution) bool {
	reasons := map[*declare.Operator]string{}
	for _, op := range b.found.Operators {
		if why := misses(op, res); why != "" {
			reasons[op] = why
		}
	}
	if res.Lock != nil {
		for _, pin := range res.Lock.Pins {
			if b.expected(pin) {
				continue
			}
			for _, op := range b.askers(res.Lock, pin) {
				reasons[op] = fmt.Sprintf("it needs an operator that cannot be imported: %s would be installed anew in namespace %s", pin.Bundle, pin.Namespace)
			}
		}
	}
	for _, op := range slices.SortedFunc(maps.Keys(reasons), func(x, y *declare.Operator) int { return cmp.Compare(x.Key(), y.Key()) }) {
		b.found.Leave(op, reasons[op])
	}
	return len(reasons) > 0
}

// misses returns why an operator does not come to what is installed, "" where it
// does.
func misses(op *declare.Operator, res *project.Resolution) string {
	pin, ok := pinOf(res.Lock, op)
	switch {
	case !ok:
		return "it cannot be resolved: " + conflictOf(op, res)
	case pin.Bundle != op.Bundle:
		return fmt.Sprintf("it would be pinned at %s", pin.Bundle)
	case op.Watch != nil && !slices.Equal(watched(pin), op.Watch):
		return fmt.Sprintf("it would watch %s, and OLM has it watch %s", inWords(watched(pin)), inWords(op.Watch))
	}
	have, want := imageref.DigestIn(pin.Image), imageref.DigestIn(op.Image)
	if have != "" && want != "" && have != want {
		return fmt.Sprintf("it would be pinned at image %s, and %s is installed", pin.Image, op.Image)
	}
	op.Package = pin.Package
	return ""
}

// pinOf returns what a lock pins for an operator.
func pinOf(lock *lockfile.File, op *declare.Operator) (lockfile.Pin, bool) {
	if lock == nil {
		return lockfile.Pin{}, false
	}
	i := slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool {
		return p.Namespace == op.Namespace && (p.Subscription() == op.Name || p.Package == op.Package)
	})
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return lock.Pins[i], true
}

// watched returns the namespaces that a pin watches, as OLM says it.
func watched(p lockfile.Pin) []string {
	if len(p.WatchNamespaces) == 0 {
		return []string{""}
	}
	return p.WatchNamespaces
}

func inWords(namespaces []string) string {
	if slices.Equal(namespaces, []string{""}) {
		return "all namespaces"
	}
	return strings.Join(namespaces, ", ")
}

// conflictOf returns why there is no solution for an operator, in one line.
func conflictOf(op *declare.Operator, res *project.Resolution) string {
	for _, c := range res.Conflicts {
		if !slices.Contains(c.Subscriptions, op.Key()) && (len(c.Subscriptions) > 0 || c.Namespace != op.Namespace) {
			continue
		}
		texts := make([]string, len(c.Chain))
		for i, l := range c.Chain {
			texts[i] = l.Text
		}
		return cmp.Or(strings.Join(texts, "; "), c.Title())
	}
	return "nothing is pinned for it"
}

// expected reports whether a pin was there before, or stands for something that is
// installed.
func (b *builder) expected(pin lockfile.Pin) bool {
	if b.before != nil {
		if _, ok := b.before.Pin(pin.Namespace, pin.Package); ok {
			return true
		}
	}
	return slices.ContainsFunc(b.found.Operators, func(op *declare.Operator) bool {
		return op.Namespace == pin.Namespace && (op.Name == pin.Subscription() || op.Package == pin.Package)
	}) || slices.ContainsFunc(b.existing.Subscriptions, func(s subscription.Subscription) bool {
		return s.Namespace == pin.Namespace && s.Name == pin.Subscription()
	})
}

// askers returns the operators of the cluster that a pin is there for.
func (b *builder) askers(lock *lockfile.File, pin lockfile.Pin) []*declare.Operator {
	var out []*declare.Operator
	for _, op := range b.found.Operators {
		own, _ := pinOf(lock, op)
		if slices.ContainsFunc(pin.RequestedBy, func(s string) bool { return s == op.Key() }) ||
			slices.ContainsFunc(own.Requires, func(r lockfile.Requirement) bool { return r.Pin == pin.Key() }) {
			out = append(out, op)
		}
	}
	return out
}

// declared reports whether the workspace declares an object already; with a conflict
// where it says something else.
func (b *builder) declared(f fresh) (*Conflict, bool) {
	conflict := func(pos diag.Pos, format string, args ...any) (*Conflict, bool) {
		return &Conflict{Object: named(f.Object), Position: pos.String(), Reason: fmt.Sprintf(format, args...), Operator: f.Operator != nil}, true
	}
	for _, want := range f.set.Namespaces {
		for _, have := range b.existing.Namespaces {
			if have.Name == want.Name && (without(have.Labels, want.Labels) || without(have.Annotations, want.Annotations)) {
				return conflict(have.Pos, "it has other labels or annotations in the cluster")
			} else if have.Name == want.Name {
				return nil, true
			}
		}
	}
	for _, want := range f.set.OperatorGroups {
		for _, have := range b.existing.OperatorGroupsIn(want.Namespace) {
			switch {
			case have.Name != want.Name:
				return conflict(have.Pos, "the workspace has OperatorGroup %s in that namespace, and there can be one", have.Name)
			case have.Digest != want.Digest:
				return conflict(have.Pos, "it selects other namespaces, or has other settings, in the cluster")
			default:
				return nil, true
			}
		}
	}
	for _, want := range f.set.CatalogSources {
		for _, have := range b.existing.CatalogSources {
			if have.ID == want.ID && (have.Image != want.Image || have.Priority != want.Priority) {
				return conflict(have.Pos, "it has image %s and priority %d in the cluster", want.Image, want.Priority)
			} else if have.ID == want.ID {
				return nil, true
			}
		}
	}
	for _, want := range f.set.Subscriptions {
		for _, have := range b.existing.Subscriptions {
			if have.Key() != want.Key() {
				continue
			}
			if b.locked(f.Operator) || have.Digest == want.Digest {
				return nil, true
			}
			return conflict(have.Pos, "%s", b.otherwise(have, f.Operator))
		}
	}
	return nil, false
}

// otherwise says how what is declared differs from what is installed.
func (b *builder) otherwise(have subscription.Subscription, op *declare.Operator) string {
	if pin, ok := pinOf(b.before, op); ok {
		return fmt.Sprintf("%s is installed, and the lock pins %s", op.Bundle, pin.Bundle)
	}
	return fmt.Sprintf("%s of package %s is installed, and nothing is pinned: run 'quayside resolve', or take the declaration out and import again", op.Bundle, cmp.Or(op.Package, have.Package))
}

// without reports whether a mapping lacks something of another one.
func without(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return true
		}
	}
	return false
}
