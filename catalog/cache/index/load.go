package index

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Load returns the contents of several indexes, in their order, as far as want
// reaches: the packages that it names, those that can meet what it requires,
// and those that the bundles of these need in turn, in whichever index they
// are; for a package that no index has, those that are spelled nearly alike, and
// for an API that nothing provides, those that provide another version of it.
// The other packages are in Content.Unread. ID, Priority, Labels and Source are
// the caller's to fill.
//
// The error is a *FaultError that says which index is damaged.
func Load(files []*File, want catalog.Needs) ([]catalog.Content, error) {
	c := &closure{files: files, chosen: make([][]bool, len(files))}
	for i, f := range files {
		c.chosen[i] = make([]bool, len(f.packages))
		if err := f.readTables(); err != nil {
			return nil, of(i, err)
		}
	}
	c.near(want.Packages)
	c.follow(want)
	return contents(files, func(file, number int) bool { return c.chosen[file][number] })
}

// Select returns the contents of several indexes, in their order, with nothing
// but the packages of these names. Otherwise as Load.
func Select(files []*File, names ...string) ([]catalog.Content, error) {
	return contents(files, func(file, number int) bool {
		return slices.Contains(names, files[file].packages[number].summary.Name)
	})
}

func contents(files []*File, chosen func(file, number int) bool) ([]catalog.Content, error) {
	out := make([]catalog.Content, len(files))
	for i, f := range files {
		var err error
		if out[i], err = f.content(func(number int) bool { return chosen(i, number) }); err != nil {
			return nil, of(i, err)
		}
	}
	return out, nil
}

// tables is what says which packages belong together.
type tables struct {
	needs  []catalog.Needs // by number
	apis   map[catalog.GVK][]int
	labels map[string][]int
}

func (f *File) readTables() error {
	if f.tables != nil {
		return nil
	}
	needed, err := f.read("needs", f.head.sections[needs])
	if err != nil {
		return err
	}
	provided, err := f.read("providers", f.head.sections[providers])
	if err != nil {
		return err
	}
	t := &tables{needs: make([]catalog.Needs, len(f.packages))}
	for i := range t.needs {
		needed.needs(&t.needs[i])
	}
	var apis []provider[catalog.GVK]
	var labels []provider[string]
	provided.providers(&apis, &labels, len(f.packages))
	t.apis, t.labels = byWhat(apis), byWhat(labels)
	if needed.bad || provided.bad {
		return faultf("malformed tables")
	}
	f.tables = t
	return nil
}

func byWhat[T comparable](list []provider[T]) map[T][]int {
	out := make(map[T][]int, len(list))
	for _, p := range list {
		out[p.what] = p.by
	}
	return out
}

// closure collects the packages that are wanted.
type closure struct {
	files  []*File
	chosen [][]bool // by file, then number
	queue  []catalog.Needs
}

// follow chooses what meets want, and what that needs in turn.
func (c *closure) follow(want catalog.Needs) {
	c.queue = append(c.queue, want)
	for len(c.queue) > 0 {
		n := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if n.Anything {
			c.all()
			return
		}
		for _, g := range n.APIs {
			c.provide(g)
		}
		for i, f := range c.files {
			for _, name := range n.Packages {
				if k, ok := f.number(name); ok {
					c.choose(i, k)
				}
			}
			for _, l := range n.Labels {
				c.choose(i, f.tables.labels[l]...)
			}
		}
	}
}

// near chooses what could be meant by names that no index has.
func (c *closure) near(names []string) {
	for _, name := range names {
		if slices.ContainsFunc(c.files, func(f *File) bool { _, ok := f.number(name); return ok }) {
			continue
		}
		for i, f := range c.files {
			have := make([]string, len(f.packages))
			for k := range f.packages {
				have[k] = f.packages[k].summary.Name
			}
			for _, meant := range diag.Nearest(name, have) {
				k, _ := f.number(meant)
				c.choose(i, k)
			}
		}
	}
}

// provide chooses what provides g, or where nothing does, another version of it.
func (c *closure) provide(g catalog.GVK) {
	known := slices.ContainsFunc(c.files, func(f *File) bool { return len(f.tables.apis[g]) > 0 })
	for i, f := range c.files {
		c.choose(i, f.tables.apis[g]...)
		if known {
			continue
		}
		for other, numbers := range f.tables.apis {
			if other.Group == g.Group && other.Kind == g.Kind {
				c.choose(i, numbers...)
			}
		}
	}
}

func (c *closure) choose(file int, numbers ...int) {
	for _, k := range numbers {
		if !c.chosen[file][k] {
			c.chosen[file][k] = true
			c.queue = append(c.queue, c.files[file].tables.needs[k])
		}
	}
}

func (c *closure) all() {
	for i := range c.chosen {
		for k := range c.chosen[i] {
			c.chosen[i][k] = true
		}
	}
}
