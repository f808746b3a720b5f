package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// FileEdit is the change of one file in a commit.
type FileEdit struct {
	Path    string // path from the top of the repository
	Data    []byte
	Removed bool
}

// Commit describes a commit for [Repo.Branch].
type Commit struct {
	Message string
	Changes []FileEdit
	Author  Author
	When    time.Time
}

// Author is the author and the committer of a commit.
type Author struct{ Name, Email string }

// Author returns the author for new commits, from GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL. If these
// are empty, it returns the author in Git's configuration.
func (r *Repo) Author(ctx context.Context, getenv func(string) string) (Author, error) {
	git, err := r.program()
	if err != nil {
		return Author{}, err
	}
	var env []string
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	out, err := git.run(ctx, env, nil, "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
	ident := regexp.MustCompile(`^(.+) <(.+)> \d+ [+-]\d+\n$`).FindSubmatch(out)
	if err != nil || ident == nil {
		return Author{}, errors.New("no commit author: set user.name and user.email with 'git config', or GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL")
	}
	return Author{string(ident[1]), string(ident[2])}, nil
}

// Branch creates a branch with one commit on top of parent, or replaces an existing branch with this name. It
// returns the hash of the commit. The work tree, the index and HEAD do not change. Branch keeps a branch that
// already has the same commit, even if its signature differs. Git refuses to replace a branch that is checked
// out in a work tree.
func (r *Repo) Branch(ctx context.Context, name string, parent *Revision, c Commit) (hash string, err error) {
	hash, err = r.branch(ctx, name, parent, c)
	if err != nil {
		return "", fmt.Errorf("branch %q: %w", name, err)
	}
	return hash, nil
}

func (r *Repo) branch(ctx context.Context, name string, parent *Revision, c Commit) (hash string, err error) {
	if err := checkBranch(name); err != nil {
		return "", err
	}
	for _, change := range c.Changes {
		if !fs.ValidPath(change.Path) || change.Path == "." {
			return "", fmt.Errorf("%q is not a valid path", change.Path)
		}
		for dir := path.Dir(change.Path); dir != "."; dir = path.Dir(dir) {
			if _, is := parent.Link(dir); is {
				return "", fmt.Errorf("%s is a symbolic link: replace it with a copy of its target", dir)
			}
		}
	}
	git, err := r.program()
	if err != nil {
		return "", err
	}
	if hash, err = git.commit(ctx, parent.Hash(), c); err != nil {
		return "", err
	}
	old, err := r.git.Storer.Reference(plumbing.NewBranchReferenceName(name))
	switch {
	case errors.Is(err, plumbing.ErrReferenceNotFound):
	case err != nil:
		return "", err
	case old.Type() == plumbing.SymbolicReference:
		return "", fmt.Errorf("the name is an alias of %s: choose another name", old.Target())
	case r.sameCommit(old.Hash(), plumbing.NewHash(hash)):
		return old.Hash().String(), nil
	}
	_, err = git.run(ctx, nil, nil, "branch", "--quiet", "--no-track", "--force", "--", name, hash)
	return hash, err
}

// IsGenerated reports whether tip was created by [Repo.Branch] or is in the history of head. It compares commit
// times: Branch uses the time of the parent. A commit that a person makes, amends or rebases has another time.
func (r *Repo) IsGenerated(tip, head *Revision) bool {
	c := tip.commit
	if c.NumParents() == 1 && c.Author.String() == c.Committer.String() && c.Author.When.Equal(c.Committer.When) {
		parent, err := c.Parent(0)
		if err == nil && parent.Committer.When.Equal(c.Committer.When) {
			return true
		}
	}
	return r.Contains(head, tip)
}

// checkBranch returns an error if name is not a valid name of a branch.
func checkBranch(name string) error {
	if name == "HEAD" || strings.HasPrefix(name, "refs/") {
		return errors.New("reserved by Git: choose another name, without refs/")
	}
	return plumbing.NewBranchReferenceName(name).Validate()
}

// sameCommit reports whether two commits are equal except for their signatures.
func (r *Repo) sameCommit(a, b plumbing.Hash) bool {
	if a == b {
		return true
	}
	x, err1 := r.git.CommitObject(a)
	y, err2 := r.git.CommitObject(b)
	if cmp.Or(err1, err2) != nil {
		return false
	}
	x.PGPSignature, y.PGPSignature = "", ""
	var one, two plumbing.MemoryObject
	return x.Encode(&one) == nil && y.Encode(&two) == nil && one.Hash() == two.Hash()
}

// commit creates a commit in a temporary work tree, so that the user's filters, hooks and
// signatures apply. Unchanged files are checked out only if the repository has hooks, because hooks
// may read them.
func (p *program) commit(ctx context.Context, parent string, c Commit) (hash string, err error) {
	hooks, err := p.runsHooks(ctx)
	if err != nil {
		return "", err
	}
	p.removeLeftTrees(ctx)
	tmp, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", workTree, os.Getpid()))
	if err != nil {
		return "", err
	}
	in := &program{p.path, filepath.Join(tmp, "work")}
	defer func() {
		_, _ = p.run(context.WithoutCancel(ctx), nil, nil, "worktree", "remove", "--force", "--", in.dir) // ignore the error: 'git gc' removes leftover files
		err = errors.Join(err, os.RemoveAll(tmp))
	}()
	lazy := []string{"GIT_LFS_SKIP_SMUDGE=1"} // do not download the content of LFS files
	add := []string{"-c", "core.hooksPath=" + os.DevNull, "worktree", "add", "--quiet", "--detach"}
	if !hooks {
		add = append(add, "--no-checkout")
	}
	if _, err := p.run(ctx, lazy, nil, append(add, "--", in.dir, parent)...); err != nil {
		return "", err
	}
	if !hooks {
		if _, err := in.run(ctx, nil, nil, "read-tree", "HEAD"); err != nil {
			return "", err
		}
	}
	if err := in.stage(ctx, c.Changes); err != nil {
		return "", err
	}
	when := fmt.Sprintf("@%d %s", c.When.Unix(), c.When.Format("-0700"))
	var identity []string
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		identity = append(identity, "GIT_"+role+"_NAME="+c.Author.Name, "GIT_"+role+"_EMAIL="+c.Author.Email, "GIT_"+role+"_DATE="+when)
	}
	if _, err := in.run(ctx, identity, strings.NewReader(c.Message), "-c", "maintenance.auto=false", "-c", "gc.auto=0", "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--file=-"); err != nil {
		return "", err
	}
	return in.runLine(ctx, "rev-parse", "HEAD")
}

