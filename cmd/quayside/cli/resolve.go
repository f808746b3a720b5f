package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

type resolveOptions struct {
	*app
	output         format
	check          bool
	upgrade        upgradeFlag
	hops           string
	from           string
	observed       string
	allowDowngrade bool
	keepGoing      bool
	offline        bool
	accept         acceptFlag
	proposal       proposal
}

func newResolve(a *app) *cobra.Command {
	o := &resolveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "resolve",
		Short: "Choose a version for every declared operator and write quayside.lock",
		Long: doc(`
			Choose a version for every declared operator and everything it depends on, and
			write quayside.lock. Declarations are read from subscriptions/, or from where
			spec.declarations of quayside.yaml says.

			A pin that is still valid stays: without --upgrade only what is missing is
			filled in, and a new release in a catalog changes nothing. An upgrade takes one
			hop along the edges that the operator's author declared, and the lock lists the
			hops that remain. Subscriptions with installPlanApproval: Manual move only when
			they are named.

			With --observed, an operator stays that a cluster was seen to have and that says
			it must not be upgraded (its OperatorCondition), that was not healthy, or that had
			not reached its pin: 'quayside status --output' writes the file. What is new is
			pinned, and what the file does not name may move.

			Exit codes: 0 done; 1 with --check, the lock does not answer the declarations;
			2 an error; 3 the declarations have no solution; 4 an upgrade asked for by name
			is one that --observed forbids.`),
		Example: examples(`
			# fill in what is missing
			quayside resolve

			# put an upgrade on a branch, for a pull request
			quayside resolve --upgrade --branch upgrade --commit

			# move everything that may move, or one operator
			quayside resolve --upgrade
			quayside resolve --upgrade=memcached-operator-system/memcached-operator

			# in CI: is the lock in step with the declarations?
			quayside resolve --check`),
		Args: resolveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.check && (o.proposal.branch != "" || o.accept.any()) {
				return usagef(cmd, "--check writes nothing: leave out --branch and --accept")
			}
			if o.check && o.observed != "" {
				return usagef(cmd, "--check moves nothing: leave out --observed")
			}
			if err := o.proposal.check(cmd); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.Var(&o.accept, "accept", "record what the operators may do and which APIs they bring as accepted, of all or one: `NAMESPACE/PACKAGE`")
	f.Lookup("accept").NoOptDefVal = acceptAll
	o.proposal.flags(cmd)
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if the lock does not answer the declarations")
	f.Var(&o.upgrade, "upgrade", "move all, or one: `NAMESPACE/PACKAGE[@VERSION]`; may be given several times")
	f.Lookup("upgrade").NoOptDefVal = upgradeAll
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.StringVar(&o.from, "from", "", "take exactly the versions of another `LOCK` (promotion)")
	f.StringVar(&o.observed, "observed", "", "move no operator that `FILE`, written by 'quayside status --output', has as not upgradeable or not healthy")
	f.BoolVar(&o.allowDowngrade, "allow-downgrade", false, "let versions go down")
	f.BoolVar(&o.keepGoing, "keep-going", false, "write what could be resolved, even if something could not")
	addOffline(cmd, &o.offline)
	addOutput(cmd, &o.output)
	complete(cmd, "hops", []string{"1", "all"})
	return cmd
}

// resolveArgs refuses arguments, and knows the one that is likely.
func resolveArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && strings.Contains(args[0], "/") {
		return usagef(cmd, "unexpected argument %q (did you mean --upgrade=%s?)", args[0], args[0])
	}
	return noArgs(cmd, args)
}

