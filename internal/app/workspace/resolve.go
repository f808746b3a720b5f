package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// ResolveOptions returns the options for resolving in quayside.yaml.
func (p *Project) ResolveOptions() resolve.Options {
	w := p.Settings
	return resolve.Options{
		KubernetesVersion:  w.KubernetesVersion,
		OpenShiftVersion:   w.OpenShiftVersion,
		Requirements:       w.Requirements,
		AllowOverlap:       w.AllowOverlap,
		SharedDependencies: w.SharedDependencies,
	}
}

// Inputs is the inputs of a resolution.
type Inputs struct {
	Options  resolve.Options
	Declared *declare.Set
	Index    *model.Index
	Lock     *lockfile.File // as used for resolving; nil if there is none
	Read     *lockfile.File // as read, before updates of directly declared bundles

	project  *Project
	catalogs []cache.Catalog              // as declared
	stale    []resolve.Reason             // differences between Lock and Read
	observed []*health.Summary            // observations of clusters
	storage  map[string]*lockfile.Storage // migration steps before upgrades, by namespace/package
	unread   []diag.Warning               // upgrades with unknown storage versions
	lowered  []lockfile.Lowering          // pins lowered by a merge or another join
	taken    map[string]string            // name of the commit for pins taken from one, by namespace/package
	unjudged []diag.Warning               // commits with locks that cannot be compared
}

// Inputs reads the declarations, the lock, and the parts of the catalogs needed to resolve
// with opt. It reads a catalog that the lock pins by tag at its locked digest, unless fresh
// is true.
func (p *Project) Inputs(ctx context.Context, opt resolve.Options, fresh bool) (*Inputs, error) {
	set, err := p.Declarations()
	if err != nil {
		return nil, err
	}
	in := &Inputs{project: p, storage: map[string]*lockfile.Storage{}}
	if in.Read, err = p.LockIfAny(); err != nil {
		return nil, err
	}
	named := opt.Named
	if opt.Named, err = allPlaced(named, in.Read, set); err != nil {
		return nil, err
	}
	if opt.Unpin, err = allPlaced(opt.Unpin, in.Read, set); err != nil {
		return nil, err
	}
	in.Options = opt
	in.Options.Uninstalls = p.ByOperator()
	in.catalogs = p.Catalogs(set)
	bundles, err := p.directs(ctx, set, in.Read, fresh)
	if err != nil {
		return nil, err
	}
	if in.Declared, err = withDirects(set, bundles); err != nil {
		return nil, err
	}
	in.Lock, in.stale = refreshDirect(in.Read, bundles, opt)
	at := in.Read
	if p.takesSides {
		if in.takeSides(set); len(in.taken) > 0 {
			at = in.Lock
		}
	}
	if fresh {
		at = nil
	}
	sh, err := p.Shelf(ctx, in.catalogs, at, true)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	if err := putDirects(sh, bundles); err != nil {
		return nil, err
	}
	if in.Index, err = sh.Pick(ctx, cache.PickClosure(resolve.Scope(in.Declared, in.Lock, opt))); err != nil {
		return nil, err
	}
	if in.Declared, err = resolve.Namespaced(in.Index, in.Declared, in.Read, opt); err != nil {
		return nil, err
	}
	in.Options.Named, err = allPlaced(named, in.Read, in.Declared)
	return in, err
}

// AboutDeclared returns warnings about the declarations, with waived ones marked.
func (in *Inputs) AboutDeclared() []diag.Warning {
	out := slices.Clone(in.Declared.Warnings)
	if line := in.Declared.Ignored(); line != "" {
		out = append(out, diag.Warning{Code: "other-kinds", Msg: line})
	}
	if in.Read != nil && len(in.Read.Pins) > 0 && len(in.Declared.Subscriptions) == 0 {
		out = append(out, diag.Warning{
			Pos: in.project.Settings.At("spec.declarations"), Code: "no-declarations",
			Msg: fmt.Sprintf("no declarations found in %s: all that %s pins (%s) is no longer requested", in.project.Settings.Declarations[0].Path, LockFile, diag.Count(len(in.Read.Pins), "operator")),
		})
	}
	return in.project.Waive(out)
}

// Waive is like Project.Waive.
func (in *Inputs) Waive(ws []diag.Warning) []diag.Warning { return in.project.Waive(ws) }

// Outdated returns the age of every pin of the lock, and its support on a day.
func (in *Inputs) Outdated(day string) []resolve.Age {
	return resolve.Outdated(in.Index, in.Declared, in.Read, in.Options, day)
}

