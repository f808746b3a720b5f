package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

type resolveOptions struct {
	*app
	check          bool
	upgrade        operatorFlag
	reinstall      operatorFlag
	unpin          operatorFlag
	prune          bool
	hops           string
	observed       []string
	allowDowngrade bool
	keepGoing      bool
	unattended     bool // see [workspace.Request.Unattended]
	edited         bool
	render         bool
	outside        string // value of --outside-window
	command        string // command in hints that suggest flags; empty: the command that the user ran

	// confirm is called after the changes were printed, with the number of changes. If it returns
	// false, nothing is written. If confirm is nil, no confirmation is needed.
	confirm func(ctx context.Context, changes int) (bool, error)
}

func newResolve(a *app) *cobra.Command {
	o := &resolveOptions{
		app: a, upgrade: operatorFlag{name: "upgrade", versions: true}, reinstall: operatorFlag{name: "reinstall"},
		unpin: operatorFlag{name: "unpin"},
	}
	cmd := &cobra.Command{
		Use:   "resolve",
		Short: "Choose a version for every declared operator and write quayside.lock",
		Long: Doc(`
			Choose a version for every declared operator and its dependencies, and write
			quayside.lock. Declarations are read from subscriptions/, or from spec.declarations of
			quayside.yaml.

			Valid pins do not change, also after a new release in a catalog: without --upgrade,
			quayside adds missing pins and replaces those that the declarations no longer allow.

			--upgrade upgrades each operator by one hop along the upgrade graph of its channel.
			An operator with installPlanApproval: Manual is upgraded only if you name it. --edited
			upgrades to the versions that you, or a bot such as Renovate, wrote into the lock.
			--observed holds back operators that a cluster reports as unhealthy, out of date or
			not upgradeable. List available and blocked upgrades with 'quayside outdated'.

			Dependencies are pinned, too. --prune removes those that nothing requires any more.
			--unpin drops a pin and chooses a version as for a new operator. --reinstall pins the
			head of the channel, even without an upgrade edge.

			After a merge conflict in the lock, run 'git checkout --theirs quayside.lock' and then
			'quayside resolve'.

			See also: docs/resolving.md, docs/lock.md, docs/succession.md, docs/stored-versions.md
			Exit codes: 0 done; 1 with --check, the lock is out of date; 2 an error, such as a
			downgrade without --allow-downgrade; 3 the declarations have no solution, or
			none of them can be read; 4 --observed holds back an upgrade that you requested by name.`),
		Example: Examples(`
			# add missing pins
			quayside resolve

			# upgrade all operators, or one
			quayside resolve --upgrade
			quayside resolve --upgrade=memcached-operator-system/memcached-operator

			# hold back operators that one of two clusters reports as unhealthy or not upgradeable
			quayside resolve --upgrade --observed one.yaml --observed two.yaml

			# after a bot edited versions in locks: upgrade to them, and render
			quayside resolve --edited --render --all

			# remove operators that nothing requires
			quayside resolve --prune`),
		Args:              resolveArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkFlags(cmd); err != nil {
				return err
			}
			if o.check {
				return o.runCheck(cmd)
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if the lock is out of date with the declarations")
	f.Var(&o.upgrade, "upgrade", "upgrade all operators, or one: `[NAMESPACE/]PACKAGE[@VERSION]`; may be given several times")
	f.Lookup("upgrade").NoOptDefVal = allOperators
	f.Var(&o.reinstall, "reinstall", "pin an operator to the head of its channel, without an upgrade edge: `[NAMESPACE/]PACKAGE`")
	f.Var(&o.unpin, "unpin", "drop the pin of an operator and choose its version anew: `[NAMESPACE/]PACKAGE`")
	f.BoolVar(&o.prune, "prune", false, "remove operators that nothing requires, and leftover objects of replaced operators")
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.StringArrayVar(&o.observed, "observed", nil, "hold back operators that `FILE`, written by 'quayside status --save', reports as unhealthy or not upgradeable; may be given several times, one for each cluster")
	f.BoolVar(&o.allowDowngrade, "allow-downgrade", false, "allow downgrades")
	f.BoolVar(&o.edited, "edited", false, "upgrade to the versions edited by hand in the lock")
	f.BoolVar(&o.render, "render", false, "write the rendered tree too")
	f.BoolVar(&o.keepGoing, "keep-going", false, "write the operators that can be read and resolved, even if others cannot")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, resolveReport{}, lockReport{})
	addAll(cmd, a)
	a.offer(cmd, "reinstall", a.completions(edit.Completer.Pinned))
	a.offer(cmd, "unpin", a.completions(edit.Completer.Pinned))
	a.complete(cmd, "hops", []string{"1", "all"})
	a.offer(cmd, "upgrade", a.completions(edit.Completer.Versions))
	addNow(cmd, a, "observations and windows")
	addOutsideWindow(cmd, &o.outside)
	addWriter(cmd, a, "check")
	return cmd
}

// checkFlags rejects incompatible flags.
func (o *resolveOptions) checkFlags(cmd *cobra.Command) error {
	switch {
	case o.check && (len(o.observed) > 0 || o.prune || o.unpin.isSet() || o.reinstall.isSet() || o.render):
		return Usagef(cmd, "--check cannot be used with --observed, --prune, --reinstall, --render or --unpin")
	case o.edited && (o.check || o.upgrade.isSet() || o.reinstall.isSet()):
		return Usagef(cmd, "--edited cannot be used with --check, --upgrade or --reinstall")
	case o.unpin.all || o.reinstall.all:
		return Usagef(cmd, "--unpin and --reinstall require an operator: [namespace/]package")
	default:
		return nil
	}
}

// upgradeTargets selects the operators in args for an upgrade. Without args and without --edited, it selects
// all operators.
func (o *resolveOptions) upgradeTargets(cmd *cobra.Command, args []string) error {
	o.upgrade.all, o.upgrade.named = len(args) == 0 && !o.edited, nil
	for _, arg := range args {
		if err := o.upgrade.Set(arg); err != nil {
			return Usagef(cmd, "%w", err)
		}
	}
	return nil
}

// resolveArgs rejects all arguments. If an argument is an operator, the error suggests --upgrade.
func resolveArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && strings.Contains(args[0], "/") {
		return Usagef(cmd, "unexpected argument %q (did you mean --upgrade=%s?)", args[0], args[0])
	}
	return WantArgs()(cmd, args)
}

