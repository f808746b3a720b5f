package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/quayside/quayside/internal/diag"
)

// Revision is a commit.
type Revision struct {
	repo   *Repo
	name   string
	commit *object.Commit
	recent recent
}

// Name returns the name of the revision as the user gave it, such as "main".
func (v *Revision) Name() string { return v.name }

// Hash returns the full hash of the commit in hexadecimal digits.
func (v *Revision) Hash() string { return v.commit.Hash.String() }

// Author returns the name of the author of the commit.
func (v *Revision) Author() string { return v.commit.Author.Name }

// Message returns the commit message.
func (v *Revision) Message() string { return v.commit.Message }

// HasParent reports whether parent is a parent of the commit.
func (v *Revision) HasParent(parent *Revision) bool {
	return slices.Contains(v.commit.ParentHashes, parent.commit.Hash)
}

// Time returns the commit time.
func (v *Revision) Time() time.Time { return v.commit.Committer.When }

// Revision returns the commit that name stands for: a branch, a tag, an expression such as "HEAD~1", or the
// first digits of a hash. For a name with several meanings, it returns an error that lists the meanings. (Git
// would prefer a tag to a branch, but others may have pushed the tag.)
func (r *Repo) Revision(name string) (*Revision, error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, ":") || strings.Contains(name, "^{") {
		return nil, fmt.Errorf("%q is not a commit", name)
	}
	start, steps := name, ""
	if i := strings.IndexAny(name, "~^"); i >= 0 {
		start, steps = name[:i], name[i:]
	}
	full, err := r.fullNames(start)
	switch {
	case err != nil:
		return nil, r.resolveError(name, err)
	case len(full) > 1:
		return nil, diag.Hintf(diag.Pos{}, "write the full name, such as "+full[len(full)-1], "revision %q is ambiguous: %s", name, strings.Join(full, ", "))
	case len(full) == 0:
		return nil, r.resolveError(name, plumbing.ErrReferenceNotFound)
	}
	v, err := r.resolveRevision(name, full[0])
	if err != nil || steps == "" {
		return v, err
	}
	hash, err := r.git.ResolveRevision(plumbing.Revision(v.Hash() + steps))
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("no revision %q: the history ends before it%s", name, r.fetchHint())
	}
	if err != nil {
		return nil, r.resolveError(name, err)
	}
	return r.resolveRevision(name, hash.String())
}

// HasCommits reports whether HEAD has a commit, even if the commit cannot be read. It returns false before the
// first commit.
func (r *Repo) HasCommits() bool {
	_, err := r.git.Reference(plumbing.HEAD, true)
	return err == nil
}

// Head returns the current commit.
func (r *Repo) Head() (*Revision, error) { return r.resolveRevision("HEAD", "HEAD") }

// resolveRevision is like lookUpRevision, but its errors contain name and, in a shallow clone, a hint.
func (r *Repo) resolveRevision(name, full string) (*Revision, error) {
	v, err := r.lookUpRevision(name, full)
	if err != nil {
		return nil, r.resolveError(name, err)
	}
	return v, nil
}

// resolveError returns the error for a name that go-git cannot resolve.
func (r *Repo) resolveError(name string, err error) error {
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return fmt.Errorf("no revision %q in this repository%s", name, r.fetchHint())
	}
	return fmt.Errorf("revision %q: %w%s", name, err, r.fetchHint())
}

// lookUpRevision returns the commit with a full name: a whole hash, a reference such as
// "refs/heads/main", or a name such as HEAD. It returns the errors of go-git unchanged.
func (r *Repo) lookUpRevision(name, full string) (*Revision, error) {
	hash := plumbing.NewHash(full)
	if !plumbing.IsHash(full) {
		ref, err := r.git.Reference(plumbing.ReferenceName(full), true)
		if err != nil {
			return nil, err
		}
		hash = ref.Hash()
	}
	c, err := r.commitAt(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = plumbing.ErrReferenceNotFound
	}
	return &Revision{repo: r, name: name, commit: c}, err
}

// commitAt returns the commit with this hash, or the commit that the tag with this hash refers to.
func (r *Repo) commitAt(hash plumbing.Hash) (*object.Commit, error) {
	c, err := r.git.CommitObject(hash)
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return c, err
	}
	tag, err := r.git.TagObject(hash)
	if err != nil {
		return nil, err
	}
	return tag.Commit()
}

// fetchHint returns a message suffix for a missing object or name. It returns "" unless the clone
// is shallow.
func (r *Repo) fetchHint() string {
	if r.Shallow() {
		return " (the clone is shallow: run 'git fetch --unshallow')"
	}
	return ""
}

// ErrNoBase means that two revisions have no common ancestor in this clone.
var ErrNoBase = errors.New("no common ancestor")

