package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
)

type promoteOptions struct {
	*app
	observed []string
	rule     ruleFlags
	outside  string // value of --outside-window
	check    bool
	render   bool
	proposes bool // whether the command is 'quayside propose'
}

// ruleFlags contains flags that override spec.promotion.
type ruleFlags struct {
	healthy, soak, within string
	clusters              int
}

func newPromote(a *app) *cobra.Command {
	o := &promoteOptions{app: a}
	cmd := &cobra.Command{
		Use:   "promote [from to [namespace/package...]]",
		Short: "Promote versions observed healthy in another environment",
		Long: Doc(`
			Promote operator versions from one environment to the next, and write
			quayside.lock there. quayside promotes a version by the digest of its bundle, as far
			as the declarations of the target environment allow it.

			An environment is a workspace below the root of the Git repository, or below -C. Its
			name is metadata.name, or else the name of its directory. You can also give a
			directory with a slash, such as ./envs/dev.

			Without arguments, quayside promotes once along every spec.follows: stage gets the
			versions of dev, and prod gets those that stage had before this run. With operators,
			quayside promotes only these and their dependencies.

			Before it promotes a version, quayside checks that clusters of the upstream
			environment were observed to be healthy with it. spec.promotion of the target
			environment sets the requirements, and flags override them. An operator that reports
			Upgradeable=False or Unknown in one of these clusters, or in one of the target
			environment, is held. Without spec.promotion, flags and observations, no health is
			required.

			--observed reads files of 'quayside status --save', or the output of 'kubectl get
			installations.quayside.dev,namespaces -A -o yaml' with the reporter in the cluster.
			Name the second file, or its directory, after the cluster.

			The output lists each operator of both environments with the result and the reason.

			See also: docs/promotion.md, docs/windows.md
			Exit codes: 0 done, or nothing to promote; 1 with --check, there is something to
			promote; 2 an error; 3 the declarations have no solution; 4 an operator that you
			named is held.`),
		Example: Examples(`
			# list the operators to promote, and the reasons for those that are held
			quayside promote dev stage --observed observed/ --check

			# promote once along every spec.follows, with a branch for each environment
			quayside propose --promote --observed observed/ --push origin --pr-body bodies

			# promote one operator with other requirements than those of quayside.yaml
			quayside promote dev stage my-etcd/etcd --healthy 90% --soak 2h --observed dev-1.json`),
		Args:              promoteArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkFlags(cmd); err != nil {
				return err
			}
			if !o.check {
				_, err := o.run(cmd, args, o.write)
				return err
			}
			r, err := o.run(cmd, args, nil)
			if err == nil && r.Promoted > 0 {
				err = &workspace.DiffersError{Msg: diag.Count(r.Promoted, "operator") + " to promote"}
			}
			return err
		},
	}
	f := cmd.Flags()
	d := gate.DefaultCriteria()
	f.StringArrayVar(&o.observed, "observed", nil, "observations of clusters: a `FILE`, or a directory of files; may be given several times")
	f.StringVar(&o.rule.healthy, "healthy", "", "required `SHARE` of healthy clusters, in place of spec.promotion.healthy (default "+d.Healthy.String()+")")
	f.StringVar(&o.rule.soak, "soak", "", "soak time: a `TIME` such as 24h, in place of spec.promotion.soak (default "+d.Soak.String()+")")
	f.StringVar(&o.rule.within, "observed-within", "", "maximum age of an observation: a `TIME`, in place of spec.promotion.observedWithin (default "+d.Within.String()+")")
	f.IntVar(&o.rule.clusters, "clusters", 0, "minimum `NUMBER` of clusters, in place of spec.promotion.clusters (default 1)")
	addNow(cmd, a, "observations and windows")
	addOutsideWindow(cmd, &o.outside)
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would be promoted")
	f.BoolVar(&o.render, "render", false, "write the rendered tree too")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, upgrade.PromotionReport{})
	addWriter(cmd, a, "check")
	return cmd
}

// promoteArgs accepts no arguments, or two environments and then operators.
func promoteArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return Usagef(cmd, "missing target environment: specify two environments, or none to promote along every spec.follows")
	}
	return nil
}

// checkFlags rejects incompatible flags.
func (o *promoteOptions) checkFlags(cmd *cobra.Command) error {
	switch {
	case o.check && o.render:
		return Usagef(cmd, "--check cannot be used with --render")
	case cmd.Flags().Changed("clusters") && o.rule.clusters < 1:
		return Usagef(cmd, "--clusters %d: must be at least 1", o.rule.clusters)
	}
	if _, err := o.rule.override(gate.DefaultCriteria()); err != nil {
		return Usagef(cmd, "%w", err)
	}
	return nil
}

// override returns a copy of rule in which the flags that are set replace values.
func (r ruleFlags) override(rule gate.Criteria) (gate.Criteria, error) {
	var faults diag.List
	set := func(flag, text string, into interface{ UnmarshalText(text []byte) error }) {
		if text == "" {
			return
		}
		if err := into.UnmarshalText([]byte(text)); err != nil {
			faults.Addf(diag.Pos{}, "--%s: %w", flag, err)
		}
	}
	set("healthy", r.healthy, &rule.Healthy)
	set("soak", r.soak, &rule.Soak)
	set("observed-within", r.within, &rule.Within)
	if r.clusters > 0 {
		rule.Clusters = r.clusters
	}
	return rule, faults.Err()
}