func (o *resolveOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	hops, err := parseHops(o.hops)
	if err != nil {
		return usagef(cmd, "%w", err)
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	opt := s.resolveOptions()
	opt.Upgrade, opt.Named, opt.Hops = o.upgrade.all, o.upgrade.named, hops
	opt.AllowDowngrade, opt.KeepGoing = o.allowDowngrade, o.keepGoing
	if o.from != "" {
		if opt.From, err = s.lock(o.from); err != nil {
			return err
		}
	}
	observed, err := o.app.observed(o.observed)
	if err != nil {
		return err
	}
	in, err := s.inputs(ctx, opt, o.upgrade.any(), o.offline)
	if err != nil {
		return err
	}
	if o.check {
		return s.checkLock(ctx, in, opt, o.offline)
	}
	in.holds = holds(observed, in.read)
	if err := hold(&opt, in.holds); err != nil {
		return err
	}
	return o.resolve(ctx, s, in, opt)
}

// inputs is everything that resolving reads.
type inputs struct {
	set   *subscription.Set
	index *catalog.Index
	prev  *lockfile.File   // nil where there is none
	read  *lockfile.File   // prev as it was read: before refreshed
	stale []resolve.Reason // what refreshed changed
	holds []observedHold   // what a cluster holds back
}

// inputs reads the declarations, the lock, and of the catalogs what resolving
// with opt can look at. A catalog that the lock pins by tag is read at its
// digest, unless fresh is asked for.
func (s *space) inputs(ctx context.Context, opt resolve.Options, fresh, offline bool) (*inputs, error) {
	set, err := s.declarations()
	if err != nil {
		return nil, err
	}
	prev, err := s.lock(lockFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	at := prev
	if fresh {
		at = nil
	}
	sources := s.sources(set)
	bundles, err := s.directs(ctx, set, prev, fresh, offline)
	if err != nil {
		return nil, err
	}
	if set, err = withDirects(set, bundles); err != nil {
		return nil, err
	}
	in := &inputs{set: set, read: prev}
	in.prev, in.stale = refreshed(prev, bundles, opt)
	sh, err := s.shelf(ctx, sources, at, offline, true)
	if err != nil {
		return nil, err
	}
	defer sh.close()
	if err := sh.put(bundles); err != nil {
		return nil, err
	}
	in.index, err = sh.pick(closure(resolve.Scope(set, in.prev, opt)))
	return in, err
}

// resolveOptions returns what quayside.yaml says about resolving.
func (s *space) resolveOptions() resolve.Options {
	return resolve.Options{
		KubernetesVersion:  s.ws.KubernetesVersion,
		OpenShiftVersion:   s.ws.OpenShiftVersion,
		Requirements:       s.ws.Requirements,
		AllowOverlap:       s.ws.AllowOverlap,
		SharedDependencies: s.ws.SharedDependencies,
	}
}

// checkLock reports whether the lock answers the declarations, and whether
// what it pins is signed by whom it says.
func (s *space) checkLock(ctx context.Context, in *inputs, opt resolve.Options, offline bool) error {
	s.talk.warn(in.set.Warnings)
	if in.prev == nil {
		return &differsError{"no " + lockFile + ": run 'quayside resolve'"}
	}
	if err := resolve.Check(in.index, in.set, in.prev, opt); err != nil {
		return in.blame(err)
	}
	if len(in.stale) > 0 {
		return &resolve.StaleError{Reasons: in.stale}
	}
	if err := s.checkSigned(ctx, in.prev, offline); err != nil {
		return err
	}
	s.talk.note("%s is up to date (%s)", lockFile, count(len(in.prev.Pins), "operator"))
	return nil
}

func (o *resolveOptions) resolve(ctx context.Context, s *space, in *inputs, opt resolve.Options) error {
	res, err := resolve.Resolve(in.index, in.set, in.prev, opt)
	if res == nil {
		return err
	}
	failed := in.blame(conflictsOf(res))
	var input *inputError
	if errors.As(failed, &input) {
		res.Warnings = slices.DeleteFunc(res.Warnings, func(w diag.Warning) bool { return w.Code == "broken-catalog" })
	}
	res.Warnings = diag.SortWarnings(append(res.Warnings, heldBack(in.holds, res.Warnings)...))
	o.talk.warn(in.set.Warnings)
	o.talk.warn(res.Warnings)
	var lock *lockfile.File
	if res.Lock != nil {
		var err error
		if lock, err = s.complete(ctx, res.Lock, in.prev, o.offline); err != nil {
			return err
		}
		if o.accept.any() {
			if err := s.accept(ctx, lock, o.accept, o.offline); err != nil {
				return err
			}
		}
	}
	report := newResolveReport(in.read, lock, res, in.set.Warnings)
	if lock != nil {
		if err := o.write(ctx, s, in.prev, lock, report); err != nil {
			return err
		}
	}
	err = o.print(o.output, report, func(w io.Writer) error { return o.printReport(w, report) })
	return errors.Join(err, failed)
}

// write puts the lock in its place, or on a branch.
func (o *resolveOptions) write(ctx context.Context, s *space, prev, lock *lockfile.File, report *resolveReport) error {
	var err error
	if o.proposal.branch != "" {
		report.Proposed, err = o.propose(ctx, s, prev, lock, report)
	} else {
		report.Written, err = writeFile(s.path(lockFile), lockfile.Format(lock))
	}
	return err
}

// upgradeAll is what --upgrade means without a value.
const upgradeAll = "all"

// upgradeFlag is --upgrade and --upgrade=namespace/package[@version].
type upgradeFlag struct {
	all   bool
	named []resolve.Target
}

// String returns nothing: there is no default to show.
func (u *upgradeFlag) String() string { return "" }

// Type names the value in usage lines.
func (u *upgradeFlag) Type() string { return "operator" }

// Set adds one operator, or all.
func (u *upgradeFlag) Set(s string) error {
	if s == upgradeAll {
		u.all = true
		return nil
	}
	key, version, at := strings.Cut(s, "@")
	namespace, pkg, ok := strings.Cut(key, "/")
	if !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") || at && version == "" {
		return errors.New("want namespace/package or namespace/package@version")
	}
	u.named = append(u.named, resolve.Target{Namespace: namespace, Package: pkg, Version: version})
	return nil
}

func (u *upgradeFlag) any() bool { return u.all || len(u.named) > 0 }

// parseHops reads --hops: a number from 1, or all.
func parseHops(s string) (int, error) {
	if s == "all" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--hops %q: want a number from 1, or all", s)
	}
	return n, nil
}
