package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// addDependencies adds an atom for every bundle that can meet a requirement of the atoms, directly
// or transitively.
func (b *builder) addDependencies() {
	for len(b.todo) > 0 {
		id := b.todo[0]
		b.todo = b.todo[1:]
		a := b.atoms[id]
		if a.skipped {
			continue
		}
		for _, r := range a.facts.needs {
			if r.err() == nil {
				a.needs = append(a.needs, need{r, b.candidates(a, r)})
			}
		}
	}
}

// candidates returns the atoms that meet a requirement of atom a, in the same namespace, most preferred first:
// installed bundles, then bundles from the catalog of a, then bundles from other catalogs. It implements Rule 1
// and Rule 15.
func (b *builder) candidates(a *atom, r *requirement) []int {
	key := needKey{a.ns, a.catalog(), r}
	if of, ok := b.candidateLists[key]; ok {
		return of
	}
	var have []*installed
	for _, i := range b.st.installed {
		if i.ns == a.ns && r.match(i.facts) {
			have = append(have, i)
		}
	}
	slices.SortStableFunc(have, func(x, y *installed) int {
		return cmp.Or(strings.Compare(x.pkg(), y.pkg()), strings.Compare(x.bundle, y.bundle))
	})
	var of []int
	for _, i := range have {
		of = append(of, b.installedAtom(i))
	}
	add := func(c *catalog.Catalog) {
		for _, e := range b.w.providers(c, r) {
			if b.w.isCandidate(a.ns, e) {
				of = append(of, b.entryAtom(a.ns, e))
			}
		}
	}
	own := a.catalog()
	if own != nil {
		add(own)
	}
	for _, c := range b.w.catalogs(a.ns) {
		if c != own {
			add(c)
		}
	}
	b.candidateLists[key] = of
	return of
}

// isCandidate reports whether an entry may be added to a namespace to meet a requirement. A bundle of a
// format other than OLM's must be declared, because its catalog does not contain the provided APIs.
func (w *environment) isCandidate(ns string, e *catalog.Entry) bool {
	return e.Bundle().Format() == "" || slices.ContainsFunc(w.decl.Subscriptions, func(d declare.Subscription) bool {
		return d.Namespace == ns && d.Package == e.Channel().Package().Name()
	})
}

// addConstraints adds the requirements of all atoms, and the exclusions between atoms, to the
// problem. The order is the same in each run.
func (b *builder) addConstraints() {
	b.p.Atoms = len(b.atoms) - 1
	b.p.Needs = make([][]solve.Choice, len(b.atoms))
	shared := b.newSharedProviders()
	for id := 1; id < len(b.atoms); id++ {
		a := b.atoms[id]
		for _, n := range a.needs {
			r, of := n.req, n.of
			choice := solve.Choice{Of: of, Tag: b.requirementTag(requirementCause{fact{a.ns, a.bundle()}, r}, of)}
			if shared != nil {
				choice = shared.addShared(a, r, choice)
			}
			b.p.Needs[id] = append(b.p.Needs[id], choice)
		}
	}
	done := map[pkgKey]bool{}
	apis := map[apiKey]bool{}
	for _, a := range b.atoms[1:] {
		if k := (pkgKey{a.ns, a.facts.pkg}); !done[k] && len(b.byPkg[k]) > 1 {
			done[k] = true
			b.p.Groups = append(b.p.Groups, solve.Group{Of: b.byPkg[k], Tag: b.tag(onePackageCause{fact{ns: k.ns}, k.pkg}, b.byPkg[k])})
		}
		for i, api := range a.facts.apiNumbers {
			k := apiKey{a.ns, api}
			if apis[k] {
				continue
			}
			apis[k] = true
			of := b.byAPI[k]
			if len(of) < 2 || b.isOnePackage(of) {
				continue // already excluded: at most one bundle of a package
			}
			b.p.Groups = append(b.p.Groups, solve.Group{Of: of, Tag: b.tag(oneProviderCause{fact{ns: a.ns}, a.facts.apis[i]}, of)})
		}
	}
	if !b.w.opt.AllowOverlap {
		b.forbidOverlaps()
	}
}

// isOnePackage reports whether all atoms are bundles of the same package.
func (b *builder) isOnePackage(ids []int) bool {
	pkg := b.atoms[ids[0]].facts.pkg
	return pkg != "" && !slices.ContainsFunc(ids, func(id int) bool { return b.atoms[id].facts.pkg != pkg })
}
