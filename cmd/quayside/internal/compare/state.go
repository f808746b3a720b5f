// Package compare opens the two sides of a diff, the old side and the new side. A side is a Git revision, the
// work tree, a lock, a directory of manifests, an artifact, or the result of an upgrade.
//
// The tree of a side is its committed tree if the tree is up to date with the lock; otherwise compare renders
// the lock. Package compare writes nothing and does not check out revisions. Package diff computes the differences.
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
	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// TreeSource selects between the committed tree of a side and its rendered lock.
type TreeSource string

// The sources of a tree.
const (
	Auto TreeSource = "auto" // the committed tree if it is up to date with the lock, otherwise the rendered lock
	Tree TreeSource = "tree" // the committed tree
	Lock TreeSource = "lock" // the rendered lock
)

// Side is one of the two compared states. A Side is immutable: rendering its lock returns a new Side.
type Side struct {
	fleet.Fleet                      // Name is, for example, "work tree" or "main"
	project       *workspace.Project // inputs for rendering the lock
	rev           *gitrepo.Revision  // nil unless the side is a revision
	userManifests []diff.File        // the user's own manifests in the repository
	treeOnly      bool               // whether the tree is used as it is, because the side has no lock to render
}

// wrapName returns err with the name of the side as a prefix. If the side is not a revision, it returns err itself.
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
	Reading       bool                // whether to list changelogs and links of changed operators
	Stored        map[string][]string // stored versions in clusters, as in diff.CompareOptions; nil: unknown

	project *workspace.Project
	target  *workspace.Project // workspace at the tip of the target branch; nil if the sides were not chosen by a merge base
	clone   *workspace.Clone   // clone.Repo is nil outside of Git, and for two directories
	from    TreeSource
	disk    fleet.Disk // files of the repository or, without one, of the workspace
	notes   []string   // notes for the report

	messages []Message
}

// newComparison returns a comparison without sides. If there is no repository, paths are relative to the
// workspace.
func newComparison(p *workspace.Project, from TreeSource) (*Comparison, error) {
	clone, err := p.Clone()
	if err != nil && !errors.Is(err, gitrepo.ErrNone) {
		return nil, err
	}
	disk, err := p.Disk()
	return &Comparison{project: p, clone: clone, from: from, disk: disk}, err
}

// Message is a note or a list of warnings for the user about opening and rendering the sides.
type Message struct {
	Note     string
	Warnings []diag.Warning
}

// TakeMessages returns the messages that were added since its last call.
func (c *Comparison) TakeMessages() []Message {
	out := c.messages
	c.messages = nil
	return out
}

func (c *Comparison) note(format string, args ...any) {
	c.messages = append(c.messages, Message{Note: fmt.Sprintf(format, args...)})
}

// InRepo converts a path in the workspace to a path in the repository.
func (c *Comparison) InRepo(name string) string { return c.clone.Path(name) }

// Remote returns the address of a Git remote.
func (c *Comparison) Remote(name string) (string, error) {
	if c.clone.Repo == nil {
		return "", gitrepo.ErrNone
	}
	return c.clone.Repo.Address(name)
}

// Revisions compares two Git revisions. "A..B" compares A with B. "A...B" compares the merge base of A and B
// with B. "A" compares A with the work tree. "" compares the merge base of HEAD and the branch base with the
// work tree. An empty base selects the default branch.
func Revisions(p *workspace.Project, from TreeSource, base, revisions string) (*Comparison, error) {
	c, before, after, err := openRevisions(p, from, base, revisions)
	if err != nil {
		return c, err
	}
	if after != nil {
		c.After, err = c.revision(after)
	} else {
		c.After, err = c.workTree()
	}
	if err == nil {
		err = c.After.wrapName(workspace.CheckAttributes(c.After.project))
	}
	if err != nil {
		return c, err
	}
	if c.Before, err = c.revision(before); err != nil {
		return c, err
	}
	return c, c.checkNotEmpty()
}