// Hops returns the bundles that a pin can be upgraded to, nearest first.
func (in *Inputs) Hops(pin lockfile.Pin) []string {
	return resolve.UpgradePath(in.Index, in.Declared, in.Read, pin, in.Options)
}

// Resolution is the result of resolving.
type Resolution struct {
	Lock      *lockfile.File // with content digests for all pins; nil if there is no solution
	Conflicts []*explain.Conflict
	Failed    error          // the conflicts, or the unreadable catalogs; nil on success
	Pins      int            // number of resolved pins
	Changes   []Change       // to the pins, with or without a lock
	Stays     []resolve.Stay // operators that do not agree with Options.From
	Warnings  []diag.Warning // of the resolution, without those about the declarations
}

// Resolve resolves the inputs to a lock. With an error it may return a resolution without a
// lock, for its warnings.
func (in *Inputs) Resolve(ctx context.Context) (*Resolution, error) {
	res, err := in.solve(ctx)
	in.project.Log.Detail("resolved")
	if res == nil {
		return nil, err
	}
	return in.resolution(ctx, res, slices.Collect(maps.Keys(in.storage))...)
}

// resolution adds content digests to the resolved pins. The operators named in waiting get
// their migration step.
func (in *Inputs) resolution(ctx context.Context, res *resolve.Result, waiting ...string) (*Resolution, error) {
	var err error
	out := &Resolution{Conflicts: res.Conflicts, Stays: res.Stays, Warnings: res.Warnings}
	if len(res.Conflicts) > 0 {
		out.Failed = in.blame(explain.Conflicts(res.Conflicts))
	}
	out.Warnings = diag.SortWarnings(slices.Concat(out.Warnings, in.heldBack(out.Warnings), in.unread, in.unjudged))
	if res.Lock != nil {
		out.Warnings = append(out.Warnings, in.project.reviewWaivers(diag.Resolving, in.AboutDeclared(), out.Warnings)...)
	}
	out.Warnings = in.project.Waive(out.Warnings)
	if res.Lock == nil { // other changes to a pin need its content
		out.Pins = len(res.Partial.Pins)
		out.Changes = slices.DeleteFunc(Changes(in.Read, res.Partial, res.Moves), func(c Change) bool { return c.Change == lockfile.Changed })
		return out, nil
	}
	out.Pins = len(res.Lock.Pins)
	if err := in.refuseLowered(res.Lock); err != nil {
		return out, err
	}
	if out.Lock, err = in.complete(ctx, in.withStorage(res.Lock, waiting...)); err != nil {
		return out, err
	}
	out.Changes = Changes(in.Read, out.Lock, res.Moves)
	for i, c := range out.Changes {
		if side, ok := in.taken[c.Operator]; ok && c.Why == "" {
			out.Changes[i].Why = "as in " + side
		}
	}
	return out, nil
}

// complete returns lock with content digests for all pins. It keeps those that the lock
// before has for the same bundle.
func (in *Inputs) complete(ctx context.Context, lock *lockfile.File) (*lockfile.File, error) {
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
		if pins[i], err = c.Tie(ctx, pin, in.Lock); err != nil {
			faults.Addf(diag.Pos{}, "bundle %q of %s: %w", pin.Bundle, pin.Key(), err)
			if !p.Offline {
				break // do not repeat the request if a registry does not respond
			}
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return p.sign(ctx, lock.With(pins), in.Lock)
}

// Content returns the digest of a bundle's content in a catalog, as for a pin in a
// namespace.
func (in *Inputs) Content(ctx context.Context, namespace string, b *model.Bundle) (model.Digest, error) {
	c, err := in.project.Contents()
	if err != nil {
		return "", err
	}
	defer c.Close()
	from := b.Package().Catalog()
	pin, err := c.Tie(ctx, lockfile.Pin{
		Namespace: namespace, Package: b.Package().Name(), Bundle: b.Name(), Image: b.Image(),
		Catalog: lockfile.NewCatalog(from.ID(), from.Source(), from.Digest()),
	}, in.Lock)
	return pin.BundleDigest(), err
}

// blame returns err with conflicts caused only by an unreadable catalog replaced by the
// faults of that catalog.
func (in *Inputs) blame(err error) error {
	var conflicts explain.Conflicts
	if !errors.As(err, &conflicts) {
		return err
	}
	var others explain.Conflicts
	var needed []model.ID
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
	faults := brokenCatalogs(in.Index, func(id model.ID) bool { return slices.Contains(needed, id) })
	input := &InputError{fmt.Errorf("%w\nwaiting for it: %s", faults.Err(), diag.Count(len(waiting), "subscription"))}
	if len(others) == 0 {
		return input
	}
	return errors.Join(input, others)
}
