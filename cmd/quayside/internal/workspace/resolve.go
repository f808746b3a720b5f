package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// ResolveOptions returns the resolver options of quayside.yaml.
func (p *Project) ResolveOptions() resolve.Options {
	w := p.Settings
	return resolve.Options{
		KubernetesVersion:  w.KubernetesVersion,
		Clusters:           clusterVersions(w),
		OpenShiftVersion:   w.OpenShiftVersion,
		Requirements:       w.Requirements,
		AllowOverlap:       w.AllowOverlap,
		SharedDependencies: w.SharedDependencies,
		GlobalNamespaces:   append([]string{}, w.GlobalCatalogs...),
		Command:            "quayside resolve",
	}
}

// clusterVersions returns the clusters with their versions, or nil if none has a version of its own.
// Clusters with equal versions and operators are returned once.
func clusterVersions(w *settings.Workspace) []resolve.Cluster {
	if !slices.ContainsFunc(w.Clusters, func(c profile.Cluster) bool { return c.KubernetesVersion != "" }) {
		return nil
	}
	var out []resolve.Cluster
	known := map[string]bool{}
	for _, c := range w.Clusters {
		version := cmp.Or(c.KubernetesVersion, w.KubernetesVersion)
		if key := fmt.Sprintf("%q", append([]string{version}, c.Operators...)); !known[key] {
			known[key] = true
			out = append(out, resolve.Cluster{Name: c.Name, KubernetesVersion: version, Gets: func(operator string) bool {
				gets, err := c.Gets(operator)
				return err != nil || gets // render reports the error
			}})
		}
	}
	return out
}

// Inputs is the inputs of a resolution.
type Inputs struct {
	Options  resolve.Options
	Declared *declare.Set
	Index    *catalog.Index
	Lock     *lockfile.File // Read, changed by refreshDirect and repairMerge; may be nil
	Read     *lockfile.File // lock as in its file; may be nil

	project     *Project
	catalogs    []cache.Catalog      // as declared
	stale       []resolve.Reason     // differences between Lock and Read
	observed    []*health.Summary    // observations of clusters
	downgrades  []lockfile.Downgrade // pins downgraded by a merge, rebase or cherry-pick
	restored    map[string]string    // commits of the pins restored by repairMerge, by namespace/package
	notCompared []diag.Warning       // commits with locks that cannot be compared
	named       []resolve.Target     // Options.Named as requested
	holds       []resolve.Hold       // operators that an unattended run holds back at their versions, with codes
	pending     resolve.Result       // all upgrades, from Split
}

// Inputs reads the declarations, the lock, and the parts of the catalogs needed to resolve
// with opt. Unless fresh is true, it reads the tags of catalogs at their locked digests.
func (p *Project) Inputs(ctx context.Context, opt resolve.Options, fresh bool) (*Inputs, error) {
	set, err := p.Declarations()
	if err != nil {
		return nil, err
	}
	in := &Inputs{project: p}
	if in.Read, err = p.LockIfAny(); err != nil {
		return nil, err
	}
	if err := errors.Join(p.checkPatterns(), checkMisspelled(set, in.Read), p.checkDroppedPaths(ctx, set, in.Read)); err != nil {
		return nil, err
	}
	if len(set.Subscriptions) == 0 && (in.Read == nil || len(in.Read.Pins) == 0) {
		if err := p.errUnreadDeclarations(); err != nil {
			return nil, err
		}
	}
	named := opt.Named
	if opt.Named, err = withNamespaces(named, in.Read, set); err != nil {
		return nil, err
	}
	if opt.Unpin, err = withNamespaces(opt.Unpin, in.Read, set); err != nil {
		return nil, err
	}
	in.Options = opt
	in.Options.KeepGoing = opt.KeepGoing || p.unattended
	in.Options.Uninstalls = p.ByOperator()
	in.catalogs = p.Catalogs(set)
	bundles, err := p.openDirectBundles(ctx, set, in.Read, fresh)
	if err != nil {
		return nil, err
	}
	if in.Declared, err = withDirectBundles(set, bundles); err != nil {
		return nil, err
	}
	in.Lock, in.stale = refreshDirect(in.Read, bundles, opt)
	at := in.Read
	if p.repairsMerges {
		if in.repairMerge(set); len(in.restored) > 0 {
			at = in.Lock
		}
	}
	if fresh {
		at = nil
	}
	sh, err := p.OpenCatalogs(ctx, in.catalogs, at, true)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	if err := addDirectBundles(sh, bundles); err != nil {
		return nil, err
	}
	if in.Index, err = sh.Pick(ctx, cache.PickClosure(resolve.Scope(in.Declared, in.Lock, opt))); err != nil {
		return nil, err
	}
	if in.Declared, err = resolve.Namespaced(in.Index, in.Declared, in.Read, opt); err != nil {
		return nil, err
	}
	if err := checkDuplicates(in.Declared); err != nil {
		return nil, err
	}
	in.Options.Named, err = withNamespaces(named, in.Read, in.Declared)
	in.named = in.Options.Named
	return in, err
}

