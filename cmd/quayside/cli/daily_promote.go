package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/promote"
	"github.com/quayside/quayside/internal/propose"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report/gate"
)

type promoteOptions struct {
	resolveOptions // for what is done with a lock
	observed       []string
	rule           ruleFlags
	now            string
}

// ruleFlags say what has to have been seen, in place of spec.promotion.
type ruleFlags struct {
	healthy, soak, within string
	clusters              int
}

func newPromote(a *app) *cobra.Command {
	o := &promoteOptions{resolveOptions: resolveOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "promote [from to [namespace/package...]]",
		Short: "Take over the versions of another environment that were seen to be healthy there",
		Long: doc(`
			Take over what another environment pins, by the digest of its bundles, as far as
			the declarations here allow, and write quayside.lock. Environments are the
			workspaces below the root of the Git repository, or below -C; each goes by its
			name (metadata.name, else that of its directory) or, with a slash in it, by its
			directory, as in ./envs/dev.

			Without arguments, every environment that follows another (spec.follows) takes one
			step: what dev has comes to stage, and what stage had before comes to prod. With
			operators, these alone move, with what they need.

			A table says what becomes of every operator of both: it moves, comes, is the same,
			stays (for the declaration's range or hold, the version of the clusters, a catalog
			that does not have it, or because the environment before has an older version or
			none), or is held, because what was seen of it does not suffice.

			What suffices is said by spec.promotion of the environment that takes over, or by
			flags: a share and a number of clusters of the environment before that were seen
			lately at that very bundle, and healthy, and so for long enough. An operator that
			says Upgradeable=False in one of them, or here, is held. Where neither says
			anything and nothing was observed, nothing need be seen.

			--observed names files, or directories of them, with what 'quayside status -o json'
			printed of one cluster or several, or 'kubectl get installations.quayside.dev -A -o
			yaml', which the reporter in the cluster keeps. The latter does not say which
			cluster it is of: the file, or its directory, is named for it, and the directory
			around it may be named for the environment.

			Exit codes: 0 done, or nothing to take over; 1 with --check, something would be
			taken over; 2 an error; 3 the declarations have no solution; 4 an operator that is
			named is held.`),
		Example: examples(`
			# what is there to take over, and what is not, and why
			quayside promote dev stage --observed observed/ --check

			# one step for every ring, each on a branch of its own, for pull requests
			quayside promote --observed observed/ --branch promote --commit --push origin --pr-body bodies

			# one operator, whatever quayside.yaml asks for
			quayside promote dev stage my-etcd/etcd --healthy 90% --soak 2h --observed dev-1.json`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usagef(cmd, "promote to where? give two environments, or none for every one that follows another")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkFlags(cmd); err != nil {
				return err
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	o.proposal.flags(cmd)
	d := gate.Default()
	f.StringArrayVar(&o.observed, "observed", nil, "what was seen of clusters: a `FILE`, or a directory of files; may be given several times")
	f.StringVar(&o.rule.healthy, "healthy", "", "the `SHARE` of the clusters that must be healthy, in place of spec.promotion.healthy (default "+d.Healthy.String()+")")
	f.StringVar(&o.rule.soak, "soak", "", "for how long: a `TIME` such as 24h, in place of spec.promotion.soak (default "+d.Soak.String()+")")
	f.StringVar(&o.rule.within, "observed-within", "", "how long ago a cluster may have been looked at: a `TIME`, in place of spec.promotion.observedWithin (default "+d.Within.String()+")")
	f.IntVar(&o.rule.clusters, "clusters", 0, "the least `NUMBER` of clusters, in place of spec.promotion.clusters (default 1)")
	f.StringVar(&o.now, "now", "", "judge what was seen as at this `TIME`, as in 2026-01-31T12:00:00Z (default: the present)")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would be taken over")
	f.BoolVar(&o.render, "render", false, "write the rendered tree too")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, promoteReport{})
	return cmd
}

// checkFlags refuses flags that do not belong together.
func (o *promoteOptions) checkFlags(cmd *cobra.Command) error {
	switch {
	case o.check && (o.proposal.branch != "" || o.render):
		return usagef(cmd, "--check writes nothing: leave out --branch and --render")
	case o.render && o.proposal.branch != "":
		return usagef(cmd, "--render writes the tree: leave out --branch, which renders by itself")
	case cmd.Flags().Changed("clusters") && o.rule.clusters < 1:
		return usagef(cmd, "--clusters %d: want 1 or more", o.rule.clusters)
	}
	if _, err := o.rule.over(gate.Default()); err != nil {
		return usagef(cmd, "%w", err)
	}
	if _, err := o.at(); err != nil {
		return usagef(cmd, "--now: %q is not a time such as 2026-01-31T12:00:00Z", o.now)
	}
	return o.proposal.check(cmd)
}

// over returns a rule with what the flags say in its place.
func (r ruleFlags) over(rule gate.Rule) (gate.Rule, error) {
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

// at returns the time that observations are judged at.
func (o *promoteOptions) at() (time.Time, error) {
	if o.now == "" {
		return time.Now().UTC(), nil
	}
	return time.Parse(time.RFC3339, o.now)
}

// ruleFor returns what has to have been seen before an environment takes over;
// nil: nothing.
func (o *promoteOptions) ruleFor(e *promote.Environment) (*gate.Rule, error) {
	said := e.Settings.Promotion
	if said == nil && o.rule == (ruleFlags{}) && len(o.observed) == 0 {
		return nil, nil
	}
	rule := gate.Default()
	if said != nil {
		rule = said.Rule()
	}
	rule, err := o.rule.over(rule)
	return &rule, err
}

func (o *promoteOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	defer func() { o.workspace = "" }()
	envs, err := o.environments()
	if err != nil {
		return err
	}
	steps, only, err := o.steps(envs, args)
	if err != nil {
		return err
	}
	r := &promoteReport{Steps: []stepView{}, Warnings: []diag.Warning{}}
	seen, err := o.readObservations(envs, r)
	if err != nil {
		return err
	}
	var done []*promote.Outcome
	var refused []string
	for _, step := range steps {
		opt := promote.Options{Only: only, Seen: seen}
		if opt.Rule, err = o.ruleFor(step.To); err != nil {
			return err
		}
		if opt.Now, err = o.at(); err != nil {
			return err
		}
		out, err := step.Promote(ctx, opt)
		if err != nil {
			return err
		}
		done = append(done, out)
		r.add(newStepView(out, opt.Rule))
		refused = append(refused, heldByName(out, only)...)
	}
	if len(refused) > 0 {
		return errors.Join(o.print(r, func(w io.Writer) { o.printPromotion(w, r) }), &project.PolicyError{Msg: strings.Join(refused, "\n")})
	}
	for i, out := range done {
		if err := o.write(ctx, out, &r.Steps[i], len(args) == 0); err != nil {
			return err
		}
	}
	if err := o.print(r, func(w io.Writer) { o.printPromotion(w, r) }); err != nil {
		return err
	}
	if n := r.Promoted; o.check && n > 0 {
		return &project.DiffersError{Msg: fmt.Sprintf("%s to take over", diag.Count(n, "operator"))}
	}
	return nil
}

// heldByName returns why operators that are named are held.
func heldByName(out *promote.Outcome, only []string) (refused []string) {
	for _, row := range out.Rows {
		for _, name := range only {
			if row.Operator == name && row.Fate == promote.Held {
				refused = append(refused, fmt.Sprintf("%s is held: %s", name, row.Message))
			}
		}
	}
	return refused
}

// environments opens the workspaces that may follow each other.
func (o *promoteOptions) environments() (promote.Environments, error) {
	top, dirs, err := project.Workspaces(o.dir)
	if err != nil {
		return nil, err
	}
	return promote.Load(dirs, func(dir string) (*project.Project, error) {
		o.workspace = filepath.Join(top, filepath.FromSlash(dir))
		return o.open()
	})
}

// steps returns what is to be made, and which operators are named.
func (o *promoteOptions) steps(envs promote.Environments, args []string) ([]promote.Step, []string, error) {
	if len(args) == 0 {
		steps, err := envs.Steps()
		if err == nil && len(steps) == 0 {
			err = errors.New("no environment follows another: name two, or set spec.follows in the quayside.yaml of the one that follows")
		}
		return steps, nil, err
	}
	from, err := envs.Find(args[0])
	to, toErr := envs.Find(args[1])
	if err := errors.Join(err, toErr); err != nil {
		return nil, nil, err
	}
	if from == to {
		return nil, nil, fmt.Errorf("%s and %s are one environment", args[0], args[1])
	}
	return []promote.Step{{From: from, To: to}}, args[2:], nil
}

// readObservations reads what --observed names.
func (o *promoteOptions) readObservations(envs promote.Environments, r *promoteReport) ([]gate.Observation, error) {
	var out []gate.Observation
	var faults diag.List
	for _, name := range o.observed {
		f, err := source.Below(o.dir)(name)
		if err != nil {
			faults.Add(diag.Pos{}, err)
			continue
		}
		f.Shown = filepath.ToSlash(f.Shown)
		seen, warnings, err := envs.Observed(f)
		faults.Add(diag.Pos{}, err)
		o.talk.Warn(warnings)
		r.Warnings = append(r.Warnings, warnings...)
		out = append(out, seen...)
	}
	return out, faults.Err()
}

// write puts what a step comes to where it is asked for. Of several, each has a
// branch and a text of its own.
func (o *promoteOptions) write(ctx context.Context, out *promote.Outcome, view *stepView, several bool) (err error) {
	if out.Resolution == nil || o.check {
		return nil
	}
	o.workspace = out.To.Name()
	if o.proposal.branch != "" {
		view.Proposed, err = o.propose(ctx, out, view, several)
		return err
	}
	if view.Written, err = filetree.WriteFile(out.To.Path(project.LockFile), lockfile.Format(out.Resolution.Lock)); err == nil && o.render {
		view.Rendered, err = o.renderedToo(ctx)
	}
	return err
}

// propose commits a step on a branch of its own.
func (o *promoteOptions) propose(ctx context.Context, out *promote.Outcome, view *stepView, several bool) (*propose.Published, error) {
	base, err := o.base(ctx, out.To.Project)
	if err != nil {
		return nil, err
	}
	return base.Propose(ctx, project.Upgrade{Resolution: out.Resolution, Seen: view.seen()}, out.Inputs, several)
}

// promoteReport is what `quayside promote` prints.
type promoteReport struct {
	Steps    []stepView     `json:"steps" doc:"the last ring first"`
	Promoted int            `json:"promoted" doc:"operators that move or come, in all steps"`
	Warnings []diag.Warning `json:"warnings"`
}

func (r *promoteReport) add(s stepView) {
	r.Steps = append(r.Steps, s)
	r.Promoted += s.promoted()
}

type stepView struct {
	From      string              `json:"from" doc:"the environment before"`
	To        string              `json:"to" doc:"the one that takes over"`
	Directory string              `json:"directory" doc:"of the one that takes over"`
	Gate      *ruleView           `json:"gate,omitempty" doc:"what has to have been seen; absent: nothing"`
	Operators []promotedView      `json:"operators" doc:"of both, by name"`
	Changes   []project.Change    `json:"changes" doc:"to the lock"`
	Warnings  []diag.Warning      `json:"warnings"`
	Written   bool                `json:"written" doc:"the lock was"`
	Rendered  *project.TreeReport `json:"rendered,omitempty" doc:"with --render"`
	Proposed  *propose.Published  `json:"proposed,omitempty" doc:"with --branch"`
}

type ruleView struct {
	Healthy        string `json:"healthy"`
	Soak           string `json:"soak"`
	Clusters       int    `json:"clusters"`
	ObservedWithin string `json:"observedWithin"`
}

type promotedView struct {
	Operator string       `json:"operator"`
	From     string       `json:"from,omitempty" doc:"version in the environment before"`
	Have     string       `json:"have,omitempty" doc:"version in the one that takes over, before"`
	Fate     promote.Fate `json:"fate" form:"enum=moves|comes|same|stays|held"`
	Reason   string       `json:"reason,omitempty" form:"enum=notInFrom|notDeclared|older|hold|range|cluster|catalog|content|conflict|gate|needs" doc:"why it stays or is held"`
	Message  string       `json:"message,omitempty"`
	Seen     *seenView    `json:"seen,omitempty" doc:"in the environment before"`
}

type seenView struct {
	Pass     bool        `json:"pass"`
	Good     int         `json:"good" doc:"clusters that suffice"`
	Clusters int         `json:"clusters" doc:"that get the operator"`
	Causes   []causeView `json:"causes" doc:"why the others do not, also where that is no matter"`

	text string
}

type causeView struct {
	Cause    string        `json:"cause" form:"enum=notUpgradeable|notObserved|tooOld|otherBundle|unhealthy|notSoaked|tooFew"`
	Clusters []clusterView `json:"clusters"`
}

type clusterView struct {
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

func newStepView(out *promote.Outcome, rule *gate.Rule) stepView {
	v := stepView{
		From: out.From.Title, To: out.To.Title, Directory: out.To.Dir, Operators: []promotedView{}, Changes: []project.Change{}, Warnings: []diag.Warning{},
	}
	if rule != nil {
		v.Gate = &ruleView{rule.Healthy.String(), rule.Soak.String(), rule.Clusters, rule.Within.String()}
	}
	for _, row := range out.Rows {
		op := promotedView{Operator: row.Operator, From: row.From, Have: row.Have, Fate: row.Fate, Reason: string(row.Reason), Message: row.Message}
		if row.Verdict != nil {
			op.Seen = newSeenView(*row.Verdict, *rule)
		}
		v.Operators = append(v.Operators, op)
	}
	if out.Resolution != nil {
		v.Changes, v.Warnings = append(v.Changes, out.Resolution.Changes...), append(v.Warnings, out.Resolution.Warnings...)
	}
	return v
}

func newSeenView(verdict gate.Verdict, rule gate.Rule) *seenView {
	v := &seenView{Pass: verdict.Pass, Good: verdict.Good, Clusters: verdict.Clusters, Causes: []causeView{}, text: verdict.Text(rule)}
	for _, r := range verdict.Reasons {
		c := causeView{Cause: string(r.Cause), Clusters: []clusterView{}}
		for _, cluster := range r.Clusters {
			c.Clusters = append(c.Clusters, clusterView(cluster))
		}
		v.Causes = append(v.Causes, c)
	}
	return v
}

// promoted counts the operators that are taken over.
func (s *stepView) promoted() (n int) {
	for _, op := range s.Operators {
		if op.Fate == promote.Moves || op.Fate == promote.Comes {
			n++
		}
	}
	return n
}

// seen says what was seen of what is taken over, for the text of a pull request.
func (s *stepView) seen() (lines []string) {
	for _, op := range s.Operators {
		if (op.Fate == promote.Moves || op.Fate == promote.Comes) && op.Seen != nil {
			lines = append(lines, op.Operator+" "+op.From+" in "+s.From+": "+op.Seen.text)
		}
	}
	return lines
}

// printPromotion prints a table for each step.
func (o *promoteOptions) printPromotion(w io.Writer, r *promoteReport) {
	for i := range r.Steps {
		s := &r.Steps[i]
		if len(r.Steps) > 1 {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s → %s:\n", inert.Line(s.From), inert.Line(s.To))
		}
		t := &terminal.Table{Uncut: true, Head: []string{"operator", s.From, s.To, "result", "why"}}
		for _, op := range s.Operators {
			why := op.Message
			if why == "" && op.Seen != nil {
				why = op.Seen.text
			}
			t.Add(op.Operator, terminal.Dash(op.From), terminal.Dash(op.Have), string(op.Fate), terminal.Dash(why))
		}
		t.Write(o.out)
		if s.Rendered != nil {
			s.Rendered.Print(o.out, o.talk)
		}
		o.notePromotion(s)
	}
}

// notePromotion says what was done.
func (o *promoteOptions) notePromotion(s *stepView) {
	if s.Gate == nil {
		o.talk.Note("nothing had to be seen in %s: %s has no spec.promotion", inert.Line(s.From), inert.Line(s.To))
	}
	n := diag.Count(s.promoted(), "operator")
	switch {
	case s.promoted() == 0:
		o.talk.Note("nothing to take over from %s to %s", inert.Line(s.From), inert.Line(s.To))
	case s.Written:
		o.talk.Note("wrote %s of %s (%s taken over)", project.LockFile, inert.Line(s.To), n)
	case s.Proposed == nil:
		o.talk.Note("%s to take over from %s to %s: nothing is written", n, inert.Line(s.From), inert.Line(s.To))
	}
}