// lockReport is the output of `quayside resolve --check`.
type lockReport struct {
	workspace.CheckReport
	Warnings []diag.Warning `json:"warnings"`
}

// runCheck checks whether the lock is up to date with the declarations, and prints the result.
func (o *resolveOptions) runCheck(cmd *cobra.Command) error {
	r := lockReport{CheckReport: workspace.NewCheckReport()}
	_, pr, err := o.readProblem(cmd)
	if err == nil {
		err = o.checkLock(cmd.Context(), pr, workspace.CheckScope{}, &r.CheckReport)
	}
	r.Finish(err)
	r.Warnings = r.AllWarnings
	return errors.Join(err, o.print(r, nil))
}

// checkLock checks the lock of a problem, adds the result to a report, and prints the warnings; see
// [workspace.Problem.Check].
func (a *app) checkLock(ctx context.Context, pr *workspace.Problem, scope workspace.CheckScope, r *workspace.CheckReport) error {
	err := pr.CheckInto(ctx, scope, r)
	a.log.Warn(r.AllWarnings)
	a.log.Warn(r.UncheckedWarnings)
	if err == nil {
		a.log.Note("%s is up to date (%s)", r.Lock, diag.Count(len(pr.Lock.Pins), "operator"))
	}
	return err
}

func (o *resolveOptions) run(cmd *cobra.Command) error {
	p, pr, err := o.observedProblem(cmd)
	if err != nil || pr == nil {
		return err
	}
	return o.resolve(cmd.Context(), p, pr)
}