// checkDuplicates returns an error for each second declaration of a package in a namespace, because
// only one declaration can control the operator.
func checkDuplicates(set *declare.Set) error {
	var faults diag.List
	first := map[string]declare.Subscription{}
	for _, s := range set.Subscriptions {
		key := s.Namespace + "/" + s.Package
		if before, twice := first[key]; twice && s.Package != "" {
			faults.Add(s.Pos, diag.Hintf(s.Pos, "keep one of them", "package %q in namespace %q is declared twice, first at %s", s.Package, s.Namespace, before.Pos))
			continue
		}
		first[key] = s
	}
	return faults.Err()
}

// checkMisspelled returns an error for each object with a misspelled API that has the same name as
// the missing declaration of a pinned operator, because resolving would remove the operator.
func checkMisspelled(set *declare.Set, lock *lockfile.File) error {
	if lock == nil {
		return nil
	}
	var faults diag.List
	for _, w := range set.Warnings {
		for _, pin := range lock.Pins {
			declared := slices.ContainsFunc(set.Subscriptions, func(s declare.Subscription) bool { return s.Key() == w.Subject })
			if w.Code == "unknown-api" && slices.Contains(pin.RequestedBy, w.Subject) && !declared {
				faults.Add(w.Pos, diag.Hintf(w.Pos, "correct apiVersion; to remove the operator, delete the object", "%s, but %s is pinned for it", w.Msg, pin.Key()))
			}
		}
	}
	return faults.Err()
}

// checkDroppedPaths returns an error for each declaration of a pinned operator that still exists, but
// that spec.declarations no longer includes since the commit of the pin, because resolving would
// remove the operator. Without such a commit, it returns nil.
func (p *Project) checkDroppedPaths(ctx context.Context, set *declare.Set, lock *lockfile.File) error {
	if lock == nil {
		return nil
	}
	isIn := func(all []declare.Subscription) func(key string) bool {
		return func(key string) bool {
			return slices.ContainsFunc(all, func(s declare.Subscription) bool { return s.Key() == key })
		}
	}
	undeclared := slices.DeleteFunc(slices.Clone(lock.Pins), func(pin lockfile.Pin) bool {
		return len(pin.RequestedBy) == 0 || slices.ContainsFunc(pin.RequestedBy, isIn(set.Subscriptions))
	})
	if len(undeclared) == 0 {
		return nil
	}
	clone, err := p.Clone()
	if err != nil {
		return nil //nolint:nilerr // without a repository, earlier settings are unknown
	}
	isRead := isIn(p.loadPaths(p.Settings.Declarations)) // also if a command is about to remove it
	var faults diag.List
	for _, pin := range undeclared {
		commit, _, err := clone.Repo.LastChange(ctx, clone.Path(LockFile), "checksum: "+string(pin.Checksum()))
		if err != nil || commit == nil {
			continue
		}
		before, err := clone.At(commit)
		if err != nil {
			continue
		}
		for _, s := range p.loadPaths(before.Settings.Declarations) {
			if slices.Contains(pin.RequestedBy, s.Key()) && !isRead(s.Key()) {
				hint := "restore its path in spec.declarations; to remove the operator, delete this declaration"
				faults.Add(s.Pos, diag.Hintf(s.Pos, hint, "spec.declarations no longer includes this declaration, but %s is pinned for it", pin.Key()))
			}
		}
	}
	return faults.Err()
}