// LastChange returns change, the newest commit in the history of HEAD that adds or removes a text in a
// file. before is the first parent of change. Both are nil if there is no such commit. before is also nil
// if change has no parent or the clone lacks the parent.
func (r *Repo) LastChange(ctx context.Context, file, text string) (change, before *Revision, err error) {
	p, err := r.program()
	if err != nil {
		return nil, nil, err
	}
	hash, err := p.runLine(ctx, "log", "--max-count=1", "--format=%H", "-S", text, "HEAD", "--", file)
	if err != nil || hash == "" {
		return nil, nil, err
	}
	commit, err := r.commitAt(plumbing.NewHash(hash))
	if err != nil {
		return nil, nil, err
	}
	change = &Revision{repo: r, name: shortHash(hash), commit: commit}
	if commit.NumParents() == 0 {
		return change, nil, nil
	}
	parent, err := commit.Parent(0)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return change, nil, nil // a shallow clone does not have the parent
	}
	if err != nil {
		return nil, nil, err
	}
	return change, &Revision{repo: r, name: shortHash(parent.Hash.String()), commit: parent}, nil
}

// ChangedLines returns the lines of a file that were added or removed in the history of v, along first parents.
// Each line starts with + or -. ChangedLines follows renames of the file. A shallow clone limits the history.
func (v *Revision) ChangedLines(ctx context.Context, file string) ([]byte, error) {
	p, err := v.repo.program()
	if err != nil {
		return nil, err
	}
	var out []byte
	for at := v.Hash(); file != ""; {
		lines, err := p.run(ctx, nil, nil, "-c", "log.showRoot=true", "log", "--first-parent", "--diff-merges=first-parent", "--no-show-signature",
			"--no-ext-diff", "--no-textconv", "--no-color", "--format=", "--unified=0", at, "--", file)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
		if at, file, err = p.renamedFrom(ctx, at, file); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// renamedFrom follows first parents to the last rename of a file. name is the earlier name, and before is
// the last commit in which the file has this name. Both are empty if the file was added without a rename.
// If no commit has the file, it looks for a rename in the index.
func (p *program) renamedFrom(ctx context.Context, at, file string) (before, name string, err error) {
	added, err := p.runLine(ctx, "log", "--first-parent", "--diff-merges=first-parent", "--no-renames", "--diff-filter=A", "--max-count=1", "--format=%H", "--no-patch", at, "--", file)
	if err != nil {
		return "", "", err
	}
	args := []string{"diff-index", "--cached", at}
	if before = at; added != "" {
		if before, err = p.runLine(ctx, "rev-parse", "--verify", "--quiet", added+"^1"); err != nil {
			return "", "", nil //nolint:nilerr // the first commit, or the end of a shallow clone
		}
		args = []string{"diff-tree", "-r", before, added}
	}
	args = append(args, "-z", "--find-renames", "--diff-filter=R", "--name-status", "--", ":(top,glob)**/"+path.Base(file))
	out, err := p.run(ctx, []string{"GIT_LITERAL_PATHSPECS=0"}, nil, args...)
	fields := strings.Split(string(out), "\x00") // "R097", old name, new name
	for i := 0; i+2 < len(fields); i += 3 {
		if fields[i+2] == file {
			return before, fields[i+1], err
		}
	}
	return "", "", err
}

// Changes returns the last 50 commits that changed a file, along first parents, newest first. For a change in a
// merged branch, it returns the merge commit. It omits commits in the history of since, which may be nil.
func (v *Revision) Changes(ctx context.Context, since *Revision, file string) ([]*Revision, error) {
	p, err := v.repo.program()
	if err != nil {
		return nil, err
	}
	args := []string{"log", "--first-parent", "--no-show-signature", "--format=%H", "--max-count=50", v.Hash()}
	if since != nil {
		args = append(args, "^"+since.Hash())
	}
	lines, err := p.run(ctx, nil, nil, append(args, "--", file)...)
	if err != nil {
		return nil, err
	}
	var out []*Revision
	for hash := range strings.FieldsSeq(string(lines)) {
		rev, err := v.repo.resolveRevision(shortHash(hash), hash)
		if err != nil {
			return nil, err
		}
		out = append(out, rev)
	}
	return out, nil
}

// Shallow reports whether the clone lacks older commits.
func (v *Revision) Shallow() bool { return v.repo.Shallow() }

// MergeBase returns the best common ancestor of two revisions, or the youngest of several. If there is none,
// the error wraps ErrNoBase. A shallow clone may lack the ancestor, because its history is incomplete.
func (r *Repo) MergeBase(a, b *Revision) (*Revision, error) {
	base, err := r.base(a.commit, b.commit)
	if err != nil {
		return nil, fmt.Errorf("merge base of %s and %s: %w", a.name, b.name, err)
	}
	if base == nil {
		return nil, fmt.Errorf("%s and %s: %w%s", a.name, b.name, ErrNoBase, r.fetchHint())
	}
	return &Revision{repo: r, name: shortHash(base.Hash.String()), commit: base}, nil
}

// shortHash returns the first 12 digits of a hash.
func shortHash(hash string) string {
	return hash[:min(len(hash), 12)]
}
