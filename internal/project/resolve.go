package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// ResolveOptions returns what quayside.yaml says about resolving.
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

// Inputs is everything that resolving reads.
type Inputs struct {
	Options  resolve.Options
	Declared *subscription.Set
	Index    *catalog.Index
	Lock     *lockfile.File // as resolving sees it; nil where there is none
	Read     *lockfile.File // as it was read: bundles that are declared themselves may have changed since

	project  *Project
	catalogs []cache.Catalog              // as they are declared
	stale    []resolve.Reason             // what of Lock is not as it was read
	holds    []hold                       // what a cluster holds back
	observed []*report.ObservedFile       // what was seen of clusters
	storage  map[string]*lockfile.Storage // how operators wait for objects to leave versions, by namespace/package
	unread   []diag.Warning               // upgrades of which that is not known
	lowered  []lockfile.Lowering          // pins that a join of commits lowered
	taken    map[string]string            // pins of Lock that are a commit's, by namespace/package: its name
	unjudged []diag.Warning               // commits whose locks could not be compared
}

// Inputs reads the declarations, the lock, and of the catalogs what resolving
// with opt can look at. A catalog that the lock pins by tag is read at its
// digest, unless fresh is asked for.
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
	in.Lock, in.stale = refreshed(in.Read, bundles, opt)
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
	if in.Index, err = sh.Pick(ctx, cache.Closure(resolve.Scope(in.Declared, in.Lock, opt))); err != nil {
		return nil, err
	}
	if in.Declared, err = resolve.Namespaced(in.Index, in.Declared, in.Read, opt); err != nil {
		return nil, err
	}
	in.Options.Named, err = allPlaced(named, in.Read, in.Declared)
	return in, err
}

// AboutDeclared returns what a person should know of the declarations, waived
// or not.
func (in *Inputs) AboutDeclared() []diag.Warning {
	out := slices.Clone(in.Declared.Warnings)
	if line := in.Declared.LeftAlone(); line != "" {
		out = append(out, diag.Warning{Code: "other-kinds", Msg: line})
	}
	return in.project.Waive(out)
}

// Waive is that of the workspace.
func (in *Inputs) Waive(ws []diag.Warning) []diag.Warning { return in.project.Waive(ws) }

// Outdated returns how far behind every pin of the lock is, and how it is
// supported on a day.
func (in *Inputs) Outdated(day string) []resolve.Age {
	return resolve.Outdated(in.Index, in.Declared, in.Read, in.Options, day)
}

// Hops returns the bundles that upgrades of a pin can reach, nearest first.
func (in *Inputs) Hops(pin lockfile.Pin) []string {
	return resolve.Hops(in.Index, in.Declared, in.Read, pin, in.Options)
}

// Resolution is what resolving came to.
type Resolution struct {
	Lock      *lockfile.File // with every pin tied to its content; nil where there is no solution
	Conflicts []*resolve.Conflict
	Failed    error          // the conflicts, or the catalogs that are waited for; nil where all could be resolved
	Pins      int            // that could be resolved
	Changes   []Change       // to them, whether there is a lock or not
	Stays     []resolve.Stay // operators that do not follow Options.From
	Warnings  []diag.Warning // of the resolution; those of the declarations are theirs
}

// Resolve makes the lock that answers the inputs. With an error there may be a
// resolution without a lock, for its warnings.
func (in *Inputs) Resolve(ctx context.Context) (*Resolution, error) {
	res, err := in.solve(ctx)
	in.project.Talk.Detail("resolved")
	if res == nil {
		return nil, err
	}
	return in.resolution(ctx, res, slices.Collect(maps.Keys(in.storage))...)
}

// resolution ties what resolving found to its content. The operators named go into
// the state in which they wait.
func (in *Inputs) resolution(ctx context.Context, res *resolve.Result, waiting ...string) (*Resolution, error) {
	var err error
	out := &Resolution{Conflicts: res.Conflicts, Stays: res.Stays, Warnings: res.Warnings}
	if len(res.Conflicts) > 0 {
		out.Failed = in.blame(resolve.Conflicts(res.Conflicts))
	}
	out.Warnings = diag.SortWarnings(slices.Concat(out.Warnings, in.heldBack(out.Warnings), in.unread, in.unjudged))
	if res.Lock != nil {
		out.Warnings = append(out.Warnings, in.project.reviewWaivers(diag.Resolving, in.AboutDeclared(), out.Warnings)...)
	}
	out.Warnings = in.project.Waive(out.Warnings)
	if res.Lock == nil { // what else is new in a pin comes with its content
		out.Pins = len(res.Partial.Pins)
		out.Changes = slices.DeleteFunc(changes(in.Read, res.Partial, res.Moves), func(c Change) bool { return c.Change == lockfile.Changed })
		return out, nil
	}
	out.Pins = len(res.Lock.Pins)
	if err := in.refuseLowered(res.Lock); err != nil {
		return out, err
	}
	if out.Lock, err = in.complete(ctx, in.staged(res.Lock, waiting...)); err != nil {
		return out, err
	}
	out.Changes = changes(in.Read, out.Lock, res.Moves)
	for i, c := range out.Changes {
		if side, ok := in.taken[c.Operator]; ok && c.Why == "" {
			out.Changes[i].Why = "as in " + side
		}
	}
	return out, nil
}

// complete returns lock with every pin tied to its content. What the lock
// before already says of the same bundle is kept.
func (in *Inputs) complete(ctx context.Context, lock *lockfile.File) (*lockfile.File, error) {
	p := in.project
	c, err := p.contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pins := make([]lockfile.Pin, len(lock.Pins))
	var faults diag.List
	for i, pin := range lock.Pins {
		p.Talk.Progress("pinning bundle %s", pin.Bundle)
		if pins[i], err = c.Tie(ctx, pin, in.Lock); err != nil {
			faults.Addf(diag.Pos{}, "bundle %q of %s: %w", pin.Bundle, pin.Key(), err)
			if !p.Offline {
				break // a registry that does not answer is not asked for each
			}
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return p.sign(ctx, lock.With(pins), in.Lock)
}

// blame returns err with the conflicts that only a catalog which cannot be
// read causes replaced by what is wrong with the catalog.
func (in *Inputs) blame(err error) error {
	var conflicts resolve.Conflicts
	if !errors.As(err, &conflicts) {
		return err
	}
	var others resolve.Conflicts
	var needed []catalog.ID
	var waiting []string
	for _, c := range conflicts {
		if len(c.Waits) == 0 {
			others = append(others, c)
			continue
		}
		needed, waiting = append(needed, c.Waits...), append(waiting, c.Subscriptions...)
	}
	if len(needed) == 0 {
		return err
	}
	faults := broken(in.Index, func(id catalog.ID) bool { return slices.Contains(needed, id) })
	input := &InputError{fmt.Errorf("%w\nwaiting for it: %s", faults.Err(), diag.Count(len(waiting), "subscription"))}
	if len(others) == 0 {
		return input
	}
	return errors.Join(input, others)
}
