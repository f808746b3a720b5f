// Package state makes the two sides of a diff: what a revision of a repository
// holds, the work tree, a lock, a directory of manifests, or what an upgrade
// would bring.
//
// A side has a tree: the committed one where it is what the side's lock says,
// else the lock, rendered from the files of that side. Nothing is written, and
// nothing is taken out of a repository to be read. What two states differ in is
// for package diff to say.
//
// Start from [Open] and [Comparison.Report].
package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/workspace"
)

// From says where the tree of a side comes from.
type From string

// Where the tree of a side comes from.
const (
	Auto From = "auto" // as it is committed where that is what the lock says, else from the lock
	Tree From = "tree" // as it is committed
	Lock From = "lock" // from the lock
)

// Side is one of the two states that are compared.
type Side struct {
	Name    string            // "work tree", "main"
	project *project.Project  // its settings, and what its lock is rendered from
	rev     *gitrepo.Revision // nil where it is on disk
	lock    *lockfile.File    // nil where there is none
	tree    []diff.File       // the base of its tree
	own     []diff.File       // what else lies in the repository
	read    bool              // the tree is what there is: nothing can be rendered

	as, out  string                            // what stands before the paths of its files where they are shown; its tree below that
	have     map[string][]byte                 // the files of its tree as they lie there, by path
	below    func(name string) ([]byte, error) // any file, likewise
	at       func(name string) ([]byte, error) // any file, as it is compared
	link     func(name string) (string, bool)  // where a symbolic link among them leads
	clusters []string                          // that the tree is for, sorted
	layout   *layout.Tree                      // where what they get lies
	shares   map[string]share                  // by prefix and version
	files    *overlay.Files                    // what overlays are made of
}

// holds sets the tree of a side; read reads any file beside which it lies, too. The
// error is that of a list of clusters that cannot be read.
func (s *Side) holds(files []diff.File, read func(name string) ([]byte, error)) error {
	s.tree, s.files, s.clusters, s.at = diff.Base(path.Join(s.as, s.out), files), overlay.New(read, s.link), nil, read
	data := map[string][]byte{}
	for _, f := range files {
		if rest, inside := strings.CutPrefix(f.Path, path.Join(s.as, s.out)+"/"); inside || path.Join(s.as, s.out) == "." {
			data[cmp.Or(rest, f.Path)] = f.Data
		}
	}
	var err error
	s.layout, err = layout.Read(maps.Keys(data), func(name string) ([]byte, bool) { text, there := data[name]; return text, there })
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(s.as, s.out), err)
	}
	for _, c := range s.layout.Clusters {
		s.clusters = append(s.clusters, c.Name)
	}
	s.shares = map[string]share{}
	return nil
}

// beside sets where the tree of a side lies, and among which files.
func (s *Side) beside(c *Comparison, out string, files fs.FS) {
	s.out, s.below, s.link = out, c.onDisk(files), linksOnDisk(files, out)
}

// lies sets the tree of a side to files that lie beside what below reads.
func (s *Side) lies(files []diff.File) error {
	s.have = map[string][]byte{}
	for _, f := range files {
		name := f.Path
		if s.as != "" {
			name = strings.TrimPrefix(name, strings.TrimSuffix(s.as, "/")+"/")
		}
		s.have[name] = f.Data
	}
	return s.holds(files, func(name string) ([]byte, error) {
		if data, ok := s.have[name]; ok {
			return data, nil
		}
		return s.below(name)
	})
}

