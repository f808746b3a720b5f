package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/workspace"
)

// printDiff writes a report in the format that was asked for.
func (o *diffOptions) printDiff(c *compared, r *diff.Report) error {
	data, err := o.formatDiff(c, r)
	if err != nil {
		return err
	}
	_, err = o.out.Write(data)
	return err
}

func (o *diffOptions) formatDiff(c *compared, r *diff.Report) ([]byte, error) {
	switch o.output.value {
	case "markdown":
		return diff.Markdown(r), nil
	case "json":
		return diff.JSON(r)
	case "yaml":
		return yaml.Marshal(r.Document())
	case "sarif":
		return diff.SARIF(r, c.inRepo(lockFile))
	case "html":
		return diff.HTML(r)
	default:
		return diff.Text(r, o.out.color), nil
	}
}

// options returns what the settings of the side after say about comparing.
func (c *compared) options() (diff.Options, error) {
	s := c.after.space
	opt := diff.Options{Severity: map[string]diff.Severity{}}
	for rule, text := range s.ws.Policy.Severity {
		severity, err := diff.ParseSeverity(text)
		if err != nil {
			return opt, err
		}
		opt.Severity[rule] = severity
	}
	if c.after.lock != nil && len(c.after.lock.Accepted) > 0 {
		for _, a := range c.after.lock.Accepted {
			opt.Accepted = append(opt.Accepted, diff.Accepted{Operator: a.Operator, Permissions: a.Permissions, APIs: a.APIs})
		}
	}
	mirrors, err := s.mirrors()
	if err != nil {
		return opt, err
	}
	for _, m := range mirrors.Rewrites() {
		opt.Mirrors = append(opt.Mirrors, m.Prefix, m.Mirror)
	}
	if c.before.rev != nil && !reflect.DeepEqual(plainPolicy(c.before.space.ws), plainPolicy(s.ws)) {
		c.notes = append(c.notes, "the policy in quayside.yaml is itself changed: this report was judged by the new one")
	}
	return opt, nil
}

func plainPolicy(w *workspace.Workspace) workspace.Policy {
	p := w.Policy
	if len(p.Waivers) == 0 {
		p.Waivers = nil
	}
	return p
}

// policy returns what quayside.yaml refuses.
func (s *space) policy() (diff.Policy, error) {
	w := s.ws.Policy
	failOn, err := diff.ParseSeverity(w.FailOn)
	p := diff.Policy{FailOn: failOn}
	for _, v := range w.Waivers {
		p.Waivers = append(p.Waivers, diff.Waiver{Rule: v.Rule, Operator: v.Operator, Object: v.Object, Reason: v.Reason, Expires: v.Expires})
	}
	for _, r := range w.Rules {
		p.Rules = append(p.Rules, diff.CELRule{Name: r.Name, Expression: r.Expression, Message: r.Message})
	}
	return p, err
}

// changedFile is a file of the trees with both contents; empty where it is
// missing.
type changedFile struct{ path, before, after string }

// changedFiles returns the files in which two trees differ, by path.
func changedFiles(before, after []diff.File) []changedFile {
	a, b := byPath(before), byPath(after)
	var out []changedFile
	for name, data := range b {
		if old := a[name]; string(old) != string(data) {
			out = append(out, changedFile{name, string(old), string(data)})
		}
	}
	for name, data := range a {
		if _, stays := b[name]; !stays {
			out = append(out, changedFile{name, string(data), ""})
		}
	}
	slices.SortFunc(out, func(x, y changedFile) int { return strings.Compare(x.path, y.path) })
	return out
}

// printText prints the lines that differ, by the program that
// KUBECTL_EXTERNAL_DIFF names or by itself.
func (o *diffOptions) printText(ctx context.Context, c *compared) error {
	if err := c.fill(ctx); err != nil {
		return err
	}
	files := changedFiles(c.before.tree, c.after.tree)
	if len(files) == 0 {
		o.talk.note("no differences between %s and %s", c.before.name, c.after.name)
		return nil
	}
	if program := o.env["KUBECTL_EXTERNAL_DIFF"]; program != "" {
		if err := o.external(ctx, program, files); err != nil {
			return err
		}
	} else {
		for _, f := range files {
			from, to := "a/"+f.path, "b/"+f.path
			if f.before == "" {
				from = "/dev/null"
			}
			if f.after == "" {
				to = "/dev/null"
			}
			if _, err := fmt.Fprint(o.out, o.paintDiff(udiff.Unified(from, to, f.before, f.after))); err != nil {
				return err
			}
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
func (o *diffOptions) external(ctx context.Context, program string, files []changedFile) error {
	words := strings.Fields(program)
	plain := regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)
	args := slices.DeleteFunc(words[1:], func(s string) bool { return !plain.MatchString(s) })
	dir, err := os.MkdirTemp("", "quayside-diff-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, f := range files {
		for side, data := range map[string]string{"BEFORE": f.before, "AFTER": f.after} {
			name := filepath.Join(dir, side, filepath.FromSlash(f.path))
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
	cmd.Stdout, cmd.Stderr = o.out.Writer, o.talk.Writer
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return fmt.Errorf("KUBECTL_EXTERNAL_DIFF: %s: %w", words[0], err)
	}
	return nil
}
