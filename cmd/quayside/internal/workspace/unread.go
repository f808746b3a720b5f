package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// A declaration that cannot be read may still exist. So its operator keeps its pin until the declaration can
// be read, or has certainly been removed.

// NothingReadError is returned if the workspace or its repository has declarations, but none of
// them was read.
type NothingReadError struct {
	Faults error
	number int // number of unread parts; 0 if the declarations are outside of the declared paths
}

// Error lists the declarations.
func (e *NothingReadError) Error() string {
	if e.number == 0 {
		return e.Faults.Error()
	}
	return fmt.Sprintf("%v\nno declaration was read, %d could not be read", e.Faults, e.number)
}

// newNothingReadError returns the error for the files and objects that could not be read.
func newNothingReadError(parts []declare.Unread) *NothingReadError {
	var faults diag.List
	for _, u := range parts {
		faults = append(faults, diag.Hintf(u.Pos, u.Hint, "%s", u.Reason))
	}
	return &NothingReadError{faults.Err(), len(parts)}
}

// unreadPin is a pin that is kept because an unread file or object may contain its declaration or OperatorGroup.
type unreadPin struct {
	pin lockfile.Pin
	in  declare.Unread
}

// reason returns the reason why the pin is kept.
func (k unreadPin) reason() string {
	return fmt.Sprintf("its declaration may be at %s: %s", k.in.Pos, k.in.Reason)
}

// unread describes the effects of unread files and objects on a resolution.
type unread struct {
	pins    []unreadPin
	faults  error // errors of the declarations; nil if all were read
	nothing bool  // whether no declaration was read
	missing []declare.Unread
}

// checkUnread returns the effects of set.Unread on the resolution of lock. err is the error of reading set. If
// partial is false, an unread file or object is an error. Operators in unpin do not keep their pins.
func (p *Project) checkUnread(ctx context.Context, set *declare.Set, err error, lock *lockfile.File, unpin []resolve.Target, partial bool) (unread, error) {
	out := unread{pins: unreadPins(ctx, p, set, lock, unpin), missing: missingOperators(set, lock)}
	declared := slices.DeleteFunc(slices.Clone(set.Unread), func(u declare.Unread) bool { return u.Tolerated && !u.Declares() })
	out.nothing = len(set.Subscriptions) == 0 && len(declared) > 0 && (hasNoPins(lock) || len(out.pins) > 0)
	var faults diag.List
	faults.Add(diag.Pos{}, err)
	for _, k := range out.pins {
		if k.in.Tolerated {
			hint := fmt.Sprintf("make the file readable; to remove the operator, run 'quayside resolve --unpin=%s'", k.pin.Key())
			faults.Add(k.in.Pos, diag.Hintf(k.in.Pos, hint, "%s is pinned, and its declaration may be here: %s", k.pin.Key(), k.in.Reason))
		}
	}
	out.faults = faults.Err()
	if out.nothing {
		out.faults = newNothingReadError(declared)
	}
	if partial && (!out.nothing || len(out.pins) > 0) {
		return out, nil
	}
	return out, out.faults
}

func hasNoPins(lock *lockfile.File) bool { return lock == nil || len(lock.Pins) == 0 }

// CheckRead returns an error if the workspace has no pins, and none of its declarations was read.
func (p *Project) CheckRead(ctx context.Context) error {
	lock, err := p.LockIfAny()
	if err != nil || !hasNoPins(lock) {
		return nil //nolint:nilerr // the code that needs the lock reports the error
	}
	set, err := p.Declarations()
	if set == nil {
		return nil //nolint:nilerr // nothing is pinned, so no pin can be lost
	}
	if u, err := p.checkUnread(ctx, set, err, lock, nil, true); u.nothing {
		return err
	}
	return nil
}

