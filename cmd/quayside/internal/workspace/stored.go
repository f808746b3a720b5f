package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// The API server rejects a CRD that no longer has a version in status.storedVersions. If the next bundle of
// an operator drops such a version, the upgrade is held back, and the pin records a migration step. In the
// first step, the CRD of the installed bundle stores new objects in the new version. In the second step,
// existing objects are rewritten. The hold ends when no cluster has the old version in status.storedVersions.
// Both steps use the installed bundle, because it certainly has both versions and their conversion webhook.
// See docs/stored-versions.md.

// packageUpgrade is the upgrade of one package between two locks. A package may be pinned in
// several namespaces; then its newest pin determines the CRDs in the clusters.
type packageUpgrade struct {
	before, after lockfile.Pin   // newest pins of the package
	upgraded      []lockfile.Pin // pins of the old lock that are upgraded to the bundle of the pin after
}

// findStored returns a hold for each operator whose upgrade in next drops a stored version of a
// CRD. It also returns warnings about upgrades whose stored versions are unknown.
func (pr *Problem) findStored(ctx context.Context, next *lockfile.File) (holds []resolve.Hold, notChecked []diag.Warning, err error) {
	steps := pr.packageUpgrades(next)
	if len(steps) == 0 {
		return nil, nil, nil
	}
	c, err := pr.project.Contents()
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	for _, s := range steps {
		before, err := readCRDs(ctx, c, s.before, pr.Read)
		var after map[string]k8s.CRD
		if err == nil {
			after, err = readCRDs(ctx, c, s.after, pr.Read)
		}
		if err != nil {
			notChecked = append(notChecked, diag.Warning{Code: "stored-versions", Subject: s.after.Key(), Msg: fmt.Sprintf("%s: dropped stored versions could not be checked: %v", s.after.Key(), err)})
			continue
		}
		removed := pr.removedVersions(s, before, after)
		if len(removed) == 0 {
			continue
		}
		storage := pr.nextStorage(s, removed, before)
		for _, pin := range s.upgraded {
			holds = append(holds, resolve.Hold{Operator: pin.Key(), Reason: holdReason(s, removed, storage), Storage: storage})
		}
	}
	return holds, notChecked, nil
}

// packageUpgrades returns the upgrades from the lock to next. It omits reinstallations, and pins
// that repairMerge restored.
func (pr *Problem) packageUpgrades(next *lockfile.File) []packageUpgrade {
	newest := func(pins []lockfile.Pin, pkg string) (out lockfile.Pin) {
		for _, p := range pins {
			if p.Package == pkg && (out.Package == "" || p.CompareVersions(out) > 0) {
				out = p
			}
		}
		return out
	}
	if pr.Read == nil {
		return nil
	}
	var out []packageUpgrade
	for _, p := range pr.Read.Pins {
		after, ok := next.Pin(p.Namespace, p.Package)
		if target := findTarget(pr.Options, p); !ok || pr.merge.restored[p.Key()] != "" || after.Bundle == p.Bundle || target != nil && target.Reinstall {
			continue
		}
		i := slices.IndexFunc(out, func(s packageUpgrade) bool { return s.after.Package == p.Package })
		if i < 0 {
			i, out = len(out), append(out, packageUpgrade{before: newest(pr.Read.Pins, p.Package), after: newest(next.Pins, p.Package)})
		}
		if after.Bundle == out[i].after.Bundle {
			out[i].upgraded = append(out[i].upgraded, p)
		}
	}
	return slices.DeleteFunc(out, func(s packageUpgrade) bool { return len(s.upgraded) == 0 || s.before.Bundle == s.after.Bundle })
}

