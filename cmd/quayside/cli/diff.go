package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/lines"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
)

type diffOptions struct {
	*app
	base     string
	rendered string
	locks    bool
	trees    bool
	upgrade  operatorFlag
	observed []string
	hops     string
	text     bool
	linkBase string
	exitZero bool
	save     []string
	comment  int64
	forge    string
	scan     string
	reading  bool
	sizes    bool
	today    dayFlag
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{app: a, upgrade: operatorFlag{name: "upgrade", versions: true}}
	cmd := &cobra.Command{
		Use:   "diff [REV | REV..REV | REV...REV | ARTIFACT [REV | ARTIFACT]]",
		Short: "Show what an upgrade really changes, by operator and by risk",
		Long: doc(`
			Compare two states of the workspace and report what really changes between them:
			custom resource definitions, custom resources of this repository that would be
			rejected or lose fields, permissions, images, webhooks, removed APIs, Pod
			Security, deletions that lose data.

			Without arguments, the work tree is compared with its merge base with the
			default branch. REV compares the work tree with a revision, A..B one revision
			with another, A...B the merge base of both with B. --locks and --trees compare
			two files or directories, --upgrade compares the lock with what 'quayside
			resolve --upgrade' would make of it. An artifact (oci://registry/repository:tag,
			as 'quayside push' makes it) is compared with the work tree, or with a revision or
			an artifact that is named before or after it. Nothing is ever modified.

			Each side is read from its committed tree if that is what its lock says, else
			rendered from its lock. The policy in quayside.yaml decides what is refused;
			KUBECTL_EXTERNAL_DIFF names the program that --text runs.

			-o html prints a page for a browser. Its findings link to their lines at GitHub,
			GitLab, Forgejo or Bitbucket where the remote origin is there.

			Exit codes: 0 no differences; 1 differences; 2 an error; 3 with --upgrade, the
			declarations have no solution; 4 the policy says no.`),
		Example: examples(`
			# what does this branch change?
			quayside diff --exit-zero

			# the same in CI, for people, for code scanning and for GitLab
			quayside diff --exit-zero --save markdown=diff.md --save sarif=diff.sarif --save codequality=codequality.json

			# what would an upgrade bring, as a comment for a pull request
			quayside diff --upgrade --offline -o markdown --exit-zero

			# and which vulnerabilities it brings and mends, by what scanners found in the images
			quayside diff --upgrade --offline --scan scans/ --exit-zero

			# likewise, where a version is dropped in which clusters may store objects
			quayside diff --upgrade --observed observed.yaml --exit-zero

			# what would a promotion of artifacts change?
			quayside diff oci://registry.example.com/fleet/prod:main oci://registry.example.com/fleet/prod:next

			# the lines, not the risks
			quayside diff --upgrade --offline --text --exit-zero`),
		Args: cobra.ArbitraryArgs,
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
	f.Var(&o.upgrade, "upgrade", "compare with what an upgrade brings, of all or one: `[NAMESPACE/]PACKAGE[@VERSION]`")
	f.Lookup("upgrade").NoOptDefVal = allOperators
	addScan(cmd, &o.scan)
	f.BoolVar(&o.sizes, "image-sizes", false, "ask registries how large the images are that come and go")
	f.BoolVar(&o.reading, "reading", false, "tell what there is to read of operators that move, too: links and changed texts of their bundles")
	f.StringVar(&o.hops, "hops", "1", "with --upgrade, edges of the upgrade graph to take: a `NUMBER` or all")
	f.StringArrayVar(&o.observed, "observed", nil, "say by `FILE`, written by 'quayside status --save', in which versions objects are stored; with --upgrade, move no operator that it holds back; may be given several times, one for each cluster")
	f.BoolVar(&o.text, "text", false, "print the lines that differ instead of findings")
	f.StringArrayVar(&o.save, "save", nil, "write the report to a file, too: `FORMAT=FILE`, as in sarif=diff.sarif; may be given several times")
	f.Int64Var(&o.comment, "comment", 0, "keep one comment of the pull request `NUMBER` up to date with the report of this workspace; GIT_TOKEN holds the token")
	addForge(cmd, a, &o.forge)
	f.StringVar(&o.linkBase, "link-base", "", "`URL` of the repository in its forge, or of a file with {commit}, {path} and {line}: what an HTML report links to")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 instead of 1 when something differs")
	addToday(cmd, &o.today, "support and waivers")
	o.rendered = "auto"
	sides := &format{value: &o.rendered, known: []string{"auto", "tree", "lock"}}
	f.Var(sides, "from", "read each side from its committed tree, render it from its lock, or choose")
	a.complete(cmd, "from", sides.known)
	a.offer(cmd, "upgrade", a.versions)
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, state.Formats(), diff.Document{})
	addAll(cmd, a, "locks", "trees", "save")
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
	if slices.ContainsFunc(args, state.IsArtifact) && want == 1 {
		want = 2
	}
	if len(args) > want {
		return usagef(cmd, "unexpected argument %q", args[want])
	}
	return o.checkReports(cmd)
}

