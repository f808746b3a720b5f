package plan

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// LockDigest returns the digest that identifies a lock in a plan.
func LockDigest(lock *lockfile.File) string { return string(model.DigestOf(lockfile.Format(lock))) }

// TreeDigest returns the digest that identifies a rendered tree in a plan. It does not depend on
// the order of the objects.
func TreeDigest(rendered []render.Rendered) string {
	var lines []string
	for _, r := range rendered {
		text, err := json.Marshal(r.Object)
		if err != nil {
			panic("plan: " + r.Path + " was rendered as invalid JSON: " + err.Error())
		}
		lines = append(lines, r.Path+"\x00"+string(text))
	}
	slices.Sort(lines)
	return string(model.DigestOf([]byte(strings.Join(lines, "\n"))))
}

// Fits returns an error if the lock or the rendered tree differs from the one that the plan was
// made from.
func (p *Plan) Fits(lock *lockfile.File, rendered []render.Rendered) error {
	switch {
	case p.Lock != LockDigest(lock):
		return errors.New("quayside.lock has changed since the plan was made: make a new plan, or restore that lock")
	case p.Tree != TreeDigest(rendered):
		return errors.New("the rendered tree has changed since the plan was made, by settings or by another version of quayside: make a new plan")
	}
	return nil
}
