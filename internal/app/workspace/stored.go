package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/bundle"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// The API server refuses a CRD that lacks a version listed in status.storedVersions.
// An operator whose next bundle drops such a version is therefore held back, and its
// pin records the migration step, until every cluster was observed to store nothing in
// it: first the CRD of the installed bundle stores objects in the other version, then
// existing objects are rewritten. The installed bundle has both versions and a webhook
// that converts between them; the next one may not. See docs/stored-versions.md.

// solve resolves, and holds back operators whose next bundle drops versions in which
// objects may be stored. It resolves again after each hold: whether a version is
// dropped depends on the newest pin of a package over all namespaces of the result, and
// the answer needs the content of both bundles.
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

// step is the upgrade of one package between two locks. Its newest pin in each lock
// decides which CRDs a cluster has.
type step struct {
	before, after lockfile.Pin
	moving        []lockfile.Pin // pins of the old lock that are upgraded to the bundle of after
}

// holdStored holds back the operators that next upgrades to a bundle without a version
// in which objects may be stored. It reports whether there are any.
func (in *Inputs) holdStored(ctx context.Context, next *lockfile.File) (bool, error) {
	in.unread = nil
	steps := in.steps(next)
	if len(steps) == 0 {
		return false, nil
	}
	c, err := in.project.Contents()
	if err != nil {
		return false, err
	}
	defer c.Close()
	more := false
	for _, s := range steps {
		before, err := in.definitions(ctx, c, s.before)
		var after map[string]k8s.CRD
		if err == nil {
			after, err = in.definitions(ctx, c, s.after)
		}
		if err != nil {
			in.unread = append(in.unread, diag.Warning{Code: "stored-versions", Subject: s.after.Key(), Msg: fmt.Sprintf("%s: dropped stored versions could not be checked: %v", s.after.Key(), err)})
			continue
		}
		if leaves := in.removedVersions(s, before, after); len(leaves) > 0 {
			in.holdStep(s, leaves, before)
			more = true
		}
	}
	return more, nil
}

// steps returns the upgrades between the lock and next, without reinstallations and
// operators taken from the lock of a commit.
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
		if by := findTarget(in.Options, p); !ok || in.taken[p.Key()] != "" || moved.Bundle == p.Bundle || by != nil && by.Reinstall {
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

// definitions returns the CRDs of a pin's bundle by name, without schemas.
func (in *Inputs) definitions(ctx context.Context, c *Contents, pin lockfile.Pin) (map[string]k8s.CRD, error) {
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
	out := map[string]k8s.CRD{}
	for _, file := range b.Objects {
		if k8s.IsCRD(file.Object) {
			out[file.Name()] = k8s.ParseCRD(file.Object)
		}
	}
	return out, nil
}

// removedVersions returns the versions that a step removes and in which a cluster may still
// store objects, sorted by CRD and version.
func (in *Inputs) removedVersions(s step, before, after map[string]k8s.CRD) []lockfile.StoredVersions {
	var out []lockfile.StoredVersions
	for name, old := range before {
		now, stays := after[name]
		to, stores := now.Stored()
		if !stays || !stores {
			continue
		}
		for _, v := range old.Versions {
			if _, has := now.Version(v.Name); !has && !in.isVersionUnused(s, name, v.Name) {
				out = append(out, lockfile.StoredVersions{Definition: name, From: v.Name, To: to.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b lockfile.StoredVersions) int {
		return strings.Compare(a.Definition+" "+a.From, b.Definition+" "+b.From)
	})
	return out
}

// isStoring reports whether every cluster was observed Ready, with the CRDs of a migration
// step storing objects in the target version. The API server adds a version to
// status.storedVersions as soon as it becomes the storage version.
func (in *Inputs) isStoring(s step, state *lockfile.Storage) bool {
	return in.allObserved(s, func(o health.OperatorHealth) bool {
		return o.State == health.StateReady && !slices.ContainsFunc(state.Objects, func(want lockfile.StoredVersions) bool {
			return !slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
				return v.Definition == want.Definition && slices.Contains(v.Versions, want.To)
			})
		})
	})
}

// isVersionUnused reports whether every cluster with the upgraded operators was observed to store
// no object of a CRD in a version.
func (in *Inputs) isVersionUnused(s step, definition, version string) bool {
	return in.allObserved(s, func(o health.OperatorHealth) bool {
		return slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
			return v.Definition == definition && !slices.Contains(v.Versions, version)
		})
	})
}