// observedProblem reads a problem as [resolveOptions.readProblem] does, and applies the
// observations of --observed. The returned problem may be nil.
func (o *resolveOptions) observedProblem(cmd *cobra.Command) (*workspace.Project, *workspace.Problem, error) {
	p, pr, err := o.readProblem(cmd)
	if err != nil || pr == nil {
		return nil, nil, err
	}
	observed, err := o.readObserved(p, o.observed...)
	if err != nil {
		return nil, nil, err
	}
	if pr, err = pr.HoldBack(observed...); err != nil {
		return nil, nil, err
	}
	return p, pr.AllowRemovals(observed, o.prune), nil
}

// readProblem reads the resolver's input. If --edited is set but no version in the lock was edited, it prints a
// note and returns a nil problem.
func (o *resolveOptions) readProblem(cmd *cobra.Command) (*workspace.Project, *workspace.Problem, error) {
	hops, err := parseHops(o.hops)
	if err != nil {
		return nil, nil, Usagef(cmd, "%w", err)
	}
	p, err := o.open()
	if err != nil {
		return nil, nil, err
	}
	if !o.check {
		if p, err = workspace.WithoutConflict(p); err != nil {
			return nil, nil, err
		}
	}
	opt := p.ResolveOptions()
	opt.Upgrade, opt.Named, opt.Hops = o.upgrade.all, o.upgrade.named, hops
	if len(opt.Named) > 0 && !cmd.Flags().Changed("hops") && !slices.ContainsFunc(opt.Named, func(t resolve.Target) bool { return t.Version == "" }) {
		opt.Hops = -1 // to the given versions, as 'quayside add' does
	}
	if o.edited {
		if p, opt.Named, err = p.WithoutEdits(); err != nil {
			return nil, nil, err
		}
		if len(opt.Named) == 0 {
			return nil, nil, o.printUnedited(p)
		}
	}
	for _, t := range o.reinstall.named {
		t.Reinstall = true
		opt.Named = append(opt.Named, t)
	}
	opt.Unpin, opt.Prune = o.unpin.named, o.prune
	opt.AllowDowngrade, opt.KeepGoing = o.allowDowngrade, o.keepGoing
	if !o.check {
		opt.Command = o.command
	}
	pr, err := workspace.ReadProblem(cmd.Context(), p, workspace.Request{
		Options: opt, Fresh: o.edited || o.upgrade.isSet() || o.reinstall.isSet(), RepairMerge: !o.check, Unattended: o.unattended,
		Partial: o.keepGoing && !o.check,
	})
	return p, pr, err
}

// printUnedited prints a report and a note that no version in the lock was edited.
func (o *resolveOptions) printUnedited(p *workspace.Project) error {
	lock, err := p.LockIfAny()
	if err != nil {
		return err
	}
	r := newResolveReport(&workspace.Resolution{}, nil)
	if lock != nil {
		r.Pins = len(lock.Pins)
	}
	return o.print(r, func(io.Writer) { o.log.Note("no version was edited in %s: nothing to do", r.Lock) })
}

// addObservedSupply adds --observed to a command that needs the APIs and classes of clusters.
func addObservedSupply(cmd *cobra.Command, observed *[]string) {
	cmd.Flags().StringArrayVar(observed, "observed", nil, "APIs and classes of a cluster: a `FILE` written by 'quayside status --save'; may be given several times, one for each cluster")
}

// readObserved reads files with observations. It returns an error if two files are about the same
// cluster. It marks observations that are not valid for the clusters of the workspace.
func (a *app) readObserved(p *workspace.Project, names ...string) ([]*health.Summary, error) {
	var out []*health.Summary
	from := map[string]string{} // file by cluster of the workspace
	for _, name := range names {
		f, err := source.LookupIn(a.dir)(name)
		if err != nil {
			return nil, err
		}
		f.DisplayPath = filepath.ToSlash(name)
		seen, err := workspace.ReadObserved(f)
		if err != nil {
			return nil, err
		}
		for _, s := range seen {
			if s.Cluster == "" || s.Environment != "" && s.Environment != p.Environment() {
				continue
			}
			if first, known := from[s.Cluster]; known {
				return nil, fmt.Errorf("--observed %s: cluster %q is also in %s: specify the newest file of each cluster", name, s.Cluster, first)
			}
			from[s.Cluster] = name
		}
		out = append(out, seen...)
	}
	return out, p.JudgeObserved(out, p.Now)
}

