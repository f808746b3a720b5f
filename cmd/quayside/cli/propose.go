package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/workspace"
)

// proposal is a branch with one commit, for a pull request.
type proposal struct {
	branch string
	commit bool
	push   string
	body   string
	force  bool
}

func (p *proposal) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.branch, "branch", "", "with --commit, put the lock and the rendered tree on a new branch `NAME`; the work tree stays as it is")
	f.BoolVar(&p.commit, "commit", false, "with --branch, commit what moved, with a message that says why")
	f.StringVar(&p.push, "push", "", "push the branch to `REMOTE`, a name or a URL; GIT_TOKEN holds the password for https")
	f.StringVar(&p.body, "pr-body", "", "write the text for the pull request to `FILE`")
	f.BoolVar(&p.force, "force", false, "with --branch, replace a branch that is there")
}

// check refuses flags that do not belong together.
func (p *proposal) check(cmd *cobra.Command) error {
	switch {
	case p.commit != (p.branch != ""):
		return usagef(cmd, "--branch NAME and --commit go together")
	case p.branch == "" && (p.push != "" || p.body != "" || p.force):
		return usagef(cmd, "--push, --pr-body and --force need --branch NAME --commit")
	default:
		return nil
	}
}

// proposed is what one run committed.
type proposed struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Pushed string `json:"pushed,omitempty"`
}

// propose commits lock, and what it renders to, on a branch of its own. It
// returns nil where nothing moved.
func (o *resolveOptions) propose(ctx context.Context, s *space, prev, lock *lockfile.File, r *resolveReport) (*proposed, error) {
	if len(r.Changes) == 0 {
		return nil, nil
	}
	c := &compared{diffOptions: &diffOptions{app: o.app, offline: o.offline, rendered: format{value: "lock"}}, pool: newPool()}
	defer c.close()
	if err := c.locate(s); err != nil {
		return nil, err
	}
	if c.repo == nil || c.repo.Root() == "" {
		return nil, fmt.Errorf("%s is in no Git work tree: --branch needs one", s.dir)
	}
	head, err := c.repo.Revision("HEAD")
	if err != nil {
		return nil, err
	}
	if err := c.clean(s, head); err != nil {
		return nil, err
	}
	author, err := c.repo.Author(func(key string) string { return o.env[key] })
	if err != nil {
		return nil, err
	}
	changes, err := c.changes(ctx, s, head, lock)
	if err != nil {
		return nil, err
	}
	if o.proposal.body != "" {
		text, err := c.body(ctx, s, prev, lock, r)
		if err != nil {
			return nil, err
		}
		if _, err := writeFile(o.proposal.body, text); err != nil {
			return nil, err
		}
	}
	made, err := c.repo.Branch(o.proposal.branch, head, gitrepo.Commit{
		Message: r.message(), Changes: changes, Author: author, When: time.Now(), Force: o.proposal.force,
	})
	if err != nil {
		return nil, err
	}
	out := &proposed{Branch: o.proposal.branch, Commit: made.Hash()}
	o.talk.note("committed %s to branch %s", short("sha256:" + made.Hash())[len("sha256:"):], out.Branch)
	if o.proposal.push == "" {
		return out, nil
	}
	if err := c.repo.Push(ctx, o.proposal.push, out.Branch, o.env["GIT_TOKEN"], o.proposal.force); err != nil {
		return nil, err
	}
	out.Pushed = o.proposal.push
	o.talk.note("pushed %s", out.Branch)
	return out, nil
}

// clean refuses a work tree in which something that the lock depends on is not
// committed: the branch would hold a lock that does not answer it.
func (c *compared) clean(s *space, head *gitrepo.Revision) error {
	entries, err := head.List(c.prefix)
	if err != nil {
		return err
	}
	watched := append([]string{workspace.FileName, lockFile, s.ws.Output}, s.ws.Declarations...)
	inside := func(name string) bool {
		return slices.ContainsFunc(watched, func(w string) bool {
			full := c.inRepo(w)
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
		err := fs.WalkDir(os.DirFS(s.dir), path.Clean(w), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := readFile(s.path(name))
			if err != nil {
				return err
			}
			if full := c.inRepo(name); committed[full] != gitrepo.HashOf(data) {
				differ = append(differ, full)
			} else {
				delete(committed, full)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for name := range committed {
		differ = append(differ, name)
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	differ = slices.Compact(differ)
	return fmt.Errorf("not as committed: %s: commit or undo that first", strings.Join(differ[:min(len(differ), 5)], ", "))
}

// changes returns the files that make of head what lock asks for.
func (c *compared) changes(ctx context.Context, s *space, head *gitrepo.Revision, lock *lockfile.File) ([]gitrepo.Change, error) {
	res, err := s.renderQuietly(ctx, lock, c.offline)
	if err != nil {
		return nil, err
	}
	have := filetree.New()
	output := c.inRepo(s.ws.Output)
	entries, err := head.List(output)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := c.pool.read(head, e)
		if err != nil {
			return nil, err
		}
		if err := have.Add(strings.TrimPrefix(e.Path, output+"/"), data); err != nil {
			return nil, err
		}
	}
	want, err := filetree.Settle(have, res.Tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ws.Output, err)
	}
	changes := []gitrepo.Change{{Path: c.inRepo(lockFile), Data: lockfile.Format(lock)}}
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

// body returns the text for a pull request: what moved and why, then the
// report.
func (c *compared) body(ctx context.Context, s *space, prev, lock *lockfile.File, r *resolveReport) ([]byte, error) {
	own, err := c.diskOwn(s)
	if err != nil {
		return nil, err
	}
	if prev == nil {
		prev = lockfile.New(nil, nil)
	}
	c.before = side{name: "HEAD", space: s, lock: prev, own: own}
	c.after = side{name: "upgrade", space: s, lock: lock, own: own}
	report, err := c.report(ctx)
	if err != nil {
		return nil, err
	}
	text := diff.Markdown(report)
	var moves strings.Builder
	for _, ch := range r.Changes {
		moves.WriteString("- " + strings.NewReplacer("<", "&lt;", "@", "@\u200b").Replace(ch.line()) + "\n")
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
func (r *resolveReport) message() string {
	var moved []pinChange
	for _, c := range r.Changes {
		if c.Operator != "" {
			moved = append(moved, c)
		}
	}
	subject := fmt.Sprintf("Update %s", count(len(moved), "operator"))
	switch {
	case len(moved) == 0:
		subject = "Update catalogs"
	case len(moved) == 1 && moved[0].From != "" && moved[0].To != "" && moved[0].From != moved[0].To:
		subject = fmt.Sprintf("Update %s from %s to %s", moved[0].Operator, moved[0].From, moved[0].To)
	case len(moved) == 1:
		subject = fmt.Sprintf("Update %s", moved[0].Operator)
	}
	var b strings.Builder
	b.WriteString(subject + "\n\n")
	for _, c := range r.Changes {
		b.WriteString(c.sign() + " " + c.line() + "\n")
	}
	return b.String()
}
