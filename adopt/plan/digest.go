package plan

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// LockDigest returns the digest of a lock, as a plan has it.
func LockDigest(lock *lockfile.File) string { return string(catalog.DigestOf(lockfile.Format(lock))) }

// TreeDigest returns the digest of what a lock renders to for a cluster, as a plan
// has it. The order of the objects does not matter.
func TreeDigest(rendered []render.Rendered) string {
	var lines []string
	for _, r := range rendered {
		text, err := json.Marshal(r.Object)
		if err != nil {
			panic("plan: " + r.Path + " was rendered, and is no JSON: " + err.Error())
		}
		lines = append(lines, r.Path+"\x00"+string(text))
	}
	slices.Sort(lines)
	return string(catalog.DigestOf([]byte(strings.Join(lines, "\n"))))
}

// Fits returns an error where a plan was made of another lock, or of another tree
// than that renders to for the cluster now.
func (p *Plan) Fits(lock *lockfile.File, rendered []render.Rendered) error {
	switch {
	case p.Lock != LockDigest(lock):
		return errors.New("quayside.lock is not the one that the plan was made of: make the plan anew, or go back to that lock")
	case p.Tree != TreeDigest(rendered):
		return errors.New("what the lock renders to is not what the plan was made of: settings or the program changed; make the plan anew")
	}
	return nil
}