// ruleFor returns the criteria for observations that a promotion to an environment requires, or nil if it
// requires no observations.
func (o *promoteOptions) ruleFor(e *upgrade.Environment) (*gate.Criteria, error) {
	settings := e.Settings.Promotion
	if settings == nil && o.rule == (ruleFlags{}) && len(o.observed) == 0 {
		return nil, nil
	}
	rule := gate.DefaultCriteria()
	if settings != nil {
		rule = settings.Criteria()
	}
	rule, err := o.rule.override(rule)
	return &rule, err
}

// run runs the promotions and prints the result. It calls write for each step, unless write is nil.
// The argument several is true if args names no environments.
func (o *promoteOptions) run(cmd *cobra.Command, args []string, write func(ctx context.Context, s *upgrade.PromotionStepReport, several bool) error) (*upgrade.PromotionReport, error) {
	ctx := cmd.Context()
	defer func() { o.workspace = "" }()
	envs, err := o.environments()
	if err != nil {
		return nil, err
	}
	steps, only, err := envs.Choose(args)
	if err != nil {
		return nil, err
	}
	seen, warnings, err := o.readObservations(envs)
	if err != nil {
		return nil, err
	}
	r, err := upgrade.Promote(ctx, steps, upgrade.PromotionOptions{Only: only, Observed: seen, Now: o.now.orNow(), Proposes: o.proposes, OutsideWindow: o.outside}, o.ruleFor)
	if r == nil {
		return nil, err
	}
	r.Warnings = append(r.Warnings, warnings...)
	for i := range r.Steps {
		if err == nil && write != nil {
			if err := write(ctx, &r.Steps[i], len(args) == 0); err != nil {
				return nil, err
			}
		}
	}
	r.CountPromoted()
	return r, errors.Join(err, o.print(r, func(io.Writer) { o.printPromotion(r) }))
}

// environments opens all workspaces of the repository.
func (o *promoteOptions) environments() (upgrade.Environments, error) {
	top := workspace.TopDir(o.dir)
	dirs, err := workspacesBelow(top)
	if err != nil {
		return nil, err
	}
	return upgrade.LoadEnvironments(dirs, func(dir string) (*workspace.Project, error) {
		o.workspace = filepath.Join(top, filepath.FromSlash(dir))
		return o.open()
	})
}

// readObservations reads the files and directories in --observed.
func (o *promoteOptions) readObservations(envs upgrade.Environments) (out []*health.Summary, warned []diag.Warning, err error) {
	var faults diag.List
	for _, name := range o.observed {
		f, err := source.LookupIn(o.dir)(name)
		if err != nil {
			faults.Add(diag.Pos{}, err)
			continue
		}
		f.DisplayPath = filepath.ToSlash(f.DisplayPath)
		seen, warnings, err := envs.ReadObservations(f)
		faults.Add(diag.Pos{}, err)
		o.log.Warn(warnings)
		warned = append(warned, warnings...)
		out = append(out, seen...)
	}
	return out, warned, faults.Err()
}

// write writes the lock of a step if it changed. With --render, it writes the tree even if the lock did not change.
func (o *promoteOptions) write(ctx context.Context, s *upgrade.PromotionStepReport, _ bool) (err error) {
	switch {
	case s.Resolution != nil:
		var w workspace.Written
		if w, err = s.Step.To.WriteLock(ctx, s.Resolution.Lock, o.render); err == nil {
			s.Written, s.Rendered = w.Changed, w.Tree
		}
		o.logTree(w.Tree)
	case o.render && s.Problem.Read != nil:
		var r *workspace.TreeReport
		if r, err = s.Step.To.WriteTree(ctx, false); err == nil {
			s.Rendered = r
		}
		o.logTree(r)
	}
	return err
}

// printPromotion prints a table for each step, and logs the results.
func (a *app) printPromotion(r *upgrade.PromotionReport) {
	for i, s := range r.Steps {
		if len(r.Steps) > 1 {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			fmt.Fprintf(a.out, "%s → %s:\n", sanitize.Line(s.From), sanitize.Line(s.To))
		}
		t := &terminal.Table{Uncut: true, Head: []string{"operator", s.From, s.To, "result", "why"}}
		for _, op := range s.Operators {
			why := op.Message
			if why == "" && op.Verdict != nil {
				why = op.Verdict.Text(*s.Gate, "")
			}
			t.Add(op.Operator, terminal.Dash(op.From), terminal.Dash(op.Have), string(op.Outcome), terminal.Dash(why))
		}
		t.Write(a.out)
		if s.Rendered != nil {
			a.printRendered(s.Rendered)
		}
		a.log.Warn(slices.DeleteFunc(slices.Clone(s.Warnings), func(w diag.Warning) bool { return w.Code == "not-followed" })) // the table has these
		a.logPromotion(&s)
	}
}

// logPromotion logs the result of a step.
func (a *app) logPromotion(s *upgrade.PromotionStepReport) {
	from, to, promoted := sanitize.Line(s.From), sanitize.Line(s.To), s.CountPromoted()
	if s.Gate == nil {
		a.log.Note("no health evidence required in %s: %s has no spec.promotion", from, to)
	}
	n := diag.Count(promoted, "operator")
	switch {
	case promoted == 0:
		a.log.Note("nothing to promote from %s to %s", from, to)
	case s.Written:
		a.log.Note("wrote %s of %s (%s promoted)", workspace.LockFile, to, n)
	case s.Proposed == nil:
		a.log.Note("%s to promote from %s to %s: nothing written", n, from, to)
	}
}
