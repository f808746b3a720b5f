package compare

import (
	"bytes"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/remote"
	"github.com/quayside/quayside/lockfile"
)

// Link adds to each finding a link to its file on a forge. The link points to the commit of the finding's side,
// or to HEAD for the work tree. Rendered files, and files that differ from the commit, get no link. base
// selects the forge (see [remote.ParseLinks]). If it is empty, the remote origin selects the forge. If the
// forge is unknown, Link adds nothing.
func (c *Comparison) Link(r *diff.Report, base string) error {
	var f remote.LineLinks
	var err error
	if base != "" {
		f, err = remote.ParseLinks(base)
	} else if c.clone.Repo != nil {
		f = remote.NewLineLinks(c.clone.Repo.Origin())
	}
	if err != nil || f == (remote.LineLinks{}) || c.clone.Repo == nil {
		return err
	}
	l := linker{c: c, commits: map[diff.Region]string{}}
	l.head, _ = c.clone.Repo.Head() // a repository may have no commit yet
	for i := range r.Findings {
		p := r.Findings[i].Place
		r.Findings[i].Link = f.Line(l.commit(p), p.Path, p.Line)
	}
	return nil
}

// linker finds the commit for the link of a finding.
type linker struct {
	c       *Comparison
	head    *gitrepo.Revision      // nil if the repository has no commits
	commits map[diff.Region]string // cache for the results of commit
}

// commit returns the hash of the commit that contains the compared content of a file, or "" if there is none.
func (l *linker) commit(p diff.Region) string {
	key := diff.Region{Path: p.Path, Removed: p.Removed}
	hash, seen := l.commits[key]
	if !seen {
		side := l.c.After
		if p.Removed {
			side = l.c.Before
		}
		rev := side.rev
		if rev == nil && !side.treeOnly {
			rev = l.head
		}
		if rev != nil && l.c.hasSameFile(side, rev, p.Path) {
			hash = rev.Hash()
		}
		l.commits[key] = hash
	}
	return hash
}

// hasSameFile reports whether a commit contains the compared content of a file.
func (c *Comparison) hasSameFile(s *Side, rev *gitrepo.Revision, name string) bool {
	committed, err := rev.Read(name)
	if err != nil {
		return false
	}
	if name == c.InRepo(workspace.LockFile) && s.rev == nil && (s.Lock == nil || !bytes.Equal(committed, lockfile.Format(s.Lock))) {
		return false // an upgraded lock differs from the lock on disk
	}
	compared, err := s.Reader.ReadFile(name)
	return err == nil && bytes.Equal(committed, compared)
}
