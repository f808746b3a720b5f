// Package compare opens the two sides of a diff: a revision of a repository, the work
// tree, a lock, a directory of manifests, an artifact, or the result of an upgrade.
//
// The tree of a side is the committed one if it is up to date with the side's lock, or else
// the lock rendered from the files of that side. Nothing is written, and no revision is
// checked out. Package diff computes the differences.
//
// Start from [Open] and [Comparison.Report].
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/k8s/overlay"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// From is the source of the tree of a side.
type From string

// The sources of a tree.
const (
	Auto From = "auto" // as committed if up to date with the lock, else rendered
	Tree From = "tree" // as committed
	Lock From = "lock" // rendered from the lock
)

// Side is one of the two compared states. It is immutable: rendering its lock returns
// another one.
type Side struct {
	Name    string             // "work tree", "main"
	project *workspace.Project // its settings, and the files to render its lock from
	rev     *gitrepo.Revision  // nil for a side on disk
	lock    *lockfile.File     // nil without a lock
	own     []diff.File        // the user's own manifests in the repository
	read    bool               // there is only a tree; it cannot be rendered
	*tree
}

// wrapName wraps err with the name of the side, if that is a revision.
func (s *Side) wrapName(err error) error {
	if err == nil || s.rev == nil {
		return err
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

// Comparison is a pair of sides with their common options.
type Comparison struct {
	Before, After *Side
	Scans         *scan.Results       // scan results of images; nil: not compared
	ImageSizes    bool                // whether to look up the sizes of added and removed images
	Reading       bool                // whether to list reading material, from the bundles of changed operators
	Stored        map[string][]string // stored versions in clusters, as in diff.Options; nil: unknown

	project *workspace.Project
	target  *workspace.Project // at the tip of the branch that changes are merged into; nil if there is none
	clone   *workspace.Clone   // without a repository if there is none, and for two directories
	from    From
	root    string // of the repository on disk, or else of the workspace
	files   fs.FS  // below root
	pool    pool
	built   map[[32]byte][][]byte // results of kustomize builds, by overlay digest
	notes   []string
}

// newComparison returns a comparison without sides. Without a repository, paths are
// relative to the workspace.
func newComparison(p *workspace.Project, from From) (*Comparison, error) {
	clone, err := p.Clone()
	if err != nil && !errors.Is(err, gitrepo.ErrNone) {
		return nil, err
	}
	c := &Comparison{project: p, clone: clone, from: from, root: p.Name(), files: p.FS(), pool: pool{}, built: map[[32]byte][][]byte{}}
	if clone.Repo != nil && clone.Repo.Root() != "" {
		c.root = clone.Repo.Root()
		c.files = filetree.OpenDir(c.root, "directory").FS()
	}
	return c, nil
}

// InRepo returns a path of the workspace relative to the repository.
func (c *Comparison) InRepo(name string) string { return c.clone.Path(name) }

// Remote returns the address of a Git remote.
func (c *Comparison) Remote(name string) (string, error) {
	if c.clone.Repo == nil {
		return "", gitrepo.ErrNone
	}
	return c.clone.Repo.Address(name)
}

// Revisions compares two revisions of the repository: "A..B", "A...B" for the merge base of
// both and B, or "A" and the work tree. For "" it compares the work tree with its merge
// base with base, the branch that changes are merged into, or the default branch.
func Revisions(p *workspace.Project, from From, base, revisions string) (*Comparison, error) {
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	if c.clone.Repo == nil {
		return nil, fmt.Errorf("%s is not in a Git repository: compare with --upgrade, --locks or --trees", p.Location())
	}
	before, after, err := c.selectedRevisions(base, revisions)
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
	return c, c.checkNotEmpty()
}

// checkNotEmpty returns an error if neither side has a workspace. There would never be a
// difference, and a check with a wrong path would always pass.
func (c *Comparison) checkNotEmpty() error {
	if c.Before.exists() || c.After.exists() {
		return nil
	}
	return cmp.Or(c.After.project.SuggestWorkspaces(), fmt.Errorf("no workspace in %s: neither %s nor %s on either side", c.project.Location(), settings.FileName, workspace.LockFile))
}

// exists reports whether the side has a workspace.
func (s *Side) exists() bool {
	return s.lock != nil || len(s.manifests) > 0 || s.project.Configured()
}

// selectedRevisions returns the selected revisions; after is nil for the work tree.
func (c *Comparison) selectedRevisions(base, revisions string) (before, after *gitrepo.Revision, err error) {
	a, b, two := strings.Cut(revisions, "..")
	b, fork := strings.CutPrefix(b, ".")
	if c.clone.Repo.Root() == "" && !two {
		return nil, nil, errors.New("a bare repository has no work tree: give two revisions, such as main..branch")
	}
	if two {
		if after, err = c.revisionNamed(b); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case fork:
		if before, err = c.revisionNamed(a); err == nil {
			before, err = c.mergeBase(before, after)
		}
	case revisions == "":
		before, err = c.defaultBase(base)
	default:
		before, err = c.revisionNamed(a)
	}
	return before, after, err
}

// revisionNamed returns the commit with a name, or the current one for "".
func (c *Comparison) revisionNamed(name string) (*gitrepo.Revision, error) {
	if name == "" {
		return c.clone.Repo.Head()
	}
	return c.clone.Repo.Revision(name)
}

// defaultBase returns the merge base of HEAD and the branch that changes are merged into.
func (c *Comparison) defaultBase(base string) (*gitrepo.Revision, error) {
	head, err := c.clone.Repo.Head()
	if err != nil {
		return nil, err
	}
	var tip *gitrepo.Revision
	if base == "" {
		tip, err = c.clone.Repo.DefaultBranch()
	} else {
		tip, err = c.clone.Repo.Revision(base)
	}
	if err != nil {
		return nil, err
	}
	return c.mergeBase(tip, head)
}

// mergeBase returns the merge base of a branch and b. A shallow clone, as in CI, may not
// have that commit: it then returns the tip of the branch, with a warning.
func (c *Comparison) mergeBase(tip, b *gitrepo.Revision) (*gitrepo.Revision, error) {
	var err error
	if c.target, err = c.clone.At(tip); err != nil {
		return nil, fmt.Errorf("%s: %w", tip.Name(), err)
	}
	fork, err := c.clone.Repo.MergeBase(tip, b)
	if errors.Is(err, gitrepo.ErrNoBase) && c.clone.Repo.Shallow() {
		c.project.Log.Warn(c.project.Waive([]diag.Warning{{
			Code: "shallow-clone", Msg: fmt.Sprintf("the clone is shallow and lacks the merge base of %s and %s: comparing with the tip of %s", tip.Name(), b.Name(), tip.Name()),
		}}))
		return tip, nil
	}
	return fork, err
}

// workTree returns the side on disk.
func (c *Comparison) workTree() (*Side, error) {
	lock, err := c.project.LockIfAny()
	if err != nil {
		return nil, err
	}
	lies, err := readTree("", c.disk())
	if err != nil {
		return nil, err
	}
	own, err := c.ownFiles()
	return &Side{Name: "work tree", project: c.project, lock: c.withRepoPaths(lock), own: own, tree: lies}, err
}

// revision returns the side at a commit.
func (c *Comparison) revision(rev *gitrepo.Revision) (*Side, error) {
	p, err := c.clone.At(rev)
	if err != nil {
		return nil, err
	}
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	lies, own, err := c.readCommit(rev, p)
	return &Side{Name: rev.Name(), project: p, rev: rev, lock: c.withRepoPaths(lock), own: own, tree: lies}, err
}

// withRepoPaths returns a lock with the positions of its pins relative to the repository.
func (c *Comparison) withRepoPaths(lock *lockfile.File) *lockfile.File {
	if lock == nil {
		return nil
	}
	out := *lock
	out.Pins = slices.Clone(lock.Pins)
	for i := range out.Pins {
		out.Pins[i].Pos.File = c.InRepo(workspace.LockFile)
	}
	out.Leaving = slices.Clone(lock.Leaving)
	for i := range out.Leaving {
		out.Leaving[i].Pos.File = c.InRepo(workspace.LockFile)
	}
	return &out
}

// Trees compares two directories of manifests.
func Trees(p *workspace.Project, before, after string) (*Comparison, error) {
	c := &Comparison{project: p, clone: &workspace.Clone{Project: p, Prefix: "."}, pool: pool{}, built: map[[32]byte][][]byte{}}
	for _, side := range []struct {
		name string
		to   **Side
	}{{before, &c.Before}, {after, &c.After}} {
		var err error
		if *side.to, err = c.directory(side.name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// directory returns a directory of manifests as a side.
func (c *Comparison) directory(name string) (*Side, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", name)
	}
	if err != nil {
		return nil, err
	}
	as := path.Clean(filepath.ToSlash(name))
	root, out, err := treeRoot(name)
	if err != nil {
		return nil, err
	}
	if out != "." {
		as = path.Join(as, "..")
	}
	lies, err := readTree(as, disk{fsys: filetree.Named(root).FS(), shown: as, out: out, pool: c.pool})
	return &Side{Name: name, project: c.project, read: true, tree: lies}, err
}

// treeRoot returns the root for reading a directory of manifests, and the directory below
// it. For a rendered tree the root is its parent, which also has the overlays.
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

// compareArtifacts compares two sides, at least one of them an artifact ("oci://…"). The
// other may be an artifact, a revision of the repository, a directory of manifests if
// trees is true, or the work tree for "". It compares the trees, independent of locks.
func compareArtifacts(ctx context.Context, p *workspace.Project, before, after string, trees bool) (*Comparison, error) {
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
		to   **Side
	}{{before, &c.Before}, {after, &c.After}} {
		s, err := c.sideNamed(ctx, side.name, trees)
		if err != nil {
			return nil, err
		}
		*side.to = &Side{Name: s.Name, project: p, rev: s.rev, own: own, read: true, tree: s.tree}
	}
	return c, nil
}

// IsArtifact reports whether name is the reference of an artifact.
func IsArtifact(name string) bool { return strings.HasPrefix(name, "oci:") }

// sideNamed returns the side with a name; see compareArtifacts.
func (c *Comparison) sideNamed(ctx context.Context, name string, trees bool) (*Side, error) {
	switch {
	case IsArtifact(name):
		return c.artifact(ctx, name)
	case trees:
		return c.directory(name)
	case c.clone.Repo == nil:
		return nil, fmt.Errorf("%s is not in a Git repository: compare with another artifact, or with a directory by --trees", c.project.Location())
	case name == "":
		return c.workTree()
	}
	rev, err := c.clone.Repo.Revision(name)
	if err != nil {
		return nil, err
	}
	return c.revision(rev)
}

// artifact returns an artifact as a side.
func (c *Comparison) artifact(ctx context.Context, ref string) (*Side, error) {
	a, err := c.project.Artifact(ctx, ref)
	if err != nil {
		return nil, err
	}
	out, _ := a.Tree()
	var files []diff.File
	for name, data := range a.Files.All() {
		if isManifest(name) && (out == "." || strings.HasPrefix(name, out+"/")) {
			files = append(files, diff.File{Path: name, Data: c.pool.add(data)})
		}
	}
	lies, err := newTree("", out, files, overlay.Plain(func(name string) ([]byte, error) {
		if data, ok := a.Files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}))
	return &Side{Name: a.Name, tree: lies}, err
}

// compareLocks compares two locks, both rendered with the settings of the workspace.
func compareLocks(p *workspace.Project, from From, before, after string) (*Comparison, error) {
	var locks [2]*lockfile.File
	for i, name := range []string{before, after} {
		file, err := source.LookupIn("")(name)
		if err != nil {
			return nil, err
		}
		data, err := workspace.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if locks[i], err = lockfile.Parse(filepath.ToSlash(name), data); err != nil {
			return nil, err
		}
	}
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	return c.locks([2]string{before, after}, locks[0], locks[1])
}

// locks compares two locks of the workspace under the given names.
func (c *Comparison) locks(names [2]string, before, after *lockfile.File) (*Comparison, error) {
	own, err := c.ownFiles()
	if err != nil {
		return nil, err
	}
	around, err := c.unrendered()
	if err != nil {
		return nil, err
	}
	c.Before = &Side{Name: names[0], project: c.project, lock: before, own: own, tree: around}
	c.After = &Side{Name: names[1], project: c.project, lock: after, own: own, tree: around}
	return c, nil
}

// upgrade compares the lock with its upgraded version.
func upgrade(ctx context.Context, p *workspace.Project, from From, in *workspace.Inputs) (*Comparison, error) {
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
	// Parsing the formatted lock sets the line numbers.
	next, err := lockfile.Parse(workspace.LockFile, lockfile.Format(res.Lock))
	if err != nil {
		return nil, err
	}
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	return c.locks([2]string{workspace.LockFile, "upgrade"}, c.withRepoPaths(in.Lock), c.withRepoPaths(next))
}

// Moved compares two locks under the given names; before may be nil.
func Moved(p *workspace.Project, from From, names [2]string, before, after *lockfile.File) (*Comparison, error) {
	if before == nil {
		before = lockfile.New(nil)
	}
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	return c.locks(names, before, after)
}
