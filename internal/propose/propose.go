// Package propose puts an upgrade on a branch of its own, with the text for a
// pull request. The work tree stays as it is.
//
// Start from [New], [Proposal.Body] and [Proposal.Commit].
package propose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// Proposal is a lock, and what it renders to, as one commit on HEAD.
type Proposal struct {
	project *project.Project
	moved   []project.Change
	author  gitrepo.Author
	repo    *gitrepo.Repo
	head    *gitrepo.Revision
	prefix  string // of the workspace in the repository
	changes []gitrepo.Change
}

// New renders lock, of which moved says what is new. A work tree in which
// something that the lock depends on is not committed is refused.
func New(ctx context.Context, p *project.Project, lock *lockfile.File, moved []project.Change) (*Proposal, error) {
	repo, err := gitrepo.Open(p.Name())
	if errors.Is(err, gitrepo.ErrNone) || err == nil && repo.Root() == "" {
		return nil, fmt.Errorf("%s is in no Git work tree: --branch needs one", p.Name())
	}
	if err != nil {
		return nil, err
	}
	repo.Tell = p.Talk.Note
	b := &Proposal{project: p, moved: moved, repo: repo}
	if b.prefix, err = repo.Path(p.Name()); err != nil {
		return nil, err
	}
	if b.head, err = repo.Revision("HEAD"); err != nil {
		return nil, err
	}
	if err := b.clean(ctx); err != nil {
		return nil, err
	}
	if b.author, err = repo.Author(p.Getenv); err != nil {
		return nil, err
	}
	b.changes, err = b.files(ctx, lock)
	return b, err
}

// Commit makes the branch, with force in the place of one that is there, and
// returns the name of the commit. It bears the time of HEAD, so that the same
// upgrade of the same HEAD is the same commit.
func (b *Proposal) Commit(ctx context.Context, branch string, force bool) (hash string, err error) {
	made, err := b.repo.Branch(ctx, branch, b.head, gitrepo.Commit{
		Message: b.message(), Changes: b.changes, Author: b.author, When: b.head.Time(), Force: force,
	})
	if err != nil {
		return "", err
	}
	return made.Hash(), nil
}

// Push pushes the branch to a remote, a name or a URL, and reports whether the
// remote did not hold it yet. token is the password for https.
func (b *Proposal) Push(ctx context.Context, remote, branch, token string, force bool) (moved bool, err error) {
	return b.repo.Push(ctx, remote, branch, token, force)
}

func (b *Proposal) inRepo(name string) string { return path.Join(b.prefix, name) }

// clean refuses a work tree in which something that the lock depends on is not
// committed: the branch would hold a lock that does not answer it.
func (b *Proposal) clean(ctx context.Context) error {
	entries, err := b.head.List(b.prefix)
	if err != nil {
		return err
	}
	watched := append([]string{workspace.FileName, project.LockFile, b.project.Settings.Output}, b.project.Settings.Declarations...)
	inside := func(name string) bool {
		return slices.ContainsFunc(watched, func(w string) bool {
			full := b.inRepo(w)
			return name == full || strings.HasPrefix(name, full+"/")
		})
	}
	committed := map[string]string{}
	for _, e := range entries {
		if inside(e.Path) {
			committed[e.Path] = e.Hash
		}
	}
	var differ []string
	for _, w := range watched {
		err := fs.WalkDir(b.project.FS(), path.Clean(w), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := b.project.Read(name)
			if err != nil {
				return err
			}
			full := b.inRepo(name)
			if committed[full] != gitrepo.HashOf(data) {
				differ = append(differ, full)
			}
			delete(committed, full)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for i, w := range watched {
		watched[i] = b.inRepo(w)
	}
	return b.differ(ctx, watched, differ, slices.Collect(maps.Keys(committed)))
}

// differ is the error that names files in and below watched: those of other
// content than HEAD has, and those that are missing. Git, where it is installed, knows better which content
// is the same, and that a sparse work tree may leave out what is rendered.
func (b *Proposal) differ(ctx context.Context, watched, differ, missing []string) error {
	if len(differ)+len(missing) == 0 {
		return nil
	}
	output := b.inRepo(b.project.Settings.Output) + "/"
	if unclean, known, err := b.repo.Unclean(ctx, watched); err != nil {
		return err
	} else if known {
		missing = slices.DeleteFunc(missing, func(name string) bool { return strings.HasPrefix(name, output) })
		differ = unclean
	}
	differ = append(differ, missing...)
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	differ = slices.Compact(differ)
	return fmt.Errorf("not as committed: %s: commit or undo that first", strings.Join(differ[:min(len(differ), 5)], ", "))
}

// files returns the files that make of HEAD what lock asks for.
func (b *Proposal) files(ctx context.Context, lock *lockfile.File) ([]gitrepo.Change, error) {
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
		return nil, fmt.Errorf("%s: %w", b.project.Settings.Output, err)
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

// Body returns the text for a pull request: what moved and why, then what the
// step from before, which may be nil, to after changes.
func (b *Proposal) Body(ctx context.Context, before, after *lockfile.File, now time.Time) ([]byte, error) {
	c, err := state.Moved(b.project, state.Lock, "HEAD", before, after)
	if err != nil {
		return nil, err
	}
	report, err := c.Report(ctx, now)
	if err != nil {
		return nil, err
	}
	text := diff.Markdown(report)
	var moves strings.Builder
	for _, ch := range b.moved {
		moves.WriteString("- " + inert.Markdown(ch.String()) + "\n")
	}
	marker, rest, _ := bytes.Cut(text, []byte("\n"))
	whole := slices.Concat(marker, []byte("\n"), []byte(moves.String()), []byte("\n"), rest)
	if len(whole) >= diff.MaxComment {
		return text, nil
	}
	return whole, nil
}

// message returns the message of a commit: what moved in the first line, and
// why below.
func (b *Proposal) message() string {
	var moved []project.Change
	for _, c := range b.moved {
		if c.Operator != "" {
			moved = append(moved, c)
		}
	}
	subject := fmt.Sprintf("Update %s", diag.Count(len(moved), "operator"))
	switch {
	case len(moved) == 0:
		subject = "Update catalogs"
	case len(moved) == 1 && moved[0].From != "" && moved[0].To != "" && moved[0].From != moved[0].To:
		subject = fmt.Sprintf("Update %s from %s to %s", moved[0].Operator, moved[0].From, moved[0].To)
	case len(moved) == 1:
		subject = fmt.Sprintf("Update %s", moved[0].Operator)
	}
	var text strings.Builder
	text.WriteString(inert.Commit(subject) + "\n\n")
	for _, c := range b.moved {
		text.WriteString(c.Sign() + " " + inert.Commit(c.String()) + "\n")
	}
	return text.String()
}
