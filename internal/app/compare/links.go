package compare

import (
	"bytes"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/base/remote"
	"github.com/quayside/quayside/lockfile"
)

// Link adds links to the places of findings on a forge: at the commit of a revision, or at HEAD if
// the file is unchanged there. Rendered files and files changed on disk have no links. base
// selects the forge (see [remote.ParseLinks]). If base is empty, the links lead to the remote
// origin, provided that its forge is known.
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
	l := linker{c: c, at: map[diff.Place]string{}}
	l.head, _ = c.clone.Repo.Head() // a repository may have no commit yet
	for i := range r.Findings {
		p := r.Findings[i].Place
		r.Findings[i].Link = f.Line(l.commit(p), p.Path, p.Line)
	}
	return nil
}

// linker finds commits that contain files as they were compared.
type linker struct {
	c    *Comparison
	head *gitrepo.Revision // nil without commits
	at   map[diff.Place]string
}

// commit returns the commit that contains the file of a place as it was compared; "" if
// there is none.
func (l *linker) commit(p diff.Place) string {
	key := diff.Place{Path: p.Path, Removed: p.Removed}
	hash, seen := l.at[key]
	if !seen {
		side := l.c.After
		if p.Removed {
			side = l.c.Before
		}
		rev := side.rev
		if rev == nil && !side.read {
			rev = l.head
		}
		if rev != nil && l.c.hasSameFile(side, rev, p.Path) {
			hash = rev.Hash()
		}
		l.at[key] = hash
	}
	return hash
}

// hasSameFile reports whether a commit has a file of a side as it was compared.
func (c *Comparison) hasSameFile(s *Side, rev *gitrepo.Revision, name string) bool {
	there, err := rev.Read(name)
	if err != nil {
		return false
	}
	if name == c.InRepo(workspace.LockFile) && s.rev == nil && (s.lock == nil || !bytes.Equal(there, lockfile.Format(s.lock))) {
		return false // the lock of an upgrade differs from the one on disk
	}
	compared, err := s.around.ReadFile(name)
	return err == nil && bytes.Equal(there, compared)
}
