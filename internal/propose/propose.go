// Package propose puts an upgrade, or each of several, on a branch of its own, pushes
// it and has a pull request with a text for it. The work tree stays as it is.
//
// Start from [Open], [Base.Propose] and [Base.Split].
package propose

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/workspace"
)

// Base is the HEAD of the repository around a workspace, for upgrades to stand on.
type Base struct {
	// Environment is the workspace's name; that of its directory where it has none,
	// and the path of that where several workspaces of HEAD have one name. It is
	// empty for a workspace without a name at the top of the repository.
	Environment string

	opt     Options
	project *project.Project
	author  gitrepo.Author
	repo    *gitrepo.Repo
	head    *gitrepo.Revision
	prefix  string // of the workspace in the repository
}

// proposal is a lock, and what it renders to, as one commit on HEAD.
type proposal struct {
	*Base
	upgrade project.Upgrade
	changes []gitrepo.Change
}

// Open returns what upgrades of a workspace stand on. A work tree in which
// something that a lock depends on is not committed is refused.
func Open(ctx context.Context, p *project.Project, opt Options) (*Base, error) {
	repo, err := gitrepo.Open(p.Name())
	if errors.Is(err, gitrepo.ErrNone) || err == nil && repo.Root() == "" {
		return nil, fmt.Errorf("%s is in no Git work tree, and branches need one", p.Name())
	}
	if err != nil {
		return nil, err
	}
	b := &Base{opt: opt, project: p, repo: repo}
	if b.prefix, err = repo.Path(p.Name()); err != nil {
		return nil, err
	}
	if b.head, err = repo.Revision("HEAD"); err != nil {
		return nil, err
	}
	if err := b.clean(ctx); err != nil {
		return nil, err
	}
	if b.author, err = repo.Author(ctx, p.Getenv); err != nil {
		return nil, err
	}
	b.Environment, err = b.environment()
	return b, err
}

// render renders an upgrade.
func (b *Base) render(ctx context.Context, upgrade project.Upgrade) (*proposal, error) {
	changes, err := b.files(ctx, upgrade.Lock)
	return &proposal{Base: b, upgrade: upgrade, changes: changes}, err
}

// commit makes the branch, and returns the name of the commit. It bears the time of HEAD, so that the same
// upgrade of the same HEAD is the same commit.
func (b *proposal) commit(ctx context.Context, branch string) (hash string, err error) {
	return b.repo.Branch(ctx, branch, b.head, gitrepo.Commit{
		Message: b.message(), Changes: b.changes, Author: b.author, When: b.head.Time(), Force: b.opt.Force,
	})
}

func (b *Base) inRepo(name string) string { return path.Join(b.prefix, name) }

// Clean refuses a work tree in which something that the lock of a workspace depends
// on is not as head has it; prefix is where the workspace lies in the repository.
func Clean(ctx context.Context, p *project.Project, repo *gitrepo.Repo, head *gitrepo.Revision, prefix string) error {
	return (&Base{project: p, repo: repo, head: head, prefix: prefix}).clean(ctx)
}

// clean refuses a work tree in which something that the lock depends on is not
// committed: the branch would hold a lock that does not answer it. A sparse work
// tree may leave out rendered files, and nothing else of that.
func (b *Base) clean(ctx context.Context) error {
	output := b.inRepo(b.project.Settings.Output)
	watched := []string{b.inRepo(workspace.FileName), b.inRepo(project.LockFile), output, b.inRepo(b.project.OverlaysDir())}
	for _, name := range b.project.Settings.Extended {
		watched = append(watched, b.inRepo(name))
	}
	for _, d := range b.project.Settings.Declarations {
		watched = append(watched, b.inRepo(d.Path))
	}
	differ, absent, err := b.repo.Unclean(ctx, watched)
	if err != nil {
		return err
	}
	differ = append(differ, slices.DeleteFunc(absent, func(name string) bool { return strings.HasPrefix(name, output+"/") })...)
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	differ = slices.Compact(differ)
	return fmt.Errorf("not as committed: %s: commit or undo that first", strings.Join(differ[:min(len(differ), 5)], ", "))
}

// files returns the files that make of HEAD what lock asks for.
func (b *Base) files(ctx context.Context, lock *lockfile.File) ([]gitrepo.Change, error) {
	res, err := b.project.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	have := filetree.New()
	output := b.inRepo(b.project.Settings.Output)
	entries, err := b.head.List(output)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := b.head.ReadEntry(e)
		if err != nil {
			return nil, err
		}
		if err := have.Add(strings.TrimPrefix(e.Path, output+"/"), data); err != nil {
			return nil, err
		}
	}
	want, err := filetree.Settle(have, res.Tree)
	if err != nil {
		return nil, b.project.TreeError(fmt.Errorf("%s: %w", b.project.Settings.Output, err))
	}
	changes := []gitrepo.Change{{Path: b.inRepo(project.LockFile), Data: lockfile.Format(lock)}}
	for name, data := range want.All() {
		if old, ok := have.Get(name); !ok || !bytes.Equal(old, data) {
			changes = append(changes, gitrepo.Change{Path: path.Join(output, name), Data: data})
		}
	}
	for name := range have.All() {
		if _, ok := want.Get(name); !ok {
			changes = append(changes, gitrepo.Change{Path: path.Join(output, name), Removed: true})
		}
	}
	return changes, nil
}