// checkReports refuses flags for reports that do not belong together.
func (o *diffOptions) checkReports(cmd *cobra.Command) error {
	if o.text {
		for _, name := range []string{"output", "save", "comment", "scan", "reading", "image-sizes"} {
			if cmd.Flags().Changed(name) {
				return usagef(cmd, "--text prints lines and nothing else: leave out --%s", name)
			}
		}
	}
	if cmd.Flags().Changed("comment") && o.comment < 1 {
		return usagef(cmd, "--comment %d: want the number of a pull request", o.comment)
	}
	if o.forge != "" && o.comment == 0 {
		return usagef(cmd, "--forge needs --comment NUMBER")
	}
	for _, s := range o.save {
		form, file, _ := strings.Cut(s, "=")
		if file == "" || !slices.Contains(state.Formats(), form) {
			return usagef(cmd, "--save %q: want FORMAT=FILE with one of %s", s, strings.Join(state.Formats(), ", "))
		}
	}
	page := o.output == "html" || slices.ContainsFunc(o.save, func(s string) bool { return strings.HasPrefix(s, "html=") })
	if o.linkBase != "" && !page {
		return usagef(cmd, "--link-base is for pages of HTML: add -o html or --save html=FILE")
	}
	return nil
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	p, err := o.open()
	if err != nil {
		return err
	}
	c, err := o.comparison(cmd, p, args)
	if err != nil {
		return err
	}
	if o.text {
		return o.printLines(ctx, c)
	}
	c.Reading, c.ImageSizes = o.reading, o.sizes
	if c.Scans, err = o.scans(o.scan); err != nil {
		return err
	}
	report, err := c.Report(ctx, o.today.time())
	if err != nil {
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

// saveReports writes the reports that --save names.
func (o *diffOptions) saveReports(c *state.Comparison, r *diff.Report) error {
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

// comparison finds the two sides that the command line asks for.
func (o *diffOptions) comparison(cmd *cobra.Command, p *project.Project, args []string) (*state.Comparison, error) {
	opt := state.Options{From: state.From(o.rendered), Base: o.base, Locks: o.locks, Trees: o.trees, Names: slices.Clone(args)}
	for i, arg := range args {
		if (o.trees || o.locks) && !state.IsArtifact(arg) {
			opt.Names[i] = o.argPath(arg)
		}
	}
	var err error
	if opt.Observed, err = o.readObserved(o.observed...); err != nil {
		return nil, err
	}
	if o.upgrade.any() {
		hops, err := parseHops(o.hops)
		if err != nil {
			return nil, usagef(cmd, "%w", err)
		}
		of := p.ResolveOptions()
		of.Upgrade, of.Named, of.Hops = o.upgrade.all, o.upgrade.named, hops
		opt.Upgrade = &of
	}
	return state.Open(cmd.Context(), p, opt)
}

// verdict turns a report into the exit code that it deserves.
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

// refusal returns what the policy says of a report; nil where it lets it pass.
func (o *diffOptions) refusal(r *diff.Report) error {
	if r.Verdict == nil || !r.Verdict.Fail {
		return nil
	}
	return &project.PolicyError{Msg: "refused by the policy in quayside.yaml: " + r.Verdict.Refused()}
}

// errDiffers is the outcome of a diff that found differences, and printed
// them.
var errDiffers = errors.New("differs")

// printDiff writes a report in the format that was asked for.
func (o *diffOptions) printDiff(c *state.Comparison, r *diff.Report) error {
	var data []byte
	var err error
	if o.output == "text" {
		data = diff.Text(r, o.out.Color)
	} else if slices.Contains(state.Formats(), o.output) {
		data, err = c.Format(r, o.output, o.linkBase)
	}
	if err != nil {
		return err
	}
	return o.print(r.Document(), func(w io.Writer) { fmt.Fprintf(w, "%s", data) })
}

// printLines prints the lines that differ, by the program that
// KUBECTL_EXTERNAL_DIFF names or by itself.
func (o *diffOptions) printLines(ctx context.Context, c *state.Comparison) error {
	files, err := c.Files(ctx)
	switch program := strings.TrimSpace(o.env["KUBECTL_EXTERNAL_DIFF"]); {
	case err != nil:
	case len(files) == 0:
		o.talk.Note("no differences between %s and %s", c.Before.Name, c.After.Name)
		return nil
	case program != "":
		err = lines.Run(ctx, program, files, o.out.Device, o.talk.Device)
	default:
		lines.Print(o.out, files)
	}
	if err == nil && !o.exitZero {
		err = errDiffers
	}
	return err
}
