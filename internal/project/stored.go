package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/bundle/fetch"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/v1alpha1"
	"github.com/quayside/quayside/resolve"
)

// An API server refuses a definition without a version in which objects may be
// stored (status.storedVersions). So an operator that is to move to a bundle that
// drops one stays where it is, in a state that its pin tells, until clusters were
// seen to store nothing in that version: first with the definition of its own
// bundle storing objects in the other version, then with the objects of before
// rewritten. Its own bundle has both versions, and so has the webhook that converts
// between them; nobody knows that of the next one. docs/stored-versions.md tells
// it for people.

// solve resolves. Operators whose next bundle drops versions in which objects may
// be stored are held, and how they wait is noted.
func (in *Inputs) solve(ctx context.Context) (*resolve.Result, error) {
	for {
		res, err := resolve.Resolve(in.Index, in.Declared, in.Lock, in.Options)
		if res == nil || res.Lock == nil || in.Read == nil {
			return res, err
		}
		more, failed := in.holdStored(ctx, res.Lock)
		if failed != nil {
			return nil, failed
		}
		if !more {
			return res, err
		}
	}
}

// step is what one package does between two locks: what is newest of it in each,
// which decides what definitions a cluster has.
type step struct {
	before, after lockfile.Pin
	moving        []lockfile.Pin // of the lock before, to after's bundle
}

// holdStored holds the operators that next moves away from versions in which
// objects may be stored, and reports whether there are any.
func (in *Inputs) holdStored(ctx context.Context, next *lockfile.File) (bool, error) {
	in.unread = nil
	steps := in.steps(next)
	if len(steps) == 0 {
		return false, nil
	}
	c, err := in.project.contents()
	if err != nil {
		return false, err
	}
	defer c.Close()
	more := false
	for _, s := range steps {
		before, err := in.definitions(ctx, c, s.before)
		var after map[string]kinds.Definition
		if err == nil {
			after, err = in.definitions(ctx, c, s.after)
		}
		if err != nil {
			in.unread = append(in.unread, diag.Warning{Code: "stored-versions", Subject: s.after.Key(), Msg: fmt.Sprintf("%s: whether the upgrade drops a version in which objects are stored is not known: %v", s.after.Key(), err)})
			continue
		}
		if leaves := in.leaving(s, before, after); len(leaves) > 0 {
			in.wait(s, leaves, before)
			more = true
		}
	}
	return more, nil
}

// steps returns what packages of the lock move between it and next, but for those
// that somebody wants moved whatever leads there, and those of a commit's lock.
func (in *Inputs) steps(next *lockfile.File) []step {
	best := func(pins []lockfile.Pin, pkg string) (out lockfile.Pin) {
		for _, p := range pins {
			if p.Package == pkg && (out.Package == "" || p.CompareVersions(out) > 0) {
				out = p
			}
		}
		return out
	}
	var out []step
	for _, p := range in.Read.Pins {
		moved, ok := next.Pin(p.Namespace, p.Package)
		if by := names(in.Options, p); !ok || in.taken[p.Key()] != "" || moved.Bundle == p.Bundle || by != nil && by.Anew {
			continue
		}
		i := slices.IndexFunc(out, func(s step) bool { return s.after.Package == p.Package })
		if i < 0 {
			i, out = len(out), append(out, step{before: best(in.Read.Pins, p.Package), after: best(next.Pins, p.Package)})
		}
		if moved.Bundle == out[i].after.Bundle {
			out[i].moving = append(out[i].moving, p)
		}
	}
	return slices.DeleteFunc(out, func(s step) bool { return len(s.moving) == 0 || s.before.Bundle == s.after.Bundle })
}

// definitions returns the heads of the definitions that a pin's bundle brings, by
// name.
func (in *Inputs) definitions(ctx context.Context, c *fetch.Contents, pin lockfile.Pin) (map[string]kinds.Definition, error) {
	pin, err := c.Tie(ctx, pin, in.Read)
	if err != nil {
		return nil, err
	}
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, err
	}
	out := map[string]kinds.Definition{}
	for _, file := range b.Objects {
		if kobj.IsCRD(file.Object) {
			out[file.Name()] = kinds.Define(file.Object)
		}
	}
	return out, nil
}

// leaving returns the versions that go with a step, and that not every cluster was
// seen to store nothing in; by definition and version.
func (in *Inputs) leaving(s step, before, after map[string]kinds.Definition) []lockfile.StoredVersions {
	var out []lockfile.StoredVersions
	for name, old := range before {
		now, stays := after[name]
		to, stores := now.Stored()
		if !stays || !stores {
			continue
		}
		for _, v := range old.Versions {
			if _, has := now.Version(v.Name); !has && !in.left(s, name, v.Name) {
				out = append(out, lockfile.StoredVersions{Definition: name, From: v.Name, To: to.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b lockfile.StoredVersions) int {
		return strings.Compare(a.Definition+" "+a.From, b.Definition+" "+b.From)
	})
	return out
}

// stores reports whether every cluster was seen Ready, with the definitions that a
// state names storing objects where it says: the API server adds a version to
// status.storedVersions as soon as a definition stores in it.
func (in *Inputs) stores(s step, state *lockfile.Storage) bool {
	return in.seen(s, func(o report.ObservedOperator) bool {
		return o.State == report.StateReady && !slices.ContainsFunc(state.Objects, func(want lockfile.StoredVersions) bool {
			return !slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
				return v.Definition == want.Definition && slices.Contains(v.Versions, want.To)
			})
		})
	})
}

// left reports whether every cluster that gets what moves was seen to store no
// object of a definition in a version.
func (in *Inputs) left(s step, definition, version string) bool {
	return in.seen(s, func(o report.ObservedOperator) bool {
		return slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
			return v.Definition == definition && !slices.Contains(v.Versions, version)
		})
	})
}