// body returns the text for a pull request: the environment, what moved and why,
// where that was released, then what the step from before, which may be nil, to
// the new lock on the branch changes.
func (b *proposal) body(ctx context.Context, branch string, before *lockfile.File, now time.Time) ([]byte, error) {
	names := [2]string{cmp.Or(b.repo.HeadBranch(), "HEAD"), branch}
	c, err := state.Moved(b.project, state.Lock, names, before, b.upgrade.Lock)
	if err != nil {
		return nil, err
	}
	c.Scans, c.Reading = b.opt.Scans, true
	report, err := c.Report(ctx, now)
	if err != nil {
		return nil, err
	}
	for i := range report.Reading { // the others stand in the preface
		r := &report.Reading[i]
		r.Links = slices.DeleteFunc(r.Links, func(l diff.ReadingLink) bool { return l.What != "link" })
	}
	report.Reading = slices.DeleteFunc(report.Reading, func(r diff.Reading) bool { return len(r.Links)+len(r.Texts) == 0 })
	text := diff.Markdown(report)
	head, err := b.preface(ctx, before)
	if err != nil {
		return nil, err
	}
	marker, rest, _ := bytes.Cut(text, []byte("\n"))
	whole := slices.Concat(marker, []byte("\n"+head+"\n"), rest)
	if len(whole) >= diff.MaxComment {
		return text, nil
	}
	return whole, nil
}

// preface returns what stands before the report.
func (b *proposal) preface(ctx context.Context, before *lockfile.File) (string, error) {
	links, err := b.links(ctx, before)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if b.Environment != "" {
		fmt.Fprintf(&text, "Environment: %s\n\n", inert.Code(b.Environment))
	}
	for _, c := range b.upgrade.Changes {
		text.WriteString("- " + inert.Markdown(c.String()))
		if list := links[c.Operator]; len(list) > 0 {
			text.WriteString(": " + strings.Join(list, ", "))
		}
		text.WriteString("\n")
	}
	if len(b.upgrade.Seen) > 0 {
		text.WriteString("\nWhat was seen of it:\n\n")
	}
	for _, line := range b.upgrade.Seen {
		text.WriteString("- " + inert.Markdown(line) + "\n")
	}
	if len(b.upgrade.Bonds) > 0 {
		text.WriteString("\nWhat moves together, and why:\n\n")
	}
	const longest = 400
	for _, bond := range b.upgrade.Bonds {
		fmt.Fprintf(&text, "- %s does not move without %s", inert.Markdown(bond.Operator), inert.Markdown(bond.With))
		if bond.Why != "" {
			text.WriteString(": " + inert.Markdown(inert.Cut(bond.Why, longest)))
		}
		text.WriteString("\n")
	}
	return text.String(), nil
}

// title returns a line for a pull request and for its commit: what moves to where,
// and in which environment.
func (b *proposal) title() string {
	title := b.subject()
	if b.Environment != "" {
		title += " in " + b.Environment
	}
	return inert.Commit(title)
}

// subject returns what moves. What of an operator changes otherwise is told where
// nothing moves.
func (b *proposal) subject() string {
	var moved, changed []project.Change
	for _, c := range b.upgrade.Changes {
		switch {
		case c.Operator == "":
		case c.Change == lockfile.Changed:
			changed = append(changed, c)
		default:
			moved = append(moved, c)
		}
	}
	if len(moved) == 0 {
		moved = changed
	}
	if len(moved) == 0 && len(b.upgrade.Changes) > 0 {
		return "Update declared Namespaces"
	}
	if len(moved) == 0 {
		return fmt.Sprintf("Migrate %s to schema %d", project.LockFile, lockfile.Schema)
	}
	if len(b.upgrade.Operators) == 0 && len(moved) > 1 {
		return fmt.Sprintf("Update %s", diag.Count(len(moved), "operator"))
	}
	first := moved[0]
	if i := slices.IndexFunc(moved, func(c project.Change) bool { return slices.Index(b.upgrade.Operators, c.Operator) == 0 }); i > 0 {
		first = moved[i]
	}
	subject := "Update " + first.Operator
	if first.From != "" && first.To != "" && first.From != first.To {
		subject += fmt.Sprintf(" from %s to %s", first.From, first.To)
	}
	if others := len(moved) - 1; others > 0 {
		subject += fmt.Sprintf(" and %s with it", diag.Count(others, "operator"))
	}
	return subject
}

// message returns the message of a commit: what moved in the first line, and
// why below.
func (b *proposal) message() string {
	var text strings.Builder
	text.WriteString(b.title() + "\n\n")
	for _, c := range b.upgrade.Changes {
		text.WriteString(c.Sign() + " " + inert.Commit(c.String()) + "\n")
	}
	return text.String()
}
