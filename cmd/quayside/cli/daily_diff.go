package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

type diffOptions struct {
	*app
	base     string
	rendered string
	locks    bool
	trees    bool
	upgrade  operatorFlag
	hops     string
	text     bool
	exitZero bool
}

func newDiff(a *app) *cobra.Command {
	o := &diffOptions{app: a, upgrade: operatorFlag{versions: true}}
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

			Exit codes: 0 no differences; 1 differences; 2 an error; 3 with --upgrade, the
			declarations have no solution; 4 the policy says no.`),
		Example: examples(`
			# what does this branch change?
			quayside diff --exit-zero

			# what would an upgrade bring, as a comment for a pull request
			quayside diff --upgrade --offline -o markdown --exit-zero

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
	f.StringVar(&o.hops, "hops", "1", "with --upgrade, edges of the upgrade graph to take: a `NUMBER` or all")
	f.BoolVar(&o.text, "text", false, "print the lines that differ instead of findings")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 instead of 1 when something differs")
	o.rendered = "auto"
	sides := &format{value: &o.rendered, known: []string{"auto", "tree", "lock"}}
	f.Var(sides, "from", "read each side from its committed tree, render it from its lock, or choose")
	complete(cmd, "from", sides.known)
	offer(cmd, "upgrade", a.versions)
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, []string{"markdown", "sarif", "html"}, diff.Document{})
	addAll(cmd, a, "locks", "trees")
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
	if o.text && cmd.Flags().Changed("output") {
		return usagef(cmd, "--text prints lines and nothing else: leave out --output")
	}
	return nil
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	p, err := o.open()
	if err != nil {
		return err
	}
	c, err := o.sides(ctx, p, cmd, args)
	if err != nil {
		return err
	}
	if o.text {
		return o.printText(ctx, c)
	}
	report, err := c.Report(ctx, time.Now())
	if err != nil {
		return err
	}
	if err := o.printDiff(c, report); err != nil {
		return err
	}
	return o.verdict(report)
}

// sides finds the two sides that the command line asks for.
func (o *diffOptions) sides(ctx context.Context, p *project.Project, cmd *cobra.Command, args []string) (*state.Comparison, error) {
	from := state.From(o.rendered)
	switch {
	case slices.ContainsFunc(args, state.IsArtifact) && !o.locks:
		return state.Artifacts(ctx, p, args[0], strings.Join(args[1:], ""), o.trees)
	case o.trees:
		return state.Trees(p, args[0], args[1])
	case o.locks:
		return state.Locks(p, from, args[0], args[1])
	case o.upgrade.any():
		hops, err := parseHops(o.hops)
		if err != nil {
			return nil, usagef(cmd, "%w", err)
		}
		opt := p.ResolveOptions()
		opt.Upgrade, opt.Named, opt.Hops = o.upgrade.all, o.upgrade.named, hops
		in, err := p.Inputs(ctx, opt, true)
		if err != nil {
			return nil, err
		}
		return state.Upgrade(ctx, p, from, in)
	default:
		return state.Revisions(p, from, o.base, strings.Join(args, ""))
	}
}

// verdict turns a report into the exit code that it deserves.
func (o *diffOptions) verdict(r *diff.Report) error {
	switch {
	case r.Verdict != nil && r.Verdict.Fail:
		return &project.PolicyError{Msg: refusals(r.Verdict)}
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
		parts = append(parts, diag.Count(n, "finding"))
	}
	if n := len(v.Questions); n > 0 {
		parts = append(parts, diag.Count(n, "question")+" outside the accepted budget")
	}
	return "refused by the policy in quayside.yaml: " + strings.Join(parts, ", ")
}

// errDiffers is the outcome of a diff that found differences, and printed
// them.
var errDiffers = errors.New("differs")

// printDiff writes a report in the format that was asked for.
func (o *diffOptions) printDiff(c *state.Comparison, r *diff.Report) error {
	data, err := o.formatDiff(c, r)
	if err != nil {
		return err
	}
	return o.print(r.Document(), func(w io.Writer) { fmt.Fprintf(w, "%s", data) })
}

func (o *diffOptions) formatDiff(c *state.Comparison, r *diff.Report) ([]byte, error) {
	switch o.output {
	case "markdown":
		return diff.Markdown(r), nil
	case "sarif":
		return diff.SARIF(r, c.InRepo(project.LockFile))
	case "html":
		return diff.HTML(r)
	case "text":
		return diff.Text(r, o.out.color), nil
	default:
		return nil, nil // a document
	}
}

// printText prints the lines that differ, by the program that
// KUBECTL_EXTERNAL_DIFF names or by itself.
func (o *diffOptions) printText(ctx context.Context, c *state.Comparison) error {
	files, err := c.Files(ctx)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		o.talk.Note("no differences between %s and %s", c.Before.Name, c.After.Name)
		return nil
	}
	if program := o.env["KUBECTL_EXTERNAL_DIFF"]; program != "" {
		if err := o.external(ctx, program, files); err != nil {
			return err
		}
	} else {
		for _, f := range files {
			from, to := "a/"+f.Path, "b/"+f.Path
			if f.Before == "" {
				from = "/dev/null"
			}
			if f.After == "" {
				to = "/dev/null"
			}
			fmt.Fprint(o.out, o.paintDiff(udiff.Unified(from, to, f.Before, f.After)))
		}
	}
	if o.exitZero {
		return nil
	}
	return errDiffers
}

func (o *diffOptions) paintDiff(text string) string {
	if !o.out.color {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			body = o.out.paint(green, body)
		case strings.HasPrefix(line, "-"):
			body = o.out.paint(red, body)
		}
		b.WriteString(body + "\n")
	}
	return b.String()
}

// external has a program compare two directories, as kubectl diff does: the
// value is a program and plain flags, no shell sees it, and an exit code of 1
// means that something differs.
func (o *diffOptions) external(ctx context.Context, program string, files []state.ChangedFile) error {
	words := strings.Fields(program)
	plain := regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)
	args := slices.DeleteFunc(words[1:], func(s string) bool { return !plain.MatchString(s) })
	dir, err := os.MkdirTemp("", "quayside-diff-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, f := range files {
		for side, data := range map[string]string{"BEFORE": f.Before, "AFTER": f.After} {
			name := filepath.Join(dir, side, filepath.FromSlash(f.Path))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
			if data == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, words[0], append(args, filepath.Join(dir, "BEFORE"), filepath.Join(dir, "AFTER"))...)
	cmd.Stdout, cmd.Stderr = o.out.device, o.talk.device
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return fmt.Errorf("KUBECTL_EXTERNAL_DIFF: %s: %w", words[0], err)
	}
	return nil
}