// seen reports whether every cluster that gets an operator of a step was looked at,
// and is as it has to be.
func (in *Inputs) seen(s step, is func(report.ObservedOperator) bool) bool {
	for _, pin := range s.moving {
		clusters, err := in.project.getting(pin)
		if err != nil || len(clusters) == 0 {
			return false
		}
		for _, cluster := range clusters {
			o, ok := in.observation(cluster, pin)
			if !ok || !is(o) {
				return false
			}
		}
	}
	return true
}

// observation returns what was seen of an operator in a cluster. Where there is
// one cluster alone, every file is of that one.
func (in *Inputs) observation(cluster string, pin lockfile.Pin) (report.ObservedOperator, bool) {
	for _, f := range in.observed {
		if f.Cluster == cluster || len(in.project.Clusters()) == 1 {
			return f.Operator(pin.Namespace, pin.Package)
		}
	}
	return report.ObservedOperator{}, false
}

// getting returns the clusters that get what is pinned, in their order.
func (p *Project) getting(pin lockfile.Pin) ([]string, error) {
	var out []string
	for _, c := range p.Settings.Clusters {
		gets, err := (render.Cluster{Operators: c.Operators}).Gets(pin.Key())
		if err != nil {
			return nil, err
		}
		if gets {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// wait holds what moves, and notes in which state it waits.
func (in *Inputs) wait(s step, leaves []lockfile.StoredVersions, before map[string]kinds.Definition) {
	next := in.waiting(s, leaves, before)
	for _, pin := range s.moving {
		h := hold{Hold: resolve.Hold{Namespace: pin.Namespace, Package: pin.Package, Reason: whyWaiting(s, leaves, next)}}
		in.holds, in.Options.Held = append(in.holds, h), append(in.Options.Held, h.Hold)
		in.Options.Named = slices.DeleteFunc(slices.Clone(in.Options.Named), func(t resolve.Target) bool {
			return t.Namespace == pin.Namespace && t.Package == pin.Package
		})
		if next != nil {
			in.storage[pin.Key()] = next
		}
	}
}

// waiting returns the state in which a step waits for objects to leave versions;
// nil where the bundle before does not have the ones that they are to be stored in.
func (in *Inputs) waiting(s step, leaves []lockfile.StoredVersions, before map[string]kinds.Definition) *lockfile.Storage {
	for _, o := range leaves {
		if _, has := before[o.Definition].Version(o.To); !has {
			return nil
		}
	}
	var have *lockfile.Storage
	for _, pin := range s.moving {
		if pin.Storage != nil {
			have = pin.Storage
		}
	}
	out := &lockfile.Storage{State: lockfile.StorageMigrate, Objects: leaves}
	if have != nil { // what has left already goes on being stored as it is
		for _, o := range have.Objects {
			if !slices.ContainsFunc(leaves, func(l lockfile.StoredVersions) bool { return l.Definition == o.Definition }) {
				out.Objects = append(out.Objects, o)
			}
		}
	}
	fresh := slices.ContainsFunc(leaves, func(o lockfile.StoredVersions) bool {
		v, ok := before[o.Definition].Stored()
		known := have != nil && slices.Contains(have.Objects, o)
		return !known && !(ok && v.Name == o.To)
	})
	if fresh || have != nil && have.State == lockfile.StorageStore && !in.stores(s, have) {
		out.State = lockfile.StorageStore
	}
	return out
}

// whyWaiting says why what moves stays, and what has to be seen before it goes on.
func whyWaiting(s step, leaves []lockfile.StoredVersions, next *lockfile.Storage) string {
	var gone []string
	for _, o := range leaves {
		gone = append(gone, o.From+" of "+o.Definition)
	}
	text := fmt.Sprintf("%s no longer has %s, in which objects may be stored: ", s.after.Bundle, some(gone))
	switch {
	case next == nil:
		return text + fmt.Sprintf("and %s does not have the version that they would be stored in, so no definition has both; docs/stored-versions.md says what is left to do", s.before.Bundle)
	case next.State == lockfile.StorageStore:
		return text + "with this lock, new ones are stored in the other version; go on with --observed once every cluster is Ready with it"
	default:
		return text + "with this lock, they are rewritten in the other version; go on with --observed once no cluster names it in status.storedVersions"
	}
}

// some returns the first of a list in words.
func some(list []string) string {
	const shown = 3
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// staged returns a lock with the states in which operators wait, of those alone
// that are named.
func (in *Inputs) staged(lock *lockfile.File, operators ...string) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if s := in.storage[p.Key()]; s != nil && slices.Contains(operators, p.Key()) {
			pins[i].Storage = s
		}
	}
	return lock.With(pins)
}
