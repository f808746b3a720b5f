package resolve

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// An overlap: two operators in different namespaces provide the same API and watch a common namespace. Such
// operators break each other. The solver never chooses a dependency that causes an overlap. An overlap between
// two subscriptions is a conflict. The solver does not avoid the conflict with an older version: a version that
// lacks the API by chance is not useful.

// installScope is the install namespace of an API provider, and the namespaces that it watches.
type installScope struct {
	ns, watch string
	requested bool // whether one of the atoms with this scope is a candidate of a root that must be satisfied
}

func (p installScope) namespaces() []string {
	if p.watch == "" {
		return nil
	}
	return strings.Split(p.watch, ",")
}

func (p installScope) overlaps(q installScope) bool {
	return p.ns != q.ns && isOverlapping(p.namespaces(), q.namespaces())
}

func (b *builder) scopeOf(id int) installScope {
	a := b.atoms[id]
	return installScope{ns: a.ns, watch: strings.Join(a.watch, ",")}
}

// forbidOverlaps excludes the overlaps in which one of the two providers is a dependency. It implements Rule 10
// of the package comment.
func (b *builder) forbidOverlaps() {
	if !b.hasSeveralNamespaces() {
		return
	}
	requested := rootAtoms(slices.DeleteFunc(slices.Clone(b.roots), func(r root) bool { return r.choice.Soft }))
	scopes := map[catalog.GVK][]installScope{}
	factAtoms := map[catalog.GVK]map[installScope]int{}
	var order []catalog.GVK
	for id, a := range b.atoms {
		if a == nil || a.inst != nil && b.relaxationOf(a.inst) >= fullyIgnored {
			continue
		}
		at := b.scopeOf(id)
		at.requested = requested[id]
		for _, g := range a.facts.apis {
			if factAtoms[g] == nil {
				factAtoms[g] = map[installScope]int{}
				order = append(order, g)
			}
			if factAtoms[g][at] == 0 {
				b.p.Aux++
				factAtoms[g][at] = b.p.Atoms + b.p.Aux
				scopes[g] = append(scopes[g], at)
			}
			b.p.Links = append(b.p.Links, solve.Link{From: id, To: factAtoms[g][at]})
		}
	}
	for _, g := range order {
		for i, x := range scopes[g] {
			for _, y := range scopes[g][i+1:] {
				if x.requested && y.requested || !x.overlaps(y) {
					continue
				}
				b.p.Groups = append(b.p.Groups, solve.Group{Of: []int{factAtoms[g][x], factAtoms[g][y]}, Tag: b.overlapTag(x.ns, y.ns, g)})
			}
		}
	}
}

func (b *builder) overlapTag(x, y string, g catalog.GVK) int {
	if y < x {
		x, y = y, x
	}
	return b.tag(overlapCause{fact{ns: x}, y, g}, nil)
}

// firstOverlap returns the first overlap between two satisfied subscriptions, or nil if there is none. The result is
// an unsatisfiable core: the tags of both roots and of the overlap. It implements Rule 10 of the package comment.
func (b *builder) firstOverlap(chosen []int) []int {
	if b.w.opt.AllowOverlap || !b.hasSeveralNamespaces() {
		return nil
	}
	have := map[int]bool{}
	for _, id := range chosen {
		have[id] = true
	}
	type provider struct {
		root solve.Choice
		at   installScope
	}
	seen := map[catalog.GVK][]provider{}
	for _, r := range b.roots {
		i := slices.IndexFunc(r.choice.Of, func(id int) bool { return have[id] })
		if i < 0 || r.choice.Soft {
			continue
		}
		id := r.choice.Of[i]
		for _, g := range b.atoms[id].facts.apis {
			for _, other := range seen[g] {
				if other.at.overlaps(b.scopeOf(id)) {
					return []int{other.root.Tag, r.choice.Tag, b.overlapTag(other.at.ns, b.atoms[id].ns, g)}
				}
			}
			seen[g] = append(seen[g], provider{r.choice, b.scopeOf(id)})
		}
	}
	return nil
}