// allObserved reports whether there is an observation of every cluster with an operator of the
// step, and whether all satisfy is.
func (in *Inputs) allObserved(s step, is func(health.OperatorHealth) bool) bool {
	for _, pin := range s.moving {
		clusters, err := in.project.clustersWith(pin)
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

// observation returns the observation of an operator in a cluster. In a workspace with
// one cluster, every file is of that cluster.
func (in *Inputs) observation(cluster string, pin lockfile.Pin) (health.OperatorHealth, bool) {
	for _, f := range in.observed {
		if f.Cluster == cluster || len(in.project.Clusters()) == 1 {
			return f.Operator(pin.Namespace, pin.Package)
		}
	}
	return health.OperatorHealth{}, false
}

// clustersWith returns the names of the clusters that get the operator of a pin, in the order
// of the settings.
func (p *Project) clustersWith(pin lockfile.Pin) ([]string, error) {
	return profile.ClustersThatGet(pin.Key(), p.Settings.Clusters)
}

// holdStep holds back the operators of a step and records their migration step.
func (in *Inputs) holdStep(s step, leaves []lockfile.StoredVersions, before map[string]k8s.CRD) {
	next := in.nextStorage(s, leaves, before)
	for _, pin := range s.moving {
		in.Options.Held = append(in.Options.Held, resolve.Hold{Namespace: pin.Namespace, Package: pin.Package, Reason: holdReason(s, leaves, next)})
		in.Options.Named = slices.DeleteFunc(slices.Clone(in.Options.Named), func(t resolve.Target) bool {
			return t.Namespace == pin.Namespace && t.Package == pin.Package
		})
		if next != nil {
			in.storage[pin.Key()] = next
		}
	}
}

// nextStorage returns the migration step that must finish before the upgrade; nil if the
// installed bundle lacks a version in which objects must be stored.
func (in *Inputs) nextStorage(s step, leaves []lockfile.StoredVersions, before map[string]k8s.CRD) *lockfile.Storage {
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
	if have != nil { // CRDs that were migrated already keep their storage version
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
	if fresh || have != nil && have.State == lockfile.StorageStore && !in.isStoring(s, have) {
		out.State = lockfile.StorageStore
	}
	return out
}

// holdReason returns the reason for holding an upgrade back, with the observation that
// ends it.
func holdReason(s step, leaves []lockfile.StoredVersions, next *lockfile.Storage) string {
	var gone []string
	for _, o := range leaves {
		gone = append(gone, o.From+" of "+o.Definition)
	}
	text := fmt.Sprintf("%s no longer has %s, which may be a stored version: ", s.after.Bundle, diag.Some(gone, 3))
	switch {
	case next == nil:
		return text + fmt.Sprintf("and %s does not have the new storage version, so no CRD has both; see docs/stored-versions.md", s.before.Bundle)
	case next.State == lockfile.StorageStore:
		return text + "with this lock, new objects are stored in the new version; continue with --observed once every cluster is Ready with it"
	default:
		return text + "with this lock, objects are rewritten in the new version; continue with --observed once no cluster has the old one in status.storedVersions"
	}
}

// withStorage returns the lock with the migration steps of the named operators.
func (in *Inputs) withStorage(lock *lockfile.File, operators ...string) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if s := in.storage[p.Key()]; s != nil && slices.Contains(operators, p.Key()) {
			pins[i].Storage = s
		}
	}
	return lock.With(pins)
}
