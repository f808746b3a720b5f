package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
)

type diffOptions struct {
	*app
	base         string
	rendered     string
	locks        bool
	trees        bool
	upgrade      operatorFlag
	observed     []string
	hops         string
	text         bool
	linkBase     string
	exitZero     bool
	save         []string
	comment      int64
	forge        string
	scan         string
	releaseNotes bool
	sizes        bool
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{app: a, upgrade: operatorFlag{name: "upgrade", versions: true}}
	cmd := &cobra.Command{
		Use:   "diff [REV | REV..REV | REV...REV | ARTIFACT [REV | ARTIFACT]]",
		Short: "Show the changes of an upgrade, by operator and risk",
		Long: Doc(`
			Compare two states of the workspace and report the risks of the changes, by operator:
			CRDs, custom resources that the API server would reject or prune, permissions, images,
			webhooks, removed APIs, Pod Security, and deletions that lose data.

			  quayside diff                 the merge base with the default branch, and the work tree
			  quayside diff REV             a revision, and the work tree
			  quayside diff A..B            two revisions
			  quayside diff A...B           the merge base of A and B, and B
			  quayside diff --upgrade       the lock, and the result of 'quayside upgrade'
			  quayside diff --upgrade PKG   the lock, and the result of 'quayside upgrade PKG'
			  quayside diff --locks A B     two lock files
			  quayside diff --trees A B     two directories of manifests
			  quayside diff oci://A [B]     an artifact, and the work tree, a revision or an artifact

			quayside reads the committed tree of each side if it is up to date with its lock; else
			it renders the lock. spec.policy in quayside.yaml refuses findings.

			-o html prints a page with links to the files in the forge. --text prints the lines that
			differ, or runs the program in KUBECTL_EXTERNAL_DIFF.

			See also: docs/diff.md, docs/diff-rules.md
			Exit codes: 0 no differences; 1 differences; 2 an error; 3 with --upgrade, the
			declarations have no solution; 4 refused by the policy.`),
		Example: Examples(`
			# show the changes of this branch
			quayside diff --exit-zero

			# in CI: write reports for people, for code scanning and for GitLab
			quayside diff --exit-zero --save markdown=diff.md --save sarif=diff.sarif --save codequality=codequality.json

			# show the changes of an upgrade, as a comment for a pull request
			quayside diff --upgrade --offline -o markdown --exit-zero

			# include vulnerabilities that the upgrade adds or fixes, from scanner reports
			quayside diff --upgrade --offline --scan scans/ --exit-zero

			# include removed CRD versions in which a cluster stores objects
			quayside diff --upgrade --observed observed.yaml --exit-zero

			# compare two artifacts before a promotion
			quayside diff oci://registry.example.com/fleet/prod:main oci://registry.example.com/fleet/prod:next`),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := o.upgradeTargets(cmd, args)
			if err != nil {
				return err
			}
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "target `BRANCH` of pull requests (default: the target of origin/HEAD; without a remote, main or master)")
	f.BoolVar(&o.locks, "locks", false, "compare two lock files: --locks BEFORE AFTER")
	f.BoolVar(&o.trees, "trees", false, "compare two directories of manifests: --trees BEFORE AFTER")
	f.Var(&o.upgrade, "upgrade", "compare with the result of upgrading all operators, or one: `[NAMESPACE/]PACKAGE[@VERSION]`")
	f.Lookup("upgrade").NoOptDefVal = allOperators
	addScan(cmd, &o.scan)
	f.BoolVar(&o.sizes, "image-sizes", false, "report the sizes of added and removed images, from the registries")
	f.BoolVar(&o.releaseNotes, "release-notes", false, "include release notes and links of the upgraded operators, and changed texts of their bundles")
	f.StringVar(&o.hops, "hops", "1", "with --upgrade, how many edges of the upgrade graph to follow: a `NUMBER` or all")
	f.StringArrayVar(&o.observed, "observed", nil, "observations of a cluster: a `FILE` written by 'quayside status --save', including the stored versions; with --upgrade, hold back the operators that `FILE` reports as not upgradeable; may be given several times, one for each cluster")
	f.BoolVar(&o.text, "text", false, "print the lines that differ instead of findings")
	f.StringArrayVar(&o.save, "save", nil, "also write the report to a file: `FORMAT=FILE`, such as sarif=diff.sarif; may be given several times")
	addComment(cmd, a, &o.comment, &o.forge, "keep one comment of the pull request `NUMBER` up to date with the report of this workspace; GIT_TOKEN holds the token")
	f.StringVar(&o.linkBase, "link-base", "", "link target in an HTML report: the `URL` of the repository in its forge, or a template with {commit}, {path} and {line}")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 instead of 1 when something differs")
	addNow(cmd, a, "support and waivers")
	o.rendered = "auto"
	from := &format{value: &o.rendered, known: []string{"auto", "tree", "lock"}}
	f.Var(from, "from", "use the committed tree of each side, or its rendered lock; auto: the tree if it is up to date")
	a.complete(cmd, "from", from.known)
	a.offer(cmd, "upgrade", a.completions(edit.Completer.Versions))
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, compare.Formats(), diff.Document{})
	addAllWithSearch(cmd, a, o.workspaces, "locks", "trees", "save")
	return cmd
}

