package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
)

type diffOptions struct {
	*app
	output   format
	base     string
	rendered format
	locks    bool
	trees    bool
	upgrade  upgradeFlag
	hops     string
	text     bool
	exitZero bool
	offline  bool
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff [REV | REV..REV | REV...REV]",
		Short: "Show what an upgrade really changes, by operator and by risk",
		Long: doc(`
			Compare two states of the workspace and say what the step between them really
			changes: custom resource definitions, custom resources of this repository that
			would be rejected or lose fields, permissions, images, webhooks, removed APIs,
			Pod Security, deletions that lose data.

			Without arguments the work tree is compared with its merge base with the
			default branch. REV compares the work tree with a revision, A..B one revision
			with another, A...B the merge base of both with B. --locks and --trees compare
			two files or directories, --upgrade compares what is locked with what
			'quayside resolve --upgrade' would bring. Nothing is ever changed.

			Each side is read from its committed tree where that is what its lock says,
			else rendered from its lock. The policy in quayside.yaml says what is refused;
			KUBECTL_EXTERNAL_DIFF names the program that --text runs.

			Exit codes: 0 no differences; 1 differences; 2 an error; 3 with --upgrade, the
			declarations have no solution; 4 the policy says no.`),
		Example: examples(`
			# what does this branch change?
			quayside diff --exit-zero

			# what would an upgrade bring, as a comment for a pull request
			quayside diff --upgrade --offline -o markdown --exit-zero

			# the lines, not the risks
			quayside diff --upgrade --offline --text --exit-zero`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "`BRANCH` that work is merged into (default: origin/HEAD, main or master)")
	f.BoolVar(&o.locks, "locks", false, "compare two lock files: --locks BEFORE AFTER")
	f.BoolVar(&o.trees, "trees", false, "compare two directories of manifests: --trees BEFORE AFTER")
	f.Var(&o.upgrade, "upgrade", "compare with what an upgrade brings, of all or one: `NAMESPACE/PACKAGE[@VERSION]`")
	f.Lookup("upgrade").NoOptDefVal = upgradeAll
	f.StringVar(&o.hops, "hops", "1", "with --upgrade, edges of the upgrade graph to take: a `NUMBER` or all")
	f.BoolVar(&o.text, "text", false, "print the lines that differ instead of findings")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 instead of 1 when something differs")
	o.rendered = format{value: "auto", known: []string{"auto", "tree", "lock"}}
	f.Var(&o.rendered, "from", "read each side from its committed tree, render it from its lock, or choose")
	complete(cmd, "from", o.rendered.known)
	addOffline(cmd, &o.offline)
	addOutput(cmd, &o.output, "markdown", "sarif", "html")
	return cmd
}

// check refuses arguments that do not belong together.
func (o *diffOptions) check(cmd *cobra.Command, args []string) error {
	var modes []string
	for _, m := range []struct {
		on   bool
		name string
	}{{o.locks, "--locks"}, {o.trees, "--trees"}, {o.upgrade.any(), "--upgrade"}} {
		if m.on {
			modes = append(modes, m.name)
		}
	}
	want := 1
	switch {
	case len(modes) > 1:
		return usagef(cmd, "%s do not go together", strings.Join(modes, " and "))
	case o.locks || o.trees:
		if len(args) != 2 {
			return usagef(cmd, "%s wants two arguments, BEFORE and AFTER", modes[0])
		}
		want = 2
	case o.upgrade.any():
		want = 0
	}
	if len(args) > want {
		return usagef(cmd, "unexpected argument %q", args[want])
	}
	if o.text && cmd.Flags().Changed("output") {
		return usagef(cmd, "--text prints lines and nothing else: leave out --output")
	}
	return nil
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	s, err := o.open()
	if err != nil {
		return err
	}
	c, err := o.compared(ctx, s, cmd, args)
	if err != nil {
		return err
	}
	defer c.close()
	if o.text {
		return o.printText(ctx, c)
	}
	report, err := c.report(ctx)
	if err != nil {
		return err
	}
	if err := o.printDiff(c, report); err != nil {
		return err
	}
	return o.verdict(report)
}

// report compares the two sides, and judges what is found by the policy of the
// side after.
func (c *compared) report(ctx context.Context) (*diff.Report, error) {
	before, after, err := c.states(ctx)
	if err != nil {
		return nil, err
	}
	opt, err := c.options()
	if err != nil {
		return nil, err
	}
	report, err := diff.Compare(before, after, opt)
	if err != nil {
		return nil, err
	}
	report.Notes = slices.Concat(report.Notes, c.notes)
	policy, err := c.after.space.policy()
	if err != nil {
		return nil, err
	}
	report, err = diff.Judge(report, policy, time.Now().UTC().Format(time.DateOnly))
	return report, c.after.named(err)
}

// verdict turns a report into the exit code that it deserves.
func (o *diffOptions) verdict(r *diff.Report) error {
	switch {
	case r.Verdict != nil && r.Verdict.Fail:
		return &policyError{refusals(r.Verdict)}
	case r.Empty() || o.exitZero:
		return nil
	default:
		return errDiffers
	}
}

// refusals says in one line what a policy refused.
func refusals(v *diff.Verdict) string {
	var parts []string
	if n := len(v.Faults); n > 0 {
		parts = append(parts, count(n, "finding"))
	}
	if n := len(v.Questions); n > 0 {
		parts = append(parts, count(n, "question")+" outside the accepted budget")
	}
	return "refused by the policy in quayside.yaml: " + strings.Join(parts, ", ")
}

// errDiffers is the outcome of a diff that found differences, and printed
// them.
var errDiffers = errors.New("differs")

// policyError says that a policy refused what was found.
type policyError struct{ msg string }

func (e *policyError) Error() string { return e.msg }

// compared finds the two sides that the command line asks for.
func (o *diffOptions) compared(ctx context.Context, s *space, cmd *cobra.Command, args []string) (*compared, error) {
	c := &compared{diffOptions: o, pool: newPool()}
	switch {
	case o.trees:
		return c, c.twoTrees(s, args)
	case o.locks:
		return c, c.twoLocks(s, args)
	case o.upgrade.any():
		hops, err := parseHops(o.hops)
		if err != nil {
			return nil, usagef(cmd, "%w", err)
		}
		return c, c.upgraded(ctx, s, hops)
	default:
		return c, c.revisions(s, args)
	}
}