// loadPaths returns the declarations in those of the paths that exist, or nil if they are invalid.
func (p *Project) loadPaths(paths []declare.Path) []declare.Subscription {
	files, dir := p.Repository()
	opt := declare.LoadOptions{Dir: dir, Paths: slices.DeleteFunc(slices.Clone(paths), func(d declare.Path) bool { return !p.exists(d.Path) }), Output: p.Settings.Output}
	if len(opt.Paths) == 0 {
		return nil // LoadFS would read the whole workspace
	}
	set, err := declare.LoadFS(files, opt)
	if err != nil {
		return nil
	}
	return set.Subscriptions
}

// DeclarationWarnings returns warnings about the declarations. Waived warnings are marked.
func (in *Inputs) DeclarationWarnings() []diag.Warning {
	out := slices.Clone(in.Declared.Warnings)
	if line := in.Declared.IgnoredSummary(); line != "" {
		out = append(out, diag.Warning{Code: "other-kinds", Msg: line})
	}
	if in.Read != nil && len(in.Read.Pins) > 0 && len(in.Declared.Subscriptions) == 0 {
		out = append(out, diag.Warning{
			Pos: in.project.Settings.At("spec.declarations"), Code: "no-declarations",
			Msg: fmt.Sprintf("no declarations found in %s: everything pinned in %s (%s) is no longer requested", in.project.Settings.Declarations[0].Path, LockFile, diag.Count(len(in.Read.Pins), "operator")),
		})
	}
	return in.project.Waive(out)
}

// Waive is like Project.Waive.
func (in *Inputs) Waive(ws []diag.Warning) []diag.Warning { return in.project.Waive(ws) }

// Outdated returns the newer versions of every pin, and the support status of the pin on a day.
func (in *Inputs) Outdated(day string) []resolve.Age {
	return resolve.Outdated(in.Index, in.Declared, in.Read, in.Options, day)
}

// Hops returns the bundles that a pin can be upgraded to, nearest first.
func (in *Inputs) Hops(pin lockfile.Pin) []string {
	return resolve.UpgradePath(in.Index, in.Declared, in.Read, pin, in.Options)
}

// Resolution is the result of resolving.
type Resolution struct {
	Lock           *lockfile.File // with content digests for all pins; nil if there is no solution
	Conflicts      []*explain.Conflict
	Failed         error                          // the conflicts, or the unreadable catalogs; nil on success. In an unattended run, those of named operators
	Holds          []resolve.Hold                 // operators that an unattended run holds back at their versions
	Pins           int                            // number of resolved pins
	Changes        []Change                       // changes of the pins; set even if Lock is nil
	HeldPromotions map[string]resolve.HeldUpgrade // operators that could not be promoted as in Options.From
	Warnings       []diag.Warning                 // without DeclarationWarnings
}

// Resolve resolves the inputs to a lock. Together with an error, it may return a resolution
// that has warnings but no lock.
func (in *Inputs) Resolve(ctx context.Context) (*Resolution, error) {
	if err := in.checkSources(); err != nil {
		return nil, err
	}
	res, err := in.solve(ctx)
	in.project.Log.Detail("resolved")
	if res == nil {
		return nil, err
	}
	in.recordHolds(res.Held)
	if res.Lock != nil {
		res.Lock = withStorage(res.Lock, res.Held)
	}
	return in.newResolution(ctx, res)
}