// named returns err with the side that it is about.
func (s *Side) named(err error) error {
	if err == nil || s.rev == nil {
		return err
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

// Comparison is two sides, and what they have in common.
type Comparison struct {
	Before, After Side
	Scans         *scan.Results       // what scanners found in images; nil: nobody asks
	ImageSizes    bool                // whether to ask registries how large images are that come and go
	Reading       bool                // whether to tell what there is to read, for which the bundles of what moves are read
	Stored        map[string][]string // what clusters store, as diff.Options has it; nil: not known

	project *project.Project
	from    From
	repo    *gitrepo.Repo // nil where there is none
	prefix  string        // of the workspace in the repository: "."
	root    string        // of the repository on disk, else of the workspace
	files   fs.FS         // below root
	pool    pool
	built   map[[32]byte][][]byte // what kustomize built, by the digests of overlays
	notes   []string
}

// newComparison returns a comparison without sides. Outside of a repository,
// paths are relative to the workspace.
func newComparison(p *project.Project, from From) (*Comparison, error) {
	c := &Comparison{project: p, from: from, prefix: ".", root: p.Name(), files: p.FS(), pool: pool{}, built: map[[32]byte][][]byte{}}
	if !p.OnDisk() {
		return c, nil
	}
	repo, err := gitrepo.Open(p.Name())
	if errors.Is(err, gitrepo.ErrNone) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.repo = repo
	if repo.Root() != "" {
		c.root, c.files = repo.Root(), os.DirFS(repo.Root())
	}
	c.prefix, err = repo.Path(p.Name())
	return c, err
}

// InRepo returns a path of the workspace as seen from the repository.
func (c *Comparison) InRepo(name string) string { return path.Join(c.prefix, name) }

// Remote returns the address of a remote of the repository, as Git has it.
func (c *Comparison) Remote(name string) (string, error) {
	if c.repo == nil {
		return "", gitrepo.ErrNone
	}
	return c.repo.Address(name)
}

// Revisions compares what a user calls two revisions of the repository: "A..B",
// "A...B" for the merge base of both and B, or "A" and the work tree, "" being
// the merge base with the branch that work is merged into, which is base or the
// default one.
func Revisions(p *project.Project, from From, base, revisions string) (*Comparison, error) {
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	if c.repo == nil {
		return nil, fmt.Errorf("%s is in no Git repository: compare with --upgrade, --locks or --trees", p.Name())
	}
	before, after, err := c.chosen(base, revisions)
	if err != nil {
		return nil, err
	}
	if after != nil {
		c.After, err = c.revision(after)
	} else {
		c.After, err = c.workTree()
	}
	if err != nil {
		return nil, err
	}
	if c.Before, err = c.revision(before); err != nil {
		return nil, err
	}
	return c, c.empty()
}

// empty returns an error where neither side holds a workspace: nothing can
// differ there, whatever is committed, and a check that says so is green for ever.
func (c *Comparison) empty() error {
	for _, s := range []Side{c.Before, c.After} {
		if s.lock != nil || len(s.tree) > 0 || s.project.Configured() {
			return nil
		}
	}
	return cmp.Or(c.After.project.Absent(), fmt.Errorf("no workspace in %s: neither %s nor %s, before or after", c.project.Name(), workspace.FileName, project.LockFile))
}

// chosen returns the revisions that are meant; after is nil for the work tree.
func (c *Comparison) chosen(base, revisions string) (before, after *gitrepo.Revision, err error) {
	a, b, two := strings.Cut(revisions, "..")
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
	case revisions == "":
		before, err = c.defaultBase(base)
	default:
		before, err = c.repo.Revision(a)
	}
	return before, after, err
}

// defaultBase returns the merge base of HEAD and the branch that work is
// merged into.
func (c *Comparison) defaultBase(base string) (*gitrepo.Revision, error) {
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
func (c *Comparison) mergeBase(a string, b *gitrepo.Revision) (*gitrepo.Revision, error) {
	tip, err := c.repo.Revision(a)
	if err != nil {
		return nil, err
	}
	fork, err := c.repo.MergeBase(tip, b)
	if errors.Is(err, gitrepo.ErrNoBase) && c.repo.Shallow() {
		c.project.Talk.Warn(c.project.Waive([]diag.Warning{{
			Code: "shallow-clone", Msg: fmt.Sprintf("the clone is shallow and does not hold the merge base of %s and %s: comparing with the tip of %s", a, b.Name(), a),
		}}))
		return tip, nil
	}
	return fork, err
}

// workTree returns what lies on disk.
func (c *Comparison) workTree() (Side, error) {
	s := Side{Name: "work tree", project: c.project}
	lock, err := c.project.LockIfAny()
	if err != nil {
		return s, err
	}
	s.lock = c.placed(lock)
	s.beside(c, c.InRepo(c.project.Settings.Output), c.files)
	if err := c.manifests(c.files, &s); err != nil {
		return s, err
	}
	s.own, err = c.ownFiles()
	return s, err
}

// revision returns what a commit holds.
func (c *Comparison) revision(rev *gitrepo.Revision) (Side, error) {
	s := Side{Name: rev.Name(), rev: rev}
	p, err := project.Open(project.Revision(rev, c.prefix), c.project.Env)
	if err != nil {
		return s, err
	}
	s.project = p
	lock, err := p.LockIfAny()
	if err != nil {
		return s, err
	}
	s.lock = c.placed(lock)
	s.out = c.InRepo(p.Settings.Output)
	return s, c.committed(&s)
}

// placed returns a lock whose pins point at the committed one.
func (c *Comparison) placed(lock *lockfile.File) *lockfile.File {
	if lock == nil {
		return nil
	}
	out := *lock
	out.Pins = slices.Clone(lock.Pins)
	for i := range out.Pins {
		out.Pins[i].Pos.File = c.InRepo(project.LockFile)
	}
	out.Leaving = slices.Clone(lock.Leaving)
	for i := range out.Leaving {
		out.Leaving[i].Pos.File = c.InRepo(project.LockFile)
	}
	return &out
}

// Trees compares two directories of manifests.
func Trees(p *project.Project, before, after string) (*Comparison, error) {
	c := &Comparison{project: p, pool: pool{}, built: map[[32]byte][][]byte{}}
	for _, side := range []struct {
		name string
		to   *Side
	}{{before, &c.Before}, {after, &c.After}} {
		var err error
		if *side.to, err = c.directory(side.name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// directory returns what a directory of manifests holds.
func (c *Comparison) directory(name string) (Side, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", name)
	}
	if err != nil {
		return Side{}, err
	}
	s := Side{Name: name, project: c.project, read: true, as: path.Clean(filepath.ToSlash(name))}
	root, out, err := treeRoot(name)
	if err != nil {
		return Side{}, err
	}
	if out != "." {
		s.as = path.Join(s.as, "..")
	}
	s.beside(c, out, os.DirFS(root))
	return s, c.manifests(os.DirFS(root), &s)
}

// treeRoot returns the directory that the files of a directory of manifests are read
// below, and where it lies there: beside the overlays that a rendered tree takes in.
func treeRoot(name string) (root, out string, err error) {
	if _, err := os.Stat(filepath.Join(name, layout.ClustersFile)); err != nil {
		return name, ".", nil
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", "", err
	}
	if info, err := os.Lstat(full); err != nil || info.Mode().Type() == fs.ModeSymlink || filepath.Dir(full) == full {
		return name, ".", nil //nolint:nilerr // what is read below it has the error
	}
	return filepath.Dir(full), filepath.Base(full), nil
}

// artifacts compares two sides of which at least one is an artifact ("oci://…"):
// with another, with a revision of the repository, with a directory of manifests
// where trees says so, or with the work tree, which is "". What each holds is what
// is compared, whatever a lock says.
func artifacts(ctx context.Context, p *project.Project, before, after string, trees bool) (*Comparison, error) {
	c, err := newComparison(p, Tree)
	if err != nil {
		return nil, err
	}
	own, err := c.ownFiles()
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		name string
		to   *Side
	}{{before, &c.Before}, {after, &c.After}} {
		if *side.to, err = c.called(ctx, side.name, trees); err != nil {
			return nil, err
		}
		side.to.project, side.to.read, side.to.lock, side.to.own = p, true, nil, own
	}
	return c, nil
}

// IsArtifact reports whether a side is called as an artifact is.
func IsArtifact(name string) bool { return strings.HasPrefix(name, "oci:") }

// called returns the side that a name stands for, as [artifacts] says.
func (c *Comparison) called(ctx context.Context, name string, trees bool) (Side, error) {
	switch {
	case IsArtifact(name):
		return c.artifact(ctx, name)
	case trees:
		return c.directory(name)
	case c.repo == nil:
		return Side{}, fmt.Errorf("%s is in no Git repository: compare with another artifact, or with a directory by --trees", c.project.Name())
	case name == "":
		return c.workTree()
	}
	rev, err := c.repo.Revision(name)
	if err != nil {
		return Side{}, err
	}
	return c.revision(rev)
}

// artifact returns what an artifact holds.
func (c *Comparison) artifact(ctx context.Context, ref string) (Side, error) {
	a, err := c.project.Artifact(ctx, ref)
	if err != nil {
		return Side{}, err
	}
	s := Side{Name: a.Name}
	s.out, _ = a.Tree()
	s.below = func(name string) ([]byte, error) {
		if data, ok := a.Files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}
	var files []diff.File
	for name, data := range a.Files.All() {
		if manifest(name) && (s.out == "." || strings.HasPrefix(name, s.out+"/")) {
			files = append(files, diff.File{Path: name, Data: c.pool.add(data)})
		}
	}
	return s, s.lies(files)
}

// locks compares two locks, both rendered with the settings of the workspace.
func locks(p *project.Project, from From, before, after string) (*Comparison, error) {
	var locks [2]*lockfile.File
	for i, name := range []string{before, after} {
		file, err := source.Below("")(name)
		if err != nil {
			return nil, err
		}
		data, err := project.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if locks[i], err = lockfile.Parse(filepath.ToSlash(name), data); err != nil {
			return nil, err
		}
	}
	return compare(p, from, Side{Name: before, lock: locks[0]}, Side{Name: after, lock: locks[1]})
}

// compare compares two locks of a workspace.
func compare(p *project.Project, from From, before, after Side) (*Comparison, error) {
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	own, err := c.ownFiles()
	if err != nil {
		return nil, err
	}
	for _, s := range []*Side{&before, &after} {
		s.project, s.own = p, own
		s.beside(c, c.InRepo(p.Settings.Output), c.files)
	}
	c.Before, c.After = before, after
	return c, nil
}

// upgrade compares the lock with what an upgrade makes of it.
func upgrade(ctx context.Context, p *project.Project, from From, in *project.Inputs) (*Comparison, error) {
	if in.Lock == nil {
		_, err := p.NeedLock()
		return nil, err
	}
	res, err := in.Resolve(ctx)
	if res != nil && res.Failed != nil {
		return nil, res.Failed
	}
	if err != nil {
		return nil, err
	}
	c, err := Moved(p, from, [2]string{project.LockFile, "upgrade"}, in.Lock, res.Lock)
	if err != nil {
		return nil, err
	}
	// Read back as it would be written, the lock knows its lines.
	if c.After.lock, err = lockfile.Parse(project.LockFile, lockfile.Format(res.Lock)); err != nil {
		return nil, err
	}
	c.Before.lock, c.After.lock = c.placed(c.Before.lock), c.placed(c.After.lock)
	return c, nil
}

// Moved compares two locks, the first of which may be nil, by the names that each is
// called.
func Moved(p *project.Project, from From, names [2]string, before, after *lockfile.File) (*Comparison, error) {
	if before == nil {
		before = lockfile.New(nil)
	}
	return compare(p, from, Side{Name: names[0], lock: before}, Side{Name: names[1], lock: after})
}
