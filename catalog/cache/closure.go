package cache

import (
	"slices"

	"github.com/quayside/quayside/catalog"
)

// Picker selects packages from indexes. needs are the combined needs of the catalogs that have no
// index. The result has one content for each index, without ID, Priority, Labels and Source.
type Picker func(indexes []*Index, needs catalog.Needs) ([]catalog.Content, error)

// PickClosure returns a Picker that selects all packages that resolution may need. It selects the packages in
// want, and the providers of the APIs and labels in want. For the needs of each selected package, it does this
// again. It searches all indexes. If an API has no provider, it selects the providers of other versions of the
// API. Packages that are not selected are listed in Content.Unread.
func PickClosure(want catalog.Needs) Picker {
	return func(indexes []*Index, needs catalog.Needs) ([]catalog.Content, error) {
		c := &closure{indexes: indexes, chosen: make([][]bool, len(indexes))}
		for i, x := range indexes {
			c.chosen[i] = make([]bool, len(x.head.Packages))
		}
		c.addRequired(want.Union(needs))
		return pickContents(indexes, func(i, number int) bool { return c.chosen[i][number] })
	}
}

// PickNames returns a Picker of the packages with these names, without their dependencies.
func PickNames(names ...string) Picker {
	return func(indexes []*Index, _ catalog.Needs) ([]catalog.Content, error) {
		return pickContents(indexes, func(i, number int) bool {
			return slices.Contains(names, indexes[i].head.Packages[number].Summary.Name)
		})
	}
}

func pickContents(indexes []*Index, chosen func(i, number int) bool) ([]catalog.Content, error) {
	out := make([]catalog.Content, len(indexes))
	for i, x := range indexes {
		var err error
		if out[i], err = x.content(func(number int) bool { return chosen(i, number) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// providers maps APIs and labels to the packages whose bundles provide them, as indexes into
// head.Packages.
type providers struct {
	apis   map[catalog.GVK][]int
	labels map[string][]int
}

func (x *Index) buildProviders() *providers {
	if x.providers != nil {
		return x.providers
	}
	p := &providers{apis: map[catalog.GVK][]int{}, labels: map[string][]int{}}
	for i, r := range x.head.Packages {
		for _, g := range r.APIs {
			p.apis[g] = append(p.apis[g], i)
		}
		for _, l := range r.Labels {
			p.labels[l] = append(p.labels[l], i)
		}
	}
	x.providers = p
	return p
}

// closure is the state of a PickClosure: the selected packages, and the needs that are not yet
// processed.
type closure struct {
	indexes []*Index
	chosen  [][]bool // chosen[i][k]: package k of indexes[i] is selected
	queue   []catalog.Needs
}

// addRequired selects the packages that meet the needs in want, and then the packages that meet their needs.
func (c *closure) addRequired(want catalog.Needs) {
	c.queue = append(c.queue, want)
	for len(c.queue) > 0 {
		n := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if n.Anything {
			c.chooseAll()
			return
		}
		for _, g := range n.APIs {
			c.addProviders(g)
		}
		for i, x := range c.indexes {
			for _, name := range n.Packages {
				if k, ok := x.number(name); ok {
					c.choose(i, k)
				}
			}
			for _, l := range n.Labels {
				c.choose(i, x.buildProviders().labels[l]...)
			}
		}
	}
}

// addProviders selects the packages that provide g. If there are none, it selects those that
// provide another version of the same API.
func (c *closure) addProviders(g catalog.GVK) {
	known := slices.ContainsFunc(c.indexes, func(x *Index) bool { return len(x.buildProviders().apis[g]) > 0 })
	for i, x := range c.indexes {
		c.choose(i, x.buildProviders().apis[g]...)
		if known {
			continue
		}
		for other, numbers := range x.buildProviders().apis {
			if other.Group == g.Group && other.Kind == g.Kind {
				c.choose(i, numbers...)
			}
		}
	}
}

func (c *closure) choose(i int, numbers ...int) {
	for _, k := range numbers {
		if !c.chosen[i][k] {
			c.chosen[i][k] = true
			c.queue = append(c.queue, c.indexes[i].head.Packages[k].Needs)
		}
	}
}

func (c *closure) chooseAll() {
	for i := range c.chosen {
		for k := range c.chosen[i] {
			c.chosen[i][k] = true
		}
	}
}