// newResolution converts res to a Resolution, with content digests for all pins.
func (in *Inputs) newResolution(ctx context.Context, res *resolve.Result) (*Resolution, error) {
	var err error
	out := &Resolution{Conflicts: res.Conflicts, HeldPromotions: res.HeldPromotions, Warnings: res.Warnings}
	out.Failed = in.conflictError(res.Conflicts)
	out.Holds = in.Holds()
	out.Warnings = in.allWarnings(out.Warnings)
	if res.Lock != nil {
		out.Warnings = append(out.Warnings, in.project.reviewWaivers(diag.Resolving, in.DeclarationWarnings(), out.Warnings)...)
		out.Warnings = append(out.Warnings, in.project.waiverWarnings(res.Lock)...)
	}
	out.Warnings = in.project.Waive(out.Warnings)
	if res.Lock == nil { // without digests, changes of other fields are unknown
		out.Pins = len(res.Partial.Pins)
		out.Changes = slices.DeleteFunc(Changes(in.Read, res.Partial, res.PinChanges), func(c Change) bool { return c.Change == lockfile.Changed })
		return out, nil
	}
	out.Pins = len(res.Lock.Pins)
	if err := errors.Join(in.rejectDowngrades(res.Lock), in.project.checkOperators(res.Lock)); err != nil {
		return out, err
	}
	if out.Lock, err = in.addDigests(ctx, res.Lock); err != nil {
		if in.project.unattended {
			err = &fetchError{err}
		}
		return out, err
	}
	out.Changes = Changes(in.Read, out.Lock, res.PinChanges)
	for i, c := range out.Changes {
		if side, ok := in.restored[c.Operator]; ok && c.Why == "" {
			out.Changes[i].Why = "as in " + side
		}
	}
	return out, nil
}

// allWarnings returns the warnings of the resolver with those of in, sorted.
func (in *Inputs) allWarnings(ws []diag.Warning) []diag.Warning {
	return diag.SortWarnings(slices.Concat(in.withoutHeldWarnings(ws), in.holdWarnings(), in.notCompared))
}

// addDigests returns lock with content digests and signers for all pins. It reuses the digests
// of in.Lock for the same bundles.
func (in *Inputs) addDigests(ctx context.Context, lock *lockfile.File) (*lockfile.File, error) {
	p := in.project
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pins := make([]lockfile.Pin, len(lock.Pins))
	var faults diag.List
	for i, pin := range lock.Pins {
		p.Log.Progress("pinning bundle %s", pin.Bundle)
		if pins[i], err = c.AddDigest(ctx, pin, in.Lock); err != nil {
			hint := ""
			if dropped := new(NoContentError); errors.As(err, &dropped) {
				hint = "add the InstallPlan of the cluster to the declarations: it names the image of the bundle"
			}
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{}, hint, "bundle %q of %s: %w", pin.Bundle, pin.Key(), err))
			if !p.Offline {
				break // do not repeat the request if a registry does not respond
			}
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return p.addSigners(ctx, lock.With(pins), in.Lock)
}

// ContentDigest returns the content digest that a pin of a bundle in a namespace would have.
func (in *Inputs) ContentDigest(ctx context.Context, namespace string, b *catalog.Bundle) (catalog.Digest, error) {
	c, err := in.project.Contents()
	if err != nil {
		return "", err
	}
	defer c.Close()
	from := b.Package().Catalog()
	pin, err := c.AddDigest(ctx, lockfile.Pin{
		Namespace: namespace, Package: b.Package().Name(), Bundle: b.Name(), Image: b.Image(),
		Catalog: lockfile.NewCatalog(from.ID(), from.Source(), from.Digest()),
	}, in.Lock)
	return pin.BundleDigest(), err
}

// blameCatalogs replaces the conflicts in err that unreadable catalogs cause with an *InputError
// that has the faults of these catalogs. Other conflicts and errors are returned unchanged.
func (in *Inputs) blameCatalogs(err error) error {
	var conflicts explain.Conflicts
	if !errors.As(err, &conflicts) {
		return err
	}
	var others explain.Conflicts
	var needed []catalog.ID
	var waiting []string
	for _, c := range conflicts {
		if len(c.UnreadableCatalogs) == 0 {
			others = append(others, c)
			continue
		}
		needed, waiting = append(needed, c.UnreadableCatalogs...), append(waiting, c.Subscriptions...)
	}
	if len(needed) == 0 {
		return err
	}
	faults := catalogFaults(in.Index, func(id catalog.ID) bool { return slices.Contains(needed, id) })
	input := &InputError{fmt.Errorf("%w\nnot resolved because of this: %s", faults.Err(), diag.Count(len(waiting), "subscription"))}
	if len(others) == 0 {
		return input
	}
	return errors.Join(input, others)
}
