package state

import (
	"bytes"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/permalink"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// Link fills in where a forge shows the places of findings: at the commit of a
// revision, or at HEAD for what lies there as it was compared. What was rendered, or is
// changed on disk, has no page. The forge is what base says (see [permalink.Parse]) or,
// where that is empty, that of the remote origin, if it is one that is known.
func (c *Comparison) Link(r *diff.Report, base string) error {
	var f permalink.Forge
	var err error
	if base != "" {
		f, err = permalink.Parse(base)
	} else if c.repo != nil {
		f = permalink.Of(c.repo.Origin())
	}
	if err != nil || f == (permalink.Forge{}) || c.repo == nil {
		return err
	}
	l := linker{c: c, at: map[diff.Place]string{}}
	l.head, _ = c.repo.Revision("HEAD") // a repository may have no commit yet
	for i := range r.Findings {
		p := r.Findings[i].Place
		r.Findings[i].Link = f.Line(l.commit(p), p.Path, p.Line)
	}
	return nil
}

// linker finds commits that hold files as they were compared.
type linker struct {
	c    *Comparison
	head *gitrepo.Revision // nil where there is none
	at   map[diff.Place]string
}

// commit returns the commit that holds the file of a place as it was compared; empty
// where none does.
func (l *linker) commit(p diff.Place) string {
	key := diff.Place{Path: p.Path, Removed: p.Removed}
	hash, seen := l.at[key]
	if !seen {
		side := &l.c.After
		if p.Removed {
			side = &l.c.Before
		}
		rev := side.rev
		if rev == nil && !side.read {
			rev = l.head
		}
		if rev != nil && l.c.holds(side, rev, p.Path) {
			hash = rev.Hash()
		}
		l.at[key] = hash
	}
	return hash
}

// holds reports whether a file of a side lies in a commit as it was compared.
func (c *Comparison) holds(s *Side, rev *gitrepo.Revision, name string) bool {
	there, err := rev.Read(name)
	if err != nil {
		return false
	}
	if name == c.InRepo(project.LockFile) && s.rev == nil && (s.lock == nil || !bytes.Equal(there, lockfile.Format(s.lock))) {
		return false // it is what an upgrade would make of the one on disk
	}
	if s.at == nil {
		return false
	}
	compared, err := s.at(name)
	return err == nil && bytes.Equal(there, compared)
}
