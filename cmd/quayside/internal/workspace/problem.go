package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// ResolveOptions returns the resolver options that quayside.yaml sets.
func (p *Opened) ResolveOptions() resolve.Options {
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

// clusterVersions returns the clusters with their versions, or nil if no cluster sets its own
// version. Of several clusters with equal versions and operators, it returns only the first.
func clusterVersions(w *settings.Workspace) []resolve.Cluster {
	if !slices.ContainsFunc(w.Clusters, func(c profile.Cluster) bool { return c.KubernetesVersion != "" }) {
		return nil
	}
	var out []resolve.Cluster
	known := map[string]bool{}
	for _, c := range w.Clusters {
		version := w.EffectiveCluster(c).KubernetesVersion
		if key := fmt.Sprintf("%q", append([]string{version}, c.Operators...)); !known[key] {
			known[key] = true
			out = append(out, resolve.Cluster{Name: c.Name, KubernetesVersion: version, Gets: func(operator string) bool {
				gets, err := c.Gets(operator)
				return err != nil || gets // render reports this error
			}})
		}
	}
	return out
}

// Request contains the options of a resolution.
type Request struct {
	Options resolve.Options
	Fresh   bool // resolve the tags of catalogs and bundles again; otherwise use the locked digests

	// RepairMerge repairs the lock after a merge. It restores pins that the merge lost. If the
	// merge downgraded a pin and the user requests the higher version, it restores the higher pin.
	// Otherwise, Resolve accepts the lower version only with AllowDowngrade.
	RepairMerge bool

	// Unattended is true for a run without a user. A fault of one operator or catalog then does not affect other
	// operators.
	Unattended bool

	// Partial is true if declarations that cannot be read are tolerated. Their operators keep their pins. An
	// unattended run is always partial.
	Partial bool
}

// Problem contains all inputs of a resolution except the content of bundles. It is immutable:
// methods that change it return a copy.
type Problem struct {
	Options    resolve.Options
	Declared   *declare.Set
	Index      *catalog.Index
	Lock       *lockfile.File // Read with the current content of local bundles, and repaired after a merge; may be nil
	Read       *lockfile.File // lock file; may be nil
	Unattended bool           // see Request.Unattended

	project    *Project
	upstream   *rules.Upstream     // upstream environment; nil: none restricts the resolver
	named      []resolve.Target    // targets of the request, with namespaces
	catalogs   []cache.CatalogSpec // catalogs as declared
	stale      []resolve.Reason    // differences between Lock and Read that are not from a merge
	lost       []lockfile.Pin      // pins whose content their catalogs or directories no longer have
	unreadable diag.List           // errors of reading the content of pins from directories; rendering the stored content would hide them
	merge      mergeRepair         // result of repairing Lock after a merge
	unread     unread              // declarations that were not read
	observed   []*health.Summary   // observations of the clusters

	contents *contentFacts // facts about the contents read so far

	elsewhere func() []diag.Warning // returns warnings about declarations in the repository that no workspace reads
}

// ReadProblem reads the declarations, the lock, and the parts of the catalogs needed to resolve them.
//
//house:path resolve
func ReadProblem(ctx context.Context, p *Project, req Request) (*Problem, error) {
	set, read, missing, err := p.readDeclared(ctx, req)
	if err != nil {
		return nil, err
	}
	opt, err := completeOptions(p, req, read, set)
	var upstream *rules.Upstream
	if err == nil {
		opt, upstream, err = followUpstream(ctx, p, opt, read, set)
	}
	if err != nil {
		return nil, err
	}
	bundles, err := openDirectBundles(ctx, &p.Registries, set, read, req)
	if err != nil {
		return nil, err
	}
	declared, err := withDirectBundles(set, bundles)
	if err != nil {
		return nil, err
	}
	pr := &Problem{Read: read, Unattended: req.Unattended, project: p, upstream: upstream, catalogs: p.Catalogs(set), unread: missing, elsewhere: sync.OnceValue(p.warnUnread), contents: newContentFacts()}
	pr.Lock, pr.stale, pr.lost = refreshDirect(read, bundles, opt)
	if req.RepairMerge {
		pr.Lock, pr.merge = repairMerge(p, pr.Lock, set, opt)
	}
	if pr.Index, err = pr.readIndex(ctx, bundles, resolve.Scope(declared, pr.Lock, opt), req.Fresh); err != nil {
		return nil, err
	}
	if pr.Declared, err = resolve.Namespaced(pr.Index, declared, read, opt); err != nil {
		return nil, err
	}
	if err := rules.Check(p.requestedState(ctx, pr.Declared, read), rules.Declarations); err != nil {
		return nil, err
	}
	pr.named, err = withNamespaces(req.Options.Named, read, pr.Declared)
	pr.Options = opt
	pr.Options.Named, pr.Options.Requested = pr.named, pr.requestedUpgrades(ctx)
	return pr, err
}

// readDeclared returns the declarations, the lock, and the effects of declarations that could not
// be read. The lock may be nil. It returns an error if, because of a mistake in the settings or
// declarations, resolving would remove pinned operators.
func (p *Project) readDeclared(ctx context.Context, req Request) (*declare.Set, *lockfile.File, unread, error) {
	set, faults := p.Declarations()
	if set == nil {
		return nil, nil, unread{}, faults
	}
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, nil, unread{}, err
	}
	missing, err := p.checkUnread(ctx, set, faults, lock, req.Options.Unpin, req.Partial || req.Unattended)
	if err != nil {
		return nil, nil, unread{}, err
	}
	set = missing.complete(set)
	state := p.requestedState(ctx, set, lock)
	if err := errors.Join(rules.Check(state, rules.Settings), rules.Check(state, rules.Requests)); err != nil {
		return nil, nil, unread{}, err
	}
	if len(set.Subscriptions) == 0 && hasNoPins(lock) {
		err = p.errUnreadDeclarations()
	}
	return set, lock, missing, err
}

