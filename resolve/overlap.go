package resolve

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// Two installs in different namespaces that provide the same API and watch a
// common namespace break each other. No dependency is chosen so that it would
// happen. Between two subscriptions it is an error, not a preference: nobody is
// served by an old version that happens to lack the API.

// place is where an API would be provided.
type place struct {
	ns, watch string
	asked     bool // by what a subscription can be answered by
}

func (p place) namespaces() []string {
	if p.watch == "" {
		return nil
	}
	return strings.Split(p.watch, ",")
}

func (p place) overlaps(q place) bool {
	return p.ns != q.ns && overlapping(p.namespaces(), q.namespaces())
}

func (b *builder) placeOf(id int) place {
	a := b.atoms[id]
	return place{ns: a.ns, watch: strings.Join(a.watch, ","), asked: b.asking[id]}
}

// overlaps forbids overlaps in which a dependency takes part. Rule 10.
func (b *builder) overlaps() {
	if !b.several() {
		return
	}
	places := map[catalog.GVK][]place{}
	fact := map[catalog.GVK]map[place]int{}
	var order []catalog.GVK
	for id, a := range b.atoms {
		if a == nil || a.inst != nil && b.giveUp(a.inst) >= ignored {
			continue
		}
		at := b.placeOf(id)
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

func (b *builder) overlapTag(x, y string, g catalog.GVK) int {
	if y < x {
		x, y = y, x
	}
	return b.tag(bothProvide{fact{ns: x}, y, g}, nil)
}

// overlap returns what takes part in the first overlap between two things that
// are asked for, as a core: both, and the API. It returns nil for none. Rule 10.
func (b *builder) overlap(chosen []int) []int {
	if b.w.opt.AllowOverlap || !b.several() {
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
	seen := map[catalog.GVK][]provider{}
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