// Workspaces returns the directories below p that contain a workspace on at least one side, sorted.
// The sides are those that [Revisions] compares, with the same base and revisions.
func Workspaces(p *workspace.Project, base, revisions string) ([]string, error) {
	c, before, after, err := openRevisions(p, Auto, base, revisions)
	if err != nil {
		return nil, err
	}
	if c.clone.Repo.Root() == "" {
		return nil, errors.New("--all requires a work tree, and this is a bare repository")
	}
	found, err := workspace.WorkspacesAt(before, c.clone.Prefix)
	if err != nil {
		return nil, err
	}
	var more []string
	if after != nil {
		more, err = workspace.WorkspacesAt(after, c.clone.Prefix)
	} else {
		more, err = workspace.Workspaces(p.Name())
	}
	found = append(found, more...)
	slices.Sort(found)
	return slices.Compact(found), err
}

// openRevisions returns a comparison without sides, and the revisions to compare, as returned by
// selectedRevisions.
func openRevisions(p *workspace.Project, from TreeSource, base, revisions string) (c *Comparison, before, after *gitrepo.Revision, err error) {
	if c, err = newComparison(p, from); err != nil {
		return c, nil, nil, err
	}
	if c.clone.Repo == nil {
		return c, nil, nil, fmt.Errorf("%s is not in a Git repository: compare with --upgrade, --locks or --trees", p.Location())
	}
	before, after, err = c.selectedRevisions(base, revisions)
	return c, before, after, err
}

// checkNotEmpty returns an error if no side has a workspace. Without this error, a comparison of a wrong path
// would find no difference, and its check in CI would always pass.
func (c *Comparison) checkNotEmpty() error {
	if c.Before.hasWorkspace() || c.After.hasWorkspace() {
		return nil
	}
	return cmp.Or(c.After.project.SuggestWorkspaces(), fmt.Errorf("no workspace in %s: neither %s nor %s on either side", c.project.Location(), settings.FileName, workspace.LockFile))
}

func (s *Side) hasWorkspace() bool {
	return s.Lock != nil || len(s.Manifests) > 0 || s.project.Configured()
}

// selectedRevisions returns the two revisions to compare; see Revisions. If after is nil, the new side is the
// work tree.
func (c *Comparison) selectedRevisions(base, revisions string) (before, after *gitrepo.Revision, err error) {
	a, b, two := strings.Cut(revisions, "..")
	b, fork := strings.CutPrefix(b, ".")
	if c.clone.Repo.Root() == "" && !two {
		return nil, nil, errors.New("a bare repository has no work tree: specify two revisions, such as main..branch")
	}
	if two {
		if after, err = c.findRevision(b); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case fork:
		if before, err = c.findRevision(a); err == nil {
			before, err = c.mergeBase(before, after)
		}
	case revisions == "":
		before, err = c.defaultBase(base)
	default:
		before, err = c.findRevision(a)
	}
	return before, after, err
}

// findRevision returns the named revision. An empty name is HEAD.
func (c *Comparison) findRevision(name string) (*gitrepo.Revision, error) {
	if name == "" {
		return c.clone.Repo.Head()
	}
	return c.clone.Repo.Revision(name)
}

// defaultBase returns the merge base of HEAD and the branch named by base. An empty base is the
// default branch.
func (c *Comparison) defaultBase(base string) (*gitrepo.Revision, error) {
	head, err := c.clone.Repo.Head()
	if err != nil {
		return nil, err
	}
	var tip *gitrepo.Revision
	switch {
	case base != "":
		tip, err = c.clone.Repo.Revision(base)
	case c.ciBase() != "":
		tip, err = c.clone.Repo.Revision(c.ciBase())
	default:
		tip, err = c.clone.Repo.DefaultBranch()
	}
	if err != nil {
		return nil, err
	}
	return c.mergeBase(tip, head)
}