// workTree is the prefix of the names of temporary directories with a work tree. The process ID follows the
// prefix.
const workTree = "quayside-work-"

// removeLeftTrees removes the registered work trees of killed runs, with their files. It ignores errors,
// because this run does not need these work trees.
func (p *program) removeLeftTrees(ctx context.Context) {
	list, err := p.run(ctx, nil, nil, "worktree", "list", "--porcelain")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(list)) {
		dir, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree ")
		name, isWork := strings.CutPrefix(filepath.Base(filepath.Dir(dir)), workTree)
		number, _, _ := strings.Cut(name, "-")
		pid, err := strconv.Atoi(number)
		if !ok || !isWork || err != nil || isRunning(pid) {
			continue
		}
		_, _ = p.run(ctx, nil, nil, "worktree", "remove", "--force", "--", filepath.FromSlash(dir))
		_ = os.Remove(filepath.Dir(dir)) // empty now
	}
}

// isRunning reports whether a process with this number exists, or may exist.
func isRunning(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	return !errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// stage writes changes to the work tree and the index. A file keeps its mode. os.Root prevents
// writing to other directories through symbolic links.
func (p *program) stage(ctx context.Context, changes []FileEdit) error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var added, removed strings.Builder
	for _, c := range changes {
		name := filepath.FromSlash(c.Path)
		if c.Removed {
			removed.WriteString(c.Path + "\x00")
			continue
		}
		added.WriteString(c.Path + "\x00")
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			if err := root.Remove(name); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, c.Data, 0o666); err != nil {
			return err
		}
	}
	listed := []string{"--sparse", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"}
	if removed.Len() > 0 {
		if _, err := p.run(ctx, nil, strings.NewReader(removed.String()), append([]string{"rm", "--quiet"}, listed...)...); err != nil {
			return err
		}
	}
	if added.Len() == 0 {
		return nil
	}
	_, err = p.run(ctx, nil, strings.NewReader(added.String()), append([]string{"-c", "core.fileMode=false", "add"}, listed...)...)
	return err
}