// unreadPins returns the pins whose declaration or OperatorGroup may be in an element of set.Unread. What could not
// be read in the commit that last changed a pin cannot contain its declaration, because that was read then.
func unreadPins(ctx context.Context, p *Project, set *declare.Set, lock *lockfile.File, unpin []resolve.Target) []unreadPin {
	if lock == nil || len(set.Unread) == 0 {
		return nil
	}
	var out []unreadPin
	for _, pin := range lock.Pins {
		if slices.ContainsFunc(unpin, func(t resolve.Target) bool {
			return t.Package == pin.Package && (t.Namespace == "" || t.Namespace == pin.Namespace)
		}) {
			continue
		}
		for _, by := range pin.RequestedBy {
			may := mayBeIn(set, lock, pin, by)
			if may == nil {
				continue
			}
			before := cmp.Or(declaredAtPin(ctx, p, pin), &declare.Set{})
			i := slices.IndexFunc(set.Unread, func(u declare.Unread) bool { return may(u) && !slices.ContainsFunc(before.Unread, u.Equal) })
			if i >= 0 {
				out = append(out, unreadPin{pin, set.Unread[i]})
				break
			}
		}
	}
	return out
}

// mayBeIn returns a predicate that reports whether an unread file or object may contain a missing
// object of a pin. by is the "namespace/name" of the declaration of the pin. If this declaration was
// not read, it is the missing object. Otherwise the OperatorGroup of the pin may be missing. mayBeIn
// returns nil if no object is missing, or if the predicate is false for all elements of set.Unread.
func mayBeIn(set *declare.Set, lock *lockfile.File, pin lockfile.Pin, by string) func(declare.Unread) bool {
	ns, name, _ := strings.Cut(by, "/")
	condition := func(u declare.Unread) bool { return u.MayDeclare(ns, name, pin.Package) }
	i := slices.IndexFunc(set.Subscriptions, func(s declare.Subscription) bool {
		found, ok := resolve.PinOf(lock, s)
		return s.Key() == by || s.Namespace == "" && ok && found.Key() == pin.Key() && s.Name == name
	})
	if i >= 0 {
		if set.Subscriptions[i].Dialect != declare.V0 || pin.OperatorGroup == "" || len(set.OperatorGroupsIn(pin.Namespace)) > 0 {
			return nil
		}
		condition = func(u declare.Unread) bool {
			return u.MayGroup(pin.Namespace) || u.Kind == "" && u.MayDeclare(pin.Namespace, pin.OperatorGroup, pin.OperatorGroup)
		}
	}
	if !slices.ContainsFunc(set.Unread, condition) {
		return nil
	}
	return condition
}

// declaredAtPin returns the declarations in the commit that last changed the pin, or nil for an unknown
// commit.
func declaredAtPin(ctx context.Context, p *Project, pin lockfile.Pin) *declare.Set {
	before := atPin(ctx, p, pin)
	if before == nil {
		return nil
	}
	set, _ := before.Declarations() // without the parts that could not be read
	return set
}

// atPin returns the workspace in the commit that last changed the pin, or nil for an unknown commit.
func atPin(ctx context.Context, p *Project, pin lockfile.Pin) *Project {
	clone, err := p.Clone()
	if err != nil {
		return nil
	}
	commit, _, err := clone.Repo.LastChange(ctx, clone.Path(LockFile), "checksum: "+string(pin.Checksum()))
	if err != nil || commit == nil {
		return nil
	}
	before, err := clone.At(commit)
	if err != nil {
		return nil
	}
	return before
}

// missingOperators returns an element for each operator that is not pinned because its declaration or
// OperatorGroup was not read. The element has the namespace and name of the operator's Subscription.
func missingOperators(set *declare.Set, lock *lockfile.File) []declare.Unread {
	var out []declare.Unread
	for _, u := range set.Unread {
		if u.Tolerated || !u.Declares() || u.Name == "" {
			continue
		}
		pinned := lock != nil && slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool {
			return slices.Contains(pin.RequestedBy, u.Namespace+"/"+u.Name)
		})
		if !pinned && !slices.ContainsFunc(out, func(o declare.Unread) bool { return o.Namespace == u.Namespace && o.Name == u.Name }) {
			out = append(out, u)
		}
	}
	for _, s := range set.Subscriptions {
		_, pinned := resolve.PinOf(lock, s)
		i := slices.IndexFunc(set.Unread, func(u declare.Unread) bool { return !u.Tolerated && u.MayGroup(s.Namespace) })
		if !pinned && s.Dialect == declare.V0 && len(set.OperatorGroupsIn(s.Namespace)) == 0 && i >= 0 {
			u := set.Unread[i]
			u.Kind, u.Namespace, u.Name = "OperatorGroup", s.Namespace, s.Name
			out = append(out, u)
		}
	}
	return out
}