// workspaces returns the directories below top that contain a workspace on at least one of the two sides,
// because a branch may add or delete a workspace.
func (o *diffOptions) workspaces(top string, args []string) ([]string, error) {
	if o.upgrade.isSet() || slices.ContainsFunc(args, compare.IsArtifact) || len(args) > 1 {
		return workspacesBelow(top)
	}
	o.workspace = top
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	names, err := compare.Workspaces(p, o.base, strings.Join(args, ""))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no workspace in or below %s", top)
	}
	return names, err
}

// upgradeTargets adds the arguments after --upgrade to the operators of that flag, and returns the other
// arguments.
func (o *diffOptions) upgradeTargets(cmd *cobra.Command, args []string) ([]string, error) {
	if !o.upgrade.isSet() || o.locks || o.trees {
		return args, nil
	}
	for _, arg := range args {
		if err := o.upgrade.Set(arg); err != nil {
			return nil, Usagef(cmd, "unexpected argument %q: with --upgrade, the other side is quayside.lock: %w", arg, err)
		}
		o.upgrade.all = false
	}
	return nil, nil
}

// check returns an error for arguments and flags that cannot be combined.
func (o *diffOptions) check(cmd *cobra.Command, args []string) error {
	var modes []string
	for _, m := range []struct {
		on   bool
		name string
	}{{o.locks, "--locks"}, {o.trees, "--trees"}, {o.upgrade.isSet(), "--upgrade"}} {
		if m.on {
			modes = append(modes, m.name)
		}
	}
	want := 1
	switch {
	case len(modes) > 1:
		return Usagef(cmd, "%s cannot be used together", strings.Join(modes, " and "))
	case o.locks || o.trees:
		if len(args) != 2 {
			return Usagef(cmd, "%s requires two arguments, BEFORE and AFTER", modes[0])
		}
		want = 2
	}
	if slices.ContainsFunc(args, compare.IsArtifact) && want == 1 {
		want = 2
	}
	if len(args) > want {
		return Usagef(cmd, "unexpected argument %q", args[want])
	}
	return o.checkReports(cmd)
}

// checkReports returns an error for report flags that cannot be combined.
func (o *diffOptions) checkReports(cmd *cobra.Command) error {
	if o.text {
		for _, name := range []string{"output", "save", "comment", "scan", "release-notes", "image-sizes"} {
			if cmd.Flags().Changed(name) {
				return Usagef(cmd, "--text cannot be used with --%s", name)
			}
		}
	}
	if err := checkComment(cmd, o.comment, o.forge); err != nil {
		return err
	}
	for _, s := range o.save {
		form, file, _ := strings.Cut(s, "=")
		if file == "" || !slices.Contains(compare.Formats(), form) {
			return Usagef(cmd, "--save %q: must be FORMAT=FILE, where FORMAT is one of %s", s, strings.Join(compare.Formats(), ", "))
		}
	}
	page := o.output == "html" || slices.ContainsFunc(o.save, func(s string) bool { return strings.HasPrefix(s, "html=") })
	if o.linkBase != "" && !page {
		return Usagef(cmd, "--link-base requires HTML output: add -o html or --save html=FILE")
	}
	return nil
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	p, err := o.open()
	if err != nil {
		return err
	}
	c, err := o.openComparison(cmd, p, args)
	if o.logComparison(c); err != nil {
		return err
	}
	if o.text {
		return o.printLines(ctx, c)
	}
	c.Reading, c.ImageSizes = o.releaseNotes, o.sizes
	if c.Scans, err = o.readScans(o.scan); err != nil {
		return err
	}
	report, err := c.Report(ctx, o.now.orNow())
	if o.logComparison(c); err != nil {
		return err
	}
	if err := o.printDiff(c, report); err != nil {
		return err
	}
	if err := o.saveReports(c, report); err != nil {
		return err
	}
	if o.comment > 0 {
		if err := o.postComment(ctx, c, report); err != nil {
			return errors.Join(err, o.refusal(report))
		}
	}
	return o.verdict(report)
}

