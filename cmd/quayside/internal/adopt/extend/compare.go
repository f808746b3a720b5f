package extend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// findMismatches returns the operators that cannot be imported: a map from operator key to reason. Such an
// operator would not be pinned at the installed bundle, or requires an operator that is not installed.
func (im *importer) findMismatches(res *workspace.Resolution) map[string]string {
	reasons := map[string]string{}
	for _, op := range im.operators {
		if why := mismatchReason(op, res); why != "" {
			reasons[op.Key()] = why
		}
	}
	if len(reasons) > 0 || res.Lock == nil {
		return reasons
	}
	for _, c := range res.Conflicts { // conflicts with pins that must not change
		for _, key := range slices.Backward(c.Subscriptions) {
			if op := im.operator(key); op != nil {
				reasons[key] = "it cannot be resolved: " + conflictReason(*op, res)
				break
			}
		}
	}
	for _, pin := range res.Lock.Pins {
		if im.isExpected(pin) {
			continue
		}
		for _, op := range im.operators {
			own, _ := pinOf(res.Lock, op)
			if slices.Contains(pin.RequestedBy, op.Key()) || slices.ContainsFunc(own.Requires, func(r lockfile.Requirement) bool { return r.Pin == pin.Key() }) {
				reasons[op.Key()] = fmt.Sprintf("the operator needs another operator, which is not installed: %s would be added in namespace %s", pin.Bundle, pin.Namespace)
			}
		}
	}
	return reasons
}

// mismatchReason returns the reason why an operator would not be pinned at the installed bundle, or
// "".
func mismatchReason(op Operator, res *workspace.Resolution) string {
	pin, ok := pinOf(res.Lock, op)
	switch {
	case !ok:
		return "it cannot be resolved: " + conflictReason(op, res)
	case pin.Bundle != op.Bundle:
		return fmt.Sprintf("it would be pinned at %s", pin.Bundle)
	case op.Watch != nil && !slices.Equal(olmNamespaces(pin), op.Watch):
		return fmt.Sprintf("it would watch %s, but watches %s under OLM", formatNamespaces(olmNamespaces(pin)), formatNamespaces(op.Watch))
	}
	have, want := imageref.DigestIn(pin.Image), imageref.DigestIn(op.Image)
	if have != "" && want != "" && have != want {
		return fmt.Sprintf("it would be pinned at image %s, but %s is installed", pin.Image, op.Image)
	}
	return ""
}

