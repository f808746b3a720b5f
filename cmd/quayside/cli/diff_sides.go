package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/workspace"
)

// side is one of the two states that are compared.
type side struct {
	name  string            // "work tree", "main"
	space *space            // its settings, and where its lock is rendered
	rev   *gitrepo.Revision // nil: it is on disk
	lock  *lockfile.File    // nil: there is none
	tree  []diff.File       // the base of its tree
	own   []diff.File       // what else lies in the repository
	read  bool              // the tree is what there is: nothing can be rendered
}

// named returns err with the side that it is about.
func (d *side) named(err error) error {
	if err == nil || d.rev == nil {
		return err
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// compared is a comparison: the two sides, and what they have in common.
type compared struct {
	*diffOptions
	before, after side
	repo          *gitrepo.Repo // nil: in no repository
	prefix        string        // of the workspace in the repository: "."
	pool          *pool
	notes         []string
	temporary     []string // directories to be removed
}

func (c *compared) close() {
	for _, dir := range c.temporary {
		_ = os.RemoveAll(dir)
	}
}

// locate finds the repository around the workspace. In none, paths are
// relative to the workspace.
func (c *compared) locate(s *space) error {
	c.prefix = "."
	repo, err := gitrepo.Open(s.dir)
	if errors.Is(err, gitrepo.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	c.repo = repo
	c.prefix, err = repo.Path(s.dir)
	return err
}

// inRepo returns a path of the workspace as seen from the repository.
func (c *compared) inRepo(name string) string { return path.Join(c.prefix, name) }

// revisions compares revisions of the repository, or one with the work tree.
func (c *compared) revisions(s *space, args []string) error {
	if err := c.locate(s); err != nil {
		return err
	}
	if c.repo == nil {
		return fmt.Errorf("%s is in no Git repository: compare with --upgrade, --locks or --trees", s.dir)
	}
	before, after, err := c.chosen(args)
	if err != nil {
		return err
	}
	if after != nil {
		c.after, err = c.revision(s, after)
	} else {
		c.after, err = c.workTree(s)
	}
	if err != nil {
		return err
	}
	c.before, err = c.revision(s, before)
	return err
}

// chosen returns the revisions that the arguments name; after is nil for the
// work tree.
func (c *compared) chosen(args []string) (before, after *gitrepo.Revision, err error) {
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	a, b, two := strings.Cut(arg, "..")
	b, fork := strings.CutPrefix(b, ".")
	if two && b == "" {
		b = "HEAD"
	}
	if two && a == "" {
		a = "HEAD"
	}
	if c.repo.Root() == "" && !two {
		return nil, nil, errors.New("a bare repository has no work tree: name two revisions, as in main..branch")
	}
	if two {
		if after, err = c.repo.Revision(b); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case fork:
		before, err = c.mergeBase(a, after)
	case arg == "":
		before, err = c.defaultBase()
	default:
		before, err = c.repo.Revision(a)
	}
	return before, after, err
}

// defaultBase returns the merge base of HEAD and the branch that work is
// merged into.
func (c *compared) defaultBase() (*gitrepo.Revision, error) {
	base := c.base
	if base == "" {
		var err error
		if base, err = c.repo.DefaultBranch(); err != nil {
			return nil, err
		}
	}
	head, err := c.repo.Revision("HEAD")
	if err != nil {
		return nil, err
	}
	return c.mergeBase(base, head)
}

// mergeBase returns where b left a. A shallow clone, as in CI, may not hold
// that commit: the tip of a stands in for it then, and that is said.
func (c *compared) mergeBase(a string, b *gitrepo.Revision) (*gitrepo.Revision, error) {
	tip, err := c.repo.Revision(a)
	if err != nil {
		return nil, err
	}
	fork, err := c.repo.MergeBase(tip, b)
	if errors.Is(err, gitrepo.ErrNoBase) && c.repo.Shallow() {
		c.talk.note("%s the clone is shallow and does not hold the merge base of %s and %s: comparing with the tip of %s", c.talk.paint(yellow, "warning:"), a, b.Name(), a)
		return tip, nil
	}
	return fork, err
}

// workTree returns what lies on disk.
func (c *compared) workTree(s *space) (side, error) {
	d := side{name: "work tree", space: s}
	var err error
	if d.lock, err = s.lock(lockFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	c.placed(&d)
	if d.tree, err = c.diskTree(s.path(s.ws.Output), c.inRepo(s.ws.Output)); err != nil {
		return d, err
	}
	d.own, err = c.diskOwn(s)
	return d, err
}

// revision returns what a commit holds.
func (c *compared) revision(s *space, rev *gitrepo.Revision) (side, error) {
	d := side{name: rev.Name(), rev: rev, space: &space{app: s.app, dir: s.dir, ws: workspace.Default()}}
	data, err := rev.Read(c.inRepo(workspace.FileName))
	if err == nil {
		d.space.ws, err = workspace.Parse(rev.Name()+":"+c.inRepo(workspace.FileName), data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	data, err = rev.Read(c.inRepo(lockFile))
	if err == nil {
		d.lock, err = lockfile.Parse(rev.Name()+":"+c.inRepo(lockFile), data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	c.placed(&d)
	d.tree, d.own, err = c.revisionFiles(rev, c.inRepo(d.space.ws.Output))
	return d, err
}

// placed has the pins point at the committed lock.
func (c *compared) placed(d *side) {
	if d.lock == nil {
		return
	}
	for i := range d.lock.Pins {
		d.lock.Pins[i].Pos.File = c.inRepo(lockFile)
	}
}

// twoTrees compares two directories of manifests.
func (c *compared) twoTrees(s *space, args []string) error {
	for i, d := range []*side{&c.before, &c.after} {
		info, err := os.Stat(args[i])
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", args[i])
		}
		if err != nil {
			return err
		}
		*d = side{name: args[i], space: s, read: true}
		if d.tree, err = c.diskTree(args[i], path.Clean(filepath.ToSlash(args[i]))); err != nil {
			return err
		}
	}
	return nil
}

// twoLocks compares two locks, both rendered with the workspace's settings.
func (c *compared) twoLocks(s *space, args []string) error {
	if err := c.locate(s); err != nil {
		return err
	}
	own, err := c.diskOwn(s)
	if err != nil {
		return err
	}
	for i, d := range []*side{&c.before, &c.after} {
		*d = side{name: args[i], space: s, own: own}
		data, err := readFile(args[i])
		if err != nil {
			return err
		}
		if d.lock, err = lockfile.Parse(filepath.ToSlash(args[i]), data); err != nil {
			return err
		}
	}
	return nil
}

// upgraded compares the lock with what an upgrade makes of it.
func (c *compared) upgraded(ctx context.Context, s *space, hops int) error {
	if err := c.locate(s); err != nil {
		return err
	}
	opt := s.resolveOptions()
	opt.Upgrade, opt.Named, opt.Hops = c.upgrade.all, c.upgrade.named, hops
	in, err := s.inputs(ctx, opt, true, c.offline)
	if err != nil {
		return err
	}
	if in.prev == nil {
		return fmt.Errorf("no %s in %s: run 'quayside resolve' first", lockFile, s.dir)
	}
	res, err := resolve.Resolve(in.index, in.set, in.prev, opt)
	if res == nil {
		return err
	}
	if err := in.blame(conflictsOf(res)); err != nil {
		return err
	}
	lock, err := s.complete(ctx, res.Lock, in.prev, c.offline)
	if err != nil {
		return err
	}
	// Read back as it would be written, the lock knows its lines.
	if lock, err = lockfile.Parse(lockFile, lockfile.Format(lock)); err != nil {
		return err
	}
	own, err := c.diskOwn(s)
	if err != nil {
		return err
	}
	c.before = side{name: lockFile, space: s, lock: in.prev, own: own}
	c.after = side{name: "upgrade", space: s, lock: lock, own: own}
	c.placed(&c.before)
	c.placed(&c.after)
	return nil
}

// isTree reports whether a directory was written by quayside.
func isTree(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filetree.Index))
	return err == nil
}