// logComparison prints the messages of a comparison. c may be nil.
func (a *app) logComparison(c *compare.Comparison) {
	if c != nil {
		a.logMessages(c.TakeMessages())
	}
}

func (a *app) logMessages(ms []compare.Message) {
	for _, m := range ms {
		if a.log.Warn(m.Warnings); m.Note != "" {
			a.log.Note("%s", m.Note)
		}
	}
}

// saveReports writes the reports requested by --save.
func (o *diffOptions) saveReports(c *compare.Comparison, r *diff.Report) error {
	for _, s := range o.save {
		form, file, _ := strings.Cut(s, "=")
		data, err := c.Format(r, form, o.linkBase)
		if err != nil {
			return err
		}
		if _, err := filetree.WriteFile(o.argPath(file), data); err != nil {
			return err
		}
	}
	return nil
}

// openComparison opens the two sides that the arguments and flags select.
func (o *diffOptions) openComparison(cmd *cobra.Command, p *workspace.Project, args []string) (*compare.Comparison, error) {
	opt := compare.Selection{From: compare.TreeSource(o.rendered), Base: o.base, Locks: o.locks, Trees: o.trees, Names: slices.Clone(args)}
	for i, arg := range args {
		if (o.trees || o.locks) && !compare.IsArtifact(arg) {
			opt.Names[i] = o.argPath(arg)
		}
	}
	var err error
	if opt.Observed, err = o.readObserved(p, o.observed...); err != nil {
		return nil, err
	}
	if o.upgrade.isSet() {
		hops, err := parseHops(o.hops)
		if err != nil {
			return nil, Usagef(cmd, "%w", err)
		}
		upgrade := p.ResolveOptions()
		upgrade.Upgrade, upgrade.Named, upgrade.Hops = o.upgrade.all, o.upgrade.named, hops
		opt.Upgrade = &upgrade
	}
	return compare.Open(cmd.Context(), p, opt)
}

// verdict returns the error for the exit code of a report.
func (o *diffOptions) verdict(r *diff.Report) error {
	err := o.refusal(r)
	switch {
	case err != nil:
		return err
	case r.Empty() || o.exitZero:
		return nil
	default:
		return errDiffers
	}
}

// refusal returns an error if the policy refuses the report, or nil.
func (o *diffOptions) refusal(r *diff.Report) error {
	if r.Verdict == nil || !r.Verdict.Fail {
		return nil
	}
	return &rules.PolicyError{Msg: "refused by the policy in quayside.yaml: " + r.Verdict.Refused()}
}

// errDiffers is returned for differences that have already been printed.
var errDiffers = errors.New("differs")

// printDiff prints a report in the format of -o.
func (o *diffOptions) printDiff(c *compare.Comparison, r *diff.Report) error {
	var data []byte
	var err error
	if o.output == "text" {
		data = diff.Text(r, o.out.Color)
	} else if slices.Contains(compare.Formats(), o.output) {
		data, err = c.Format(r, o.output, o.linkBase)
	}
	if err != nil {
		return err
	}
	return o.print(r.Document(), func(w io.Writer) { fmt.Fprintf(w, "%s", data) })
}

// printLines prints the lines that differ. If KUBECTL_EXTERNAL_DIFF is set, it runs that program
// instead.
func (o *diffOptions) printLines(ctx context.Context, c *compare.Comparison) error {
	files, err := c.Files(ctx)
	o.logComparison(c)
	switch program := strings.TrimSpace(o.env["KUBECTL_EXTERNAL_DIFF"]); {
	case err != nil:
	case len(files) == 0:
		o.log.Note("no differences between %s and %s", c.Before.Name, c.After.Name)
		return nil
	case program != "":
		err = runExternalDiff(ctx, program, files, o.out.Device, o.log.Device)
	default:
		printUnified(o.out, files)
	}
	if err == nil && !o.exitZero {
		err = errDiffers
	}
	return err
}