// complete returns set with a declaration for each kept pin, which replaces all other declarations
// of the operator. It omits the declarations of operators in u.missing.
func (u unread) complete(set *declare.Set) *declare.Set {
	out := *set
	out.Subscriptions = slices.DeleteFunc(slices.Clone(set.Subscriptions), func(s declare.Subscription) bool {
		return u.keeps(s.Key()) || slices.ContainsFunc(u.missing, func(m declare.Unread) bool { return m.Namespace == s.Namespace && m.Name == s.Name })
	})
	for _, k := range u.pins {
		for _, by := range k.pin.RequestedBy {
			_, name, _ := strings.Cut(by, "/")
			id := k.pin.Catalog.ID
			s := declare.Subscription{
				Dialect: declare.Quayside, Name: name, Namespace: k.pin.Namespace, Package: k.pin.Package, Catalog: &id,
				Approval: declare.Manual, Policy: declare.CatalogProvided, Hold: k.reason(), Config: k.pin.Config, Pos: k.in.Pos,
				Watch: k.pin.WatchNamespaces, WatchAll: len(k.pin.WatchNamespaces) == 0,
			}
			if k.pin.Channel != "" {
				s.Channels = []string{k.pin.Channel}
			}
			out.Subscriptions = append(out.Subscriptions, s)
		}
	}
	slices.SortStableFunc(out.Subscriptions, func(a, b declare.Subscription) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	return &out
}

// keeps reports whether a declaration belongs to a kept pin.
func (u unread) keeps(key string) bool {
	return slices.ContainsFunc(u.pins, func(k unreadPin) bool { return slices.Contains(k.pin.RequestedBy, key) })
}

// restore returns the lock next with the kept pins added. It copies the Namespaces that these pins
// need from the previous lock before, because their declarations may be unread.
func (u unread) restore(next, before *lockfile.File) *lockfile.File {
	if len(u.pins) == 0 {
		return next
	}
	pins := slices.Clone(next.Pins)
	out := *next
	for _, k := range u.pins {
		pins = append(slices.DeleteFunc(pins, func(p lockfile.Pin) bool { return p.Key() == k.pin.Key() }), k.pin)
		for _, n := range before.Namespaces {
			known := slices.ContainsFunc(out.Namespaces, func(o lockfile.Namespace) bool { return o.Name == n.Name })
			if !known && (n.Name == k.pin.Namespace || slices.Contains(k.pin.WatchNamespaces, n.Name)) {
				out.Namespaces = append(slices.Clone(out.Namespaces), n)
			}
		}
	}
	return out.With(pins)
}

// warnings returns a warning for each operator that keeps its pin or is missing because something was not read.
// In an unattended run, it also returns the errors as warnings.
func (u unread) warnings(unattended bool) []diag.Warning {
	var out []diag.Warning
	for _, k := range u.pins {
		out = append(out, diag.Warning{Pos: k.in.Pos, Code: "not-read", Subject: k.pin.Key(), Msg: fmt.Sprintf("%s stays at %s, because its declaration or OperatorGroup cannot be read", k.pin.Key(), k.pin.Version)})
	}
	for _, m := range u.missing {
		out = append(out, diag.Warning{Pos: m.Pos, Code: "not-read", Subject: m.Namespace + "/" + m.Name, Msg: fmt.Sprintf("subscription %s/%s is not locked, because its declaration or OperatorGroup cannot be read", m.Namespace, m.Name)})
	}
	if unattended {
		var faults diag.List
		faults.Add(diag.Pos{}, u.faults)
		for _, e := range faults {
			out = append(out, diag.Warning{Pos: e.Pos, Code: "not-read", Msg: "declarations cannot be read: " + (&diag.Error{Msg: e.Msg, Err: e.Err}).Error()})
		}
	}
	return out
}