// readCRDs returns the CRDs in the bundle of a pin, by name, without their schemas. before is the previous lock.
func readCRDs(ctx context.Context, c *Contents, pin lockfile.Pin, before *lockfile.File) (map[string]k8s.CRD, error) {
	pin, err := c.AddDigest(ctx, pin, before)
	if err != nil {
		return nil, err
	}
	b, err := c.Bundle(ctx, pin)
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

// removedVersions returns the CRD versions that an upgrade removes, if a cluster may still store
// objects in them. They are sorted by CRD and version.
func (pr *Problem) removedVersions(s packageUpgrade, before, after map[string]k8s.CRD) []lockfile.StoredVersions {
	var out []lockfile.StoredVersions
	for name, old := range before {
		updated, exists := after[name]
		to, stores := updated.Stored()
		if !exists || !stores {
			continue
		}
		for _, v := range old.Versions {
			if _, has := updated.Version(v.Name); !has && !pr.isVersionUnused(s, name, v.Name) {
				out = append(out, lockfile.StoredVersions{Definition: name, From: v.Name, To: to.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b lockfile.StoredVersions) int {
		return strings.Compare(a.Definition+" "+a.From, b.Definition+" "+b.From)
	})
	return out
}

// isStoring reports whether the operators of s are Ready in every cluster, and the CRDs have the
// target versions of the migration step in status.storedVersions. The API server adds a version to
// that list when it becomes the storage version.
func (pr *Problem) isStoring(s packageUpgrade, storage *lockfile.Storage) bool {
	return pr.allObserved(s, func(o health.OperatorHealth) bool {
		return o.State == health.StateReady && !slices.ContainsFunc(storage.Objects, func(want lockfile.StoredVersions) bool {
			return !slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
				return v.Definition == want.Definition && slices.Contains(v.Versions, want.To)
			})
		})
	})
}

// isVersionUnused reports whether every cluster with the upgraded operators was observed, and no
// cluster has the version in status.storedVersions of the CRD.
func (pr *Problem) isVersionUnused(s packageUpgrade, definition, version string) bool {
	return pr.allObserved(s, func(o health.OperatorHealth) bool {
		return slices.ContainsFunc(o.StoredVersions, func(v v1alpha1.StoredVersions) bool {
			return v.Definition == definition && !slices.Contains(v.Versions, version)
		})
	})
}

// allObserved reports whether every upgraded operator was observed in each of its clusters, and the
// predicate in is true for every observation.
func (pr *Problem) allObserved(s packageUpgrade, is func(health.OperatorHealth) bool) bool {
	for _, pin := range s.upgraded {
		clusters, err := profile.ClustersThatGet(pin.Key(), pr.project.Settings.Clusters)
		if err != nil || len(clusters) == 0 {
			return false
		}
		for _, cluster := range clusters {
			o, ok := pr.observation(cluster, pin)
			if !ok || !is(o) {
				return false
			}
		}
	}
	return true
}

// observation returns the observation of an operator in a cluster. If the workspace has only one cluster, it
// uses the first valid file, regardless of the cluster that the file names.
func (pr *Problem) observation(cluster string, pin lockfile.Pin) (health.OperatorHealth, bool) {
	for _, f := range pr.observed {
		if f.Problem == "" && (f.Cluster == cluster || len(pr.project.Settings.ClusterNames()) == 1) {
			return f.Operator(pin.Namespace, pin.Package)
		}
	}
	return health.OperatorHealth{}, false
}

// nextStorage returns the migration step that must be done next, before the upgrade. It returns nil if the
// installed bundle lacks the new storage version, because no migration is possible then.
func (pr *Problem) nextStorage(s packageUpgrade, removed []lockfile.StoredVersions, before map[string]k8s.CRD) *lockfile.Storage {
	for _, o := range removed {
		if _, has := before[o.Definition].Version(o.To); !has {
			return nil
		}
	}
	var have *lockfile.Storage
	for _, pin := range s.upgraded {
		if pin.Storage != nil {
			have = pin.Storage
		}
	}
	out := &lockfile.Storage{Stage: lockfile.StorageMigrate, Objects: removed}
	if have != nil { // keep the storage version of CRDs that are already migrated
		for _, o := range have.Objects {
			if !slices.ContainsFunc(removed, func(l lockfile.StoredVersions) bool { return l.Definition == o.Definition }) {
				out.Objects = append(out.Objects, o)
			}
		}
	}
	needsStore := slices.ContainsFunc(removed, func(o lockfile.StoredVersions) bool {
		v, ok := before[o.Definition].Stored()
		known := have != nil && slices.Contains(have.Objects, o)
		return !known && !(ok && v.Name == o.To)
	})
	if needsStore || have != nil && have.Stage == lockfile.StorageStore && !pr.isStoring(s, have) {
		out.Stage = lockfile.StorageStore
	}
	return out
}

// holdReason returns the reason why an upgrade is held back, and the event that ends the hold.
func holdReason(s packageUpgrade, removed []lockfile.StoredVersions, next *lockfile.Storage) string {
	var versions []string
	for _, o := range removed {
		versions = append(versions, o.From+" of "+o.Definition)
	}
	text := fmt.Sprintf("%s no longer has %s, which may be a stored version: ", s.after.Bundle, diag.Some(versions, 3))
	switch {
	case next == nil:
		return text + fmt.Sprintf("%s does not have the new storage version, so no CRD has both versions; see docs/stored-versions.md", s.before.Bundle)
	case next.Stage == lockfile.StorageStore:
		return text + "with this lock, new objects are stored in the new version; continue with --observed once every cluster is Ready with this lock"
	default:
		return text + "with this lock, objects are rewritten in the new version; continue with --observed once no cluster has the old version in status.storedVersions"
	}
}

// withStorage returns a copy of lock that records the migration steps of the holds.
func withStorage(lock *lockfile.File, holds []resolve.Hold) *lockfile.File {
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		for _, h := range holds {
			if h.Operator == p.Key() && h.Storage != nil {
				pins[i].Storage = h.Storage
			}
		}
	}
	return lock.With(pins)
}
