package resolve

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// Two installs in different namespaces that provide the same API and watch a common namespace
// break each other. A dependency is never chosen if it would cause this. Between two subscriptions
// it is an error: an older version that happens to lack the API would not be a useful answer.

// place is the install namespace and the watched namespaces of a provider of an API.
type place struct {
	ns, watch string
	asked     bool // by an atom that can answer a root that is not soft
}

func (p place) namespaces() []string {
	if p.watch == "" {
		return nil
	}
	return strings.Split(p.watch, ",")
}

func (p place) overlaps(q place) bool {
	return p.ns != q.ns && isOverlapping(p.namespaces(), q.namespaces())
}

func (b *builder) placeOf(id int) place {
	a := b.atoms[id]
	return place{ns: a.ns, watch: strings.Join(a.watch, ",")}
}

// overlaps forbids overlaps that involve a dependency. Rule 10.
func (b *builder) overlaps() {
	if !b.hasSeveralNamespaces() {
		return
	}
	asked := answering(slices.DeleteFunc(slices.Clone(b.roots), func(r root) bool { return r.choice.Soft }))
	places := map[model.GVK][]place{}
	fact := map[model.GVK]map[place]int{}
	var order []model.GVK
	for id, a := range b.atoms {
		if a == nil || a.inst != nil && b.giveUp(a.inst) >= ignored {
			continue
		}
		at := b.placeOf(id)
		at.asked = asked[id]
		for _, g := range a.facts.apis {
			if fact[g] == nil {
				fact[g] = map[place]int{}
				order = append(order, g)
			}
			if fact[g][at] == 0 {
				b.p.Aux++
				fact[g][at] = b.p.Atoms + b.p.Aux
				places[g] = append(places[g], at)
			}
			b.p.Links = append(b.p.Links, solve.Link{From: id, To: fact[g][at]})
		}
	}
	for _, g := range order {
		for i, x := range places[g] {
			for _, y := range places[g][i+1:] {
				if x.asked && y.asked || !x.overlaps(y) {
					continue
				}
				b.p.Groups = append(b.p.Groups, solve.Group{Of: []int{fact[g][x], fact[g][y]}, Tag: b.overlapTag(x.ns, y.ns, g)})
			}
		}
	}
}

func (b *builder) overlapTag(x, y string, g model.GVK) int {
	if y < x {
		x, y = y, x
	}
	return b.tag(bothProvide{fact{ns: x}, y, g}, nil)
}

// overlap returns the first overlap between two answered subscriptions, as a core: both roots and
// the API. It returns nil if there is none. Rule 10.
func (b *builder) overlap(chosen []int) []int {
	if b.w.opt.AllowOverlap || !b.hasSeveralNamespaces() {
		return nil
	}
	have := map[int]bool{}
	for _, id := range chosen {
		have[id] = true
	}
	type provider struct {
		root solve.Choice
		at   place
	}
	seen := map[model.GVK][]provider{}
	for _, r := range b.roots {
		i := slices.IndexFunc(r.choice.Of, func(id int) bool { return have[id] })
		if i < 0 || r.choice.Soft {
			continue
		}
		id := r.choice.Of[i]
		for _, g := range b.atoms[id].facts.apis {
			for _, other := range seen[g] {
				if other.at.overlaps(b.placeOf(id)) {
					return []int{other.root.Tag, r.choice.Tag, b.overlapTag(other.at.ns, b.atoms[id].ns, g)}
				}
			}
			seen[g] = append(seen[g], provider{r.choice, b.placeOf(id)})
		}
	}
	return nil
}