// ciBase returns the target branch of the pull request of a CI job, or the commit at which the job's branch
// started. It returns "" if both are unknown.
func (c *Comparison) ciBase() string {
	for _, name := range []string{"CI_MERGE_REQUEST_DIFF_BASE_SHA", "PULL_BASE_SHA"} { // GitLab; Prow
		if commit := c.project.Getenv(name); commit != "" {
			return commit
		}
	}
	for _, name := range []string{
		"GITHUB_BASE_REF", // also Gitea and Forgejo
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "BITBUCKET_PR_DESTINATION_BRANCH", "SYSTEM_PULLREQUEST_TARGETBRANCH",
		"CHANGE_TARGET", "CI_COMMIT_TARGET_BRANCH", "BUILDKITE_PULL_REQUEST_BASE_BRANCH", // Jenkins, Woodpecker, Buildkite
	} {
		if branch := c.project.Getenv(name); branch != "" {
			return "origin/" + strings.TrimPrefix(branch, "refs/heads/")
		}
	}
	return ""
}

// mergeBase returns the merge base of b and tip, the tip of a branch. It also sets c.target to the workspace at
// tip. If a shallow clone, as in CI, lacks the merge base, it adds a warning and returns tip.
func (c *Comparison) mergeBase(tip, b *gitrepo.Revision) (*gitrepo.Revision, error) {
	var err error
	if c.target, err = c.clone.At(tip); err != nil {
		return nil, fmt.Errorf("%s: %w", tip.Name(), err)
	}
	fork, err := c.clone.Repo.MergeBase(tip, b)
	if errors.Is(err, gitrepo.ErrNoBase) && c.clone.Repo.Shallow() {
		c.messages = append(c.messages, Message{Warnings: c.project.Waive([]diag.Warning{{
			Code: "shallow-clone", Msg: fmt.Sprintf("the clone is shallow and lacks the merge base of %s and %s: comparing with the tip of %s", tip.Name(), b.Name(), tip.Name()),
		}})})
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
	if c.project.HasDeletedLock() {
		return nil, rules.ErrDeletedLock()
	}
	t, err := fleet.ReadTree("", c.disk)
	if err != nil {
		return nil, err
	}
	own, err := c.readUserManifests()
	return &Side{Fleet: fleet.New("work tree", c.project.Settings, c.withRepoPaths(lock), t), project: c.project, userManifests: own}, err
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
	t, own, err := c.readCommit(rev, p)
	return &Side{Fleet: fleet.New(rev.Name(), p.Settings, c.withRepoPaths(lock), t), project: p, rev: rev, userManifests: own}, err
}

// withRepoPaths returns a lock whose pins have positions relative to the repository.
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

// Trees compares two directories of manifests, which may be rendered trees.
func Trees(p *workspace.Project, before, after string) (*Comparison, error) {
	c := &Comparison{project: p, clone: &workspace.Clone{Project: p, Prefix: "."}, disk: fleet.Disk{Pool: fleet.NewPool()}}
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
	prefix := path.Clean(filepath.ToSlash(name))
	root, out, err := treeRoot(name)
	if err != nil {
		return nil, err
	}
	if out != "." {
		prefix = path.Join(prefix, "..")
	}
	t, err := fleet.ReadTree(prefix, fleet.Disk{FS: filetree.OpenUserDir(root).FS(), Name: prefix, Out: out, Pool: c.disk.Pool})
	return &Side{Fleet: fleet.New(name, c.project.Settings, nil, t), project: c.project, treeOnly: true}, err
}

// treeRoot returns the directory to open for reading a directory of manifests, and the path of the manifests in
// it. For a rendered tree, root is the parent directory, because the overlays are also in the parent directory.
func treeRoot(name string) (root, out string, err error) {
	if _, err := os.Stat(filepath.Join(name, layout.ClustersFile)); err != nil {
		return name, ".", nil
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", "", err
	}
	if info, err := os.Lstat(full); err != nil || info.Mode().Type() == fs.ModeSymlink || filepath.Dir(full) == full {
		return name, ".", nil //nolint:nilerr // reading the directory returns the error
	}
	return filepath.Dir(full), filepath.Base(full), nil
}

// compareArtifacts compares two trees without their locks. before and after are an artifact ("oci://…"), a Git
// revision, or "" for the work tree. If trees is true, a name that is not an artifact is a directory of
// manifests, not a revision.
func compareArtifacts(ctx context.Context, p *workspace.Project, before, after string, trees bool) (*Comparison, error) {
	c, err := newComparison(p, Tree)
	if err != nil {
		return nil, err
	}
	own, err := c.readUserManifests()
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		name string
		to   **Side
	}{{before, &c.Before}, {after, &c.After}} {
		s, err := c.openSide(ctx, side.name, trees)
		if err == nil && side.to == &c.After && s.project != nil && !s.treeOnly {
			err = s.wrapName(workspace.CheckAttributes(s.project))
		}
		if err != nil {
			return nil, err
		}
		*side.to = &Side{Fleet: fleet.New(s.Name, p.Settings, nil, s.Tree), project: p, rev: s.rev, userManifests: own, treeOnly: true}
	}
	return c, nil
}