func (o *resolveOptions) resolve(ctx context.Context, p *workspace.Project, pr *workspace.Problem) error {
	run := workspace.Resolve
	if o.upgrade.isSet() {
		run = func(ctx context.Context, pr *workspace.Problem) (*workspace.Resolution, error) {
			return upgrade.ResolveInWindows(ctx, p, pr, o.outside)
		}
	}
	res, err := run(ctx, pr)
	if res == nil {
		return err
	}
	o.log.Warn(pr.DeclarationWarnings())
	o.log.Warn(res.Warnings)
	if err != nil {
		return err
	}
	report := newResolveReport(res, pr.DeclarationWarnings())
	if res.Lock != nil && o.confirm != nil && len(res.Changes) > 0 {
		if o.output == "text" { // the changes must be visible before the prompt
			o.printChanges(o.out, report.Changes)
		}
		if ok, err := o.confirm(ctx, len(res.Changes)); err != nil || !ok {
			return errors.Join(err, o.print(report, func(io.Writer) { o.log.Note("nothing is written") }), res.Failed)
		}
	}
	if res.Lock != nil && !o.check {
		w, err := p.WriteLock(ctx, res.Lock, o.render)
		if o.logTree(w.Tree); err != nil {
			return err
		}
		report.Written, report.Rendered = w.Changed, w.Tree
	}
	err = o.print(report, func(w io.Writer) { o.printReport(w, report) })
	return errors.Join(err, res.Failed)
}

// resolveReport is the output of `quayside resolve`, `upgrade` and `propose`.
type resolveReport struct {
	Lock      string                      `json:"lock"`
	Written   bool                        `json:"written"`            // false if there were no changes, or the declarations cannot be resolved
	Rendered  *workspace.TreeReport       `json:"rendered,omitempty"` // only with --render
	Proposed  *deliver.PublishedProposal  `json:"proposed,omitempty"` // set by `quayside propose --one-branch`
	Split     *deliver.PublishedProposals `json:"split,omitempty"`    // with `quayside propose`
	Pins      int                         `json:"pins"`
	Changes   []workspace.Change          `json:"changes"`
	Warnings  []diag.Warning              `json:"warnings"`
	Conflicts []*explain.Conflict         `json:"conflicts"`
	Holds     []resolve.Hold              `json:"left"` // operators that `quayside propose` holds back, with the reason
}

// newResolveReport returns the report of a resolution. about contains the warnings about the declarations.
func newResolveReport(res *workspace.Resolution, about []diag.Warning) *resolveReport {
	return &resolveReport{
		Lock: workspace.LockFile, Pins: res.Pins, Changes: append([]workspace.Change{}, res.Changes...),
		Warnings: append(append([]diag.Warning{}, about...), res.Warnings...), Conflicts: append([]*explain.Conflict{}, res.Conflicts...),
		Holds: append([]resolve.Hold{}, res.Holds...),
	}
}

// printChanges prints each change of the lock in one line.
func (a *app) printChanges(w io.Writer, changes []workspace.Change) {
	for _, c := range changes {
		fmt.Fprintln(w, a.out.Sign(c.Sign())+" "+sanitize.Line(c.String()))
	}
}

// printReport prints the changes, unless they were already printed for confirm. It logs the
// outcome.
func (o *resolveOptions) printReport(w io.Writer, r *resolveReport) {
	if o.confirm == nil {
		o.printChanges(w, r.Changes)
	}
	if line := workspace.Removals(r.Changes); line != "" && len(r.Changes) > 1 {
		o.log.Note("%s", sanitize.Line(line))
	}
	if r.Rendered != nil {
		defer o.printRendered(r.Rendered)
	}
	switch {
	case r.Written:
		o.log.Note("wrote %s (%s)", r.Lock, diag.Count(r.Pins, "operator"))
	case len(r.Conflicts) == 0 && r.Proposed == nil:
		o.log.Note("%s is up to date (%s)", r.Lock, diag.Count(r.Pins, "operator"))
	case len(r.Changes) > 0 && r.Proposed == nil:
		o.log.Note("nothing written: --keep-going locks the %s above", diag.Count(len(r.Changes), "change"))
	}
}