// completeOptions returns the options of a request, with a namespace for each target.
func completeOptions(p *Project, req Request, lock *lockfile.File, set *declare.Set) (resolve.Options, error) {
	opt := req.Options
	opt.KeepGoing = opt.KeepGoing || req.Unattended
	opt.Uninstalls = p.Settings.ByOperator()
	var err error
	if opt.Named, err = withNamespaces(opt.Named, lock, set); err != nil {
		return opt, err
	}
	opt.Unpin, err = withNamespaces(opt.Unpin, lock, set)
	return opt, err
}

// readIndex reads the parts of the catalogs that the resolution needs, and adds the direct bundles.
// It also updates those pins of pr whose content has changed in a local catalog.
func (pr *Problem) readIndex(ctx context.Context, bundles []directBundle, scope catalog.Needs, fresh bool) (*catalog.Index, error) {
	locked := pr.Read
	switch {
	case fresh:
		locked = nil
	case len(pr.merge.restored) > 0:
		locked = pr.Lock
	}
	sh, err := pr.project.OpenCatalogs(ctx, pr.catalogs, CatalogOptions{Locked: locked, Digests: true, Unsigned: pr.Unattended})
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	if err := addDirectBundles(sh, bundles); err != nil {
		return nil, err
	}
	x, err := sh.Pick(ctx, cache.PickClosure(scope))
	if err != nil {
		return nil, err
	}
	if x, err = withLockedAPIs(x, pr.Lock); err != nil {
		return nil, err
	}
	return x, pr.refreshEmbedded(ctx, x)
}

// DeclarationWarnings returns the warnings about the declarations, including waived ones, which are
// marked.
func (pr *Problem) DeclarationWarnings() []diag.Warning {
	out := diag.SortWarnings(slices.Concat(pr.Declared.Warnings, pr.elsewhere()))
	if line := pr.Declared.IgnoredSummary(); line != "" {
		out = append(out, diag.Warning{Code: "other-kinds", Msg: line})
	}
	if pr.Read != nil && len(pr.Read.Pins) > 0 && len(pr.Declared.Subscriptions) == 0 {
		out = append(out, diag.Warning{
			Pos: pr.project.Settings.At("spec.declarations"), Code: "no-declarations",
			Msg: fmt.Sprintf("no declarations found in %s: everything pinned in %s (%s) is no longer requested", pr.project.Settings.Declarations[0].Path, LockFile, diag.Count(len(pr.Read.Pins), "operator")),
		})
	}
	return pr.project.Waive(out)
}

// Outdated returns the newer versions of every pin. It also returns the support status of each pin
// on the given day.
func (pr *Problem) Outdated(day string) []resolve.Age {
	return resolve.Outdated(pr.Index, pr.Declared, pr.Read, pr.Options, day)
}

// Hops returns the bundles that a pin can be upgraded to, nearest first.
func (pr *Problem) Hops(pin lockfile.Pin) []string {
	return resolve.UpgradePath(pr.Index, pr.Declared, pr.Read, pin, pr.Options)
}