// IsArtifact reports whether name is the reference of an artifact.
func IsArtifact(name string) bool { return strings.HasPrefix(name, "oci:") }

// openSide opens a side by its name; see compareArtifacts.
func (c *Comparison) openSide(ctx context.Context, name string, trees bool) (*Side, error) {
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

func (c *Comparison) artifact(ctx context.Context, ref string) (*Side, error) {
	a, err := c.project.Artifact(ctx, ref)
	if err != nil {
		return nil, err
	}
	out, _ := a.Tree()
	var files []diff.File
	for name, data := range a.Files.All() {
		if fleet.IsManifest(name) && (out == "." || strings.HasPrefix(name, out+"/")) {
			files = append(files, diff.File{Path: name, Data: c.disk.Pool.Add(data)})
		}
	}
	t, err := fleet.NewTree("", out, files, overlay.FileFunc(func(name string) ([]byte, error) {
		if data, ok := a.Files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}), c.disk.Pool)
	return &Side{Fleet: fleet.New(a.Name, c.project.Settings, nil, t)}, err
}

// compareLocks compares two locks, both rendered with the settings of the workspace.
func compareLocks(p *workspace.Project, from TreeSource, before, after string) (*Comparison, error) {
	var locks [2]*lockfile.File
	for i, name := range []string{before, after} {
		file, err := source.LookupIn("")(name)
		if err != nil {
			return nil, err
		}
		data, err := file.Read()
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
	return c.setLocks([2]string{before, after}, locks[0], locks[1])
}

// setLocks sets the sides to two locks of the workspace, with the given names.
func (c *Comparison) setLocks(names [2]string, before, after *lockfile.File) (*Comparison, error) {
	own, err := c.readUserManifests()
	if err != nil {
		return nil, err
	}
	empty, err := fleet.EmptyTree(c.disk)
	if err != nil {
		return nil, err
	}
	c.Before = &Side{Fleet: fleet.New(names[0], c.project.Settings, before, empty), project: c.project, userManifests: own}
	c.After = &Side{Fleet: fleet.New(names[1], c.project.Settings, after, empty), project: c.project, userManifests: own}
	return c, nil
}

// compareUpgrade compares the lock with the result of an upgrade.
func compareUpgrade(ctx context.Context, p *workspace.Project, from TreeSource, pr *workspace.Problem) (*Comparison, error) {
	if pr.Lock == nil {
		_, err := p.NeedLock()
		return nil, err
	}
	res, err := workspace.Resolve(ctx, pr)
	if res != nil && res.Failed != nil {
		return nil, res.Failed
	}
	if err != nil {
		return nil, err
	}
	// The lock of the resolver has no positions: format and parse it.
	next, err := lockfile.Parse(workspace.LockFile, lockfile.Format(res.Lock))
	if err != nil {
		return nil, err
	}
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	return c.setLocks([2]string{workspace.LockFile, "upgrade"}, c.withRepoPaths(pr.Lock), c.withRepoPaths(next))
}

// Locks compares two locks of the workspace, with the given names; before may be nil.
func Locks(p *workspace.Project, from TreeSource, names [2]string, before, after *lockfile.File) (*Comparison, error) {
	if before == nil {
		before = lockfile.New(nil)
	}
	c, err := newComparison(p, from)
	if err != nil {
		return nil, err
	}
	return c.setLocks(names, before, after)
}
