package gitrepo

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Sends reports whether a push to a remote sends a token.
func Sends(remote, token string) (bool, error) {
	method, err := auth(remote, token)
	return method != nil, err
}

// Interrupt takes the first n steps of pointing a branch to a commit, as a
// process does that is killed then, and returns how many there are.
func Interrupt(r *Repo, branch string, v *Revision, n int) (of int, err error) {
	old := func() (plumbing.Hash, error) { return plumbing.ZeroHash, nil }
	u := refUpdate{common: r.common, ref: plumbing.NewBranchReferenceName(branch), hash: plumbing.NewHash(v.hash), old: old, who: object.Signature{Name: "A", Email: "a@example.com"}, logged: true}
	steps := u.steps()
	for _, step := range steps[:min(n, len(steps))] {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return len(steps), nil
}
