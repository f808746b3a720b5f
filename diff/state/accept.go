package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// Accept writes into lock, as accepted, what its operators may do in each cluster
// and which APIs they bring: of all, or of those that are named.
func Accept(ctx context.Context, p *project.Project, lock *lockfile.File, all bool, named []resolve.Target) error {
	var keys []string
	for _, t := range named {
		t, err := project.Placed(t, lock, &subscription.Set{})
		if err != nil {
			return err
		}
		keys = append(keys, t.Namespace+"/"+t.Package)
		if _, ok := lock.Pin(t.Namespace, t.Package); !ok {
			return diag.Errorf(t.At, "no such operator in %s", project.LockFile)
		}
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return err
	}
	c, s, err := beside(p, res)
	if err != nil {
		return err
	}
	s.Name, s.lock = project.LockFile, lock
	taken := func(operator string) bool { return operator != "" && (all || slices.Contains(keys, operator)) }
	accepted, err := c.budgets(s)
	if err != nil {
		return err
	}
	lock.Accepted = slices.DeleteFunc(lock.Accepted, func(a lockfile.Accepted) bool { return taken(a.Operator) })
	for _, a := range accepted {
		if taken(a.Operator) {
			lock.Accepted = append(lock.Accepted, a)
		}
	}
	lock.Accepted = lock.With(lock.Catalogs, lock.Pins).Accepted
	return nil
}

// budgets returns what operators have as blocks of a lock: what they have before
// any overlay, and how that differs in clusters, those with the same in one block.
func (c *Comparison) budgets(s *Side) ([]lockfile.Accepted, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	plain, err := diff.Budget(base)
	if err != nil {
		return nil, err
	}
	var out []lockfile.Accepted
	for _, b := range plain {
		out = append(out, lockfile.Accepted{Operator: b.Operator, Permissions: b.Permissions, APIs: b.APIs})
	}
	err = c.alone(s, base, func(got gets) error {
		list, err := diff.Budget(got.state)
		for _, b := range list {
			if !slices.Contains(got.state.Dropped, b.Operator) {
				out = differing(out, plain, b, got.clusters)
			}
		}
		return err
	})
	return out, err
}

// differing adds to blocks how what an operator has in some clusters differs from
// what it has plainly, where it does.
func differing(blocks []lockfile.Accepted, plain []diff.Accepted, b diff.Accepted, clusters []string) []lockfile.Accepted {
	var was diff.Accepted
	if i := slices.IndexFunc(plain, func(a diff.Accepted) bool { return a.Operator == b.Operator }); i >= 0 {
		was = plain[i]
	}
	d := lockfile.Accepted{
		Operator: b.Operator, Clusters: clusters, Permissions: minus(b.Permissions, was.Permissions), APIs: minus(b.APIs, was.APIs),
		Without: slices.Concat(minus(was.Permissions, b.Permissions), minus(was.APIs, b.APIs)),
	}
	if len(d.Permissions)+len(d.APIs)+len(d.Without) == 0 {
		return blocks
	}
	i := slices.IndexFunc(blocks, func(o lockfile.Accepted) bool {
		return o.Operator == d.Operator && len(o.Clusters) > 0 && slices.Equal(o.Permissions, d.Permissions) && slices.Equal(o.APIs, d.APIs) && slices.Equal(o.Without, d.Without)
	})
	if i < 0 {
		return append(blocks, d)
	}
	blocks[i].Clusters = slices.Concat(blocks[i].Clusters, clusters)
	return blocks
}

// minus returns what of a sorted list is not in another.
func minus(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		_, found := slices.BinarySearch(other, s)
		return found
	})
}

// accepted returns what is accepted in a cluster by the lock of a side; nil where
// no budget is kept.
func (s *Side) accepted(cluster string) []diff.Accepted {
	if s.lock == nil {
		return nil
	}
	var out []diff.Accepted
	for _, a := range s.lock.AcceptedIn(cluster) {
		out = append(out, diff.Accepted{Operator: a.Operator, Permissions: a.Permissions, APIs: a.APIs})
	}
	return out
}

// budget names what accepted returns of a cluster, without making it.
func (s *Side) budget(cluster string) string {
	if s.lock == nil {
		return ""
	}
	var out []string
	for i, a := range s.lock.Accepted {
		if slices.Contains(a.Clusters, cluster) {
			out = append(out, fmt.Sprint(i))
		}
	}
	return strings.Join(out, ",")
}