func pinOf(lock *lockfile.File, op Operator) (lockfile.Pin, bool) {
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

// olmNamespaces returns the watched namespaces of a pin in OLM's form. In this form, a single empty string
// means all namespaces.
func olmNamespaces(p lockfile.Pin) []string {
	if len(p.WatchNamespaces) == 0 {
		return []string{""}
	}
	return p.WatchNamespaces
}

func formatNamespaces(namespaces []string) string {
	if slices.Equal(namespaces, []string{""}) {
		return "all namespaces"
	}
	return strings.Join(namespaces, ", ")
}

// conflictReason returns the reason why an operator cannot be resolved, in one line.
func conflictReason(op Operator, res *workspace.Resolution) string {
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
	return "not pinned in the lock"
}

// isExpected reports whether a pin existed before the import, or belongs to an operator that is declared or
// imported.
func (im *importer) isExpected(pin lockfile.Pin) bool {
	if im.before != nil {
		if _, ok := im.before.Pin(pin.Namespace, pin.Package); ok {
			return true
		}
	}
	return slices.ContainsFunc(im.operators, func(op Operator) bool {
		return op.Namespace == pin.Namespace && (op.Name == pin.Subscription() || op.Package == pin.Package)
	}) || slices.ContainsFunc(im.existing.Subscriptions, func(s declare.Subscription) bool {
		return s.Namespace == pin.Namespace && s.Name == pin.Subscription()
	})
}

// findConflict reports whether the workspace already declares an object of the cluster. If that declaration
// differs, it also returns a Conflict. set is the object, parsed as a declaration.
func (im *importer) findConflict(o k8s.Object, set *declare.Set) (*Conflict, bool) {
	conflict := func(pos diag.Pos, format string, args ...any) (*Conflict, bool) {
		return &Conflict{Object: edit.NameOf(o), Position: pos.String(), Reason: fmt.Sprintf(format, args...), Operator: len(set.Subscriptions) > 0}, true
	}
	for _, want := range set.Namespaces {
		for _, have := range im.existing.Namespaces {
			if have.Name == want.Name && (lacksEntries(have.Labels, want.Labels) || lacksEntries(have.Annotations, want.Annotations)) {
				return conflict(have.Pos, "its labels or annotations differ in the cluster")
			} else if have.Name == want.Name {
				return nil, true
			}
		}
	}
	for _, want := range set.OperatorGroups {
		for _, have := range im.existing.OperatorGroupsIn(want.Namespace) {
			switch {
			case have.Name != want.Name:
				return conflict(have.Pos, "the workspace already has OperatorGroup %s in that namespace", have.Name)
			case have.Digest != want.Digest:
				return conflict(have.Pos, "its namespaces or settings differ in the cluster")
			default:
				return nil, true
			}
		}
	}
	for _, want := range set.CatalogSources {
		for _, have := range im.existing.CatalogSources {
			if have.ID == want.ID && (have.Image != want.Image || have.Priority != want.Priority) {
				return conflict(have.Pos, "its image is %s and its priority %d in the cluster", want.Image, want.Priority)
			} else if have.ID == want.ID {
				return nil, true
			}
		}
	}
	for _, want := range set.Subscriptions {
		for _, have := range im.existing.Subscriptions {
			op := im.operator(want.Key())
			switch {
			case have.Key() != want.Key() || op == nil:
			case isLocked(im.before, *op) || have.Digest == want.Digest:
				return nil, true
			default:
				return conflict(have.Pos, "%s", declarationDifference(have, *op, im.before))
			}
		}
	}
	return nil, false
}

// updateDeclaration compares the declaration of a Subscription with the cluster, and adds differing fields to
// pl. If im.update is set, it also changes these fields in the declaration. set is the object in the cluster,
// parsed as a declaration.
func (im *importer) updateDeclaration(pl *plan, o k8s.Object, set *declare.Set) error {
	for _, want := range set.Subscriptions {
		i := slices.IndexFunc(im.existing.Subscriptions, func(s declare.Subscription) bool {
			return s.Key() == want.Key() && s.Dialect == want.Dialect && s.Dialect != declare.V1
		})
		if i < 0 {
			continue
		}
		have, values := im.existing.Subscriptions[i], map[declare.Field][]string{}
		if op := im.operator(want.Key()); op != nil && op.isChart() {
			if from, to := valuesDifference(have, want); from != to {
				pl.updates = append(pl.updates, Update{edit.NameOf(o), have.At(declare.FieldValues).String(), "values", from, to})
				values[declare.FieldValues] = want.Values(declare.FieldValues)
			}
			if len(values) > 0 && im.update {
				return pl.draft.Change(have, values)
			}
			return nil
		}
		for f, name := range map[declare.Field]string{declare.FieldChannel: "channel", declare.FieldApproval: "approval", declare.FieldConfig: "config"} {
			from, to := have.Values(f), want.Values(f)
			if slices.Equal(from, to) || f == declare.FieldChannel && len(to) == 0 {
				continue
			}
			values[f] = to
			pl.updates = append(pl.updates, Update{edit.NameOf(o), have.At(f).String(), name, strings.Join(from, ", "), strings.Join(to, ", ")})
		}
		slices.SortFunc(pl.updates, func(a, b Update) int {
			return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(a.Field, b.Field))
		})
		if len(values) > 0 && im.update {
			return pl.draft.Change(have, values)
		}
	}
	return nil
}

// declarationDifference describes the difference between a declaration and the installed
// operator.
func declarationDifference(have declare.Subscription, op Operator, before *lockfile.File) string {
	if pin, ok := pinOf(before, op); ok {
		return fmt.Sprintf("%s is installed, but the lock pins %s", op.Bundle, pin.Bundle)
	}
	return fmt.Sprintf("%s of package %s is installed, but not pinned: run 'quayside resolve', or remove the declaration and import again", op.Bundle, cmp.Or(op.Package, have.Package))
}

// lacksEntries reports whether have lacks an entry of want, or has it with another value.
func lacksEntries(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return true
		}
	}
	return false
}
