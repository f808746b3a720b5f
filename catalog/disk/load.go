package disk

import (
	"slices"

	"github.com/quayside/quayside/catalog"
)

// tables is what says which packages belong together.
type tables struct {
	needs  []catalog.Needs // by number
	apis   map[catalog.GVK][]int
	labels map[string][]int
}

// Load returns the contents of several indexes, in their order, as far as want
// reaches: the packages that it names, those that can meet what it requires,
// and those that the bundles of these need in turn, in whichever index they
// are. The other packages are in Content.Unread. ID, Priority, Labels and
// Source are the caller's to fill.
//
// A damaged index is a *LoadError, which says which one.
func Load(files []*File, want catalog.Needs) ([]catalog.Content, error) {
	c := &closure{files: files, chosen: make([][]bool, len(files))}
	for i, f := range files {
		c.chosen[i] = make([]bool, len(f.packages))
		if err := f.readTables(); err != nil {
			return nil, &LoadError{i, err}
		}
	}
	c.follow(want)
	out := make([]catalog.Content, len(files))
	for i, f := range files {
		var err error
		if out[i], err = f.content(c.numbers(i)); err != nil {
			return nil, &LoadError{i, err}
		}
	}
	return out, nil
}

// LoadError says which of several indexes is damaged.
type LoadError struct {
	Index int
	Err   error // a *FaultError
}

// Error returns what is wrong with the index.
func (e *LoadError) Error() string { return e.Err.Error() }

// Unwrap returns the *FaultError.
func (e *LoadError) Unwrap() error { return e.Err }

// Select returns the contents of several indexes, in their order, with nothing
// but the packages of these names. Otherwise as Load.
func Select(files []*File, names ...string) ([]catalog.Content, error) {
	out := make([]catalog.Content, len(files))
	for i, f := range files {
		var numbers []int
		for _, name := range names {
			if k, ok := f.number(name); ok {
				numbers = append(numbers, k)
			}
		}
		slices.Sort(numbers)
		var err error
		if out[i], err = f.content(slices.Compact(numbers)); err != nil {
			return nil, &LoadError{i, err}
		}
	}
	return out, nil
}

func (f *File) readTables() error {
	if f.tables != nil {
		return nil
	}
	needed, err := f.read("needs", f.sections[needs])
	if err != nil {
		return err
	}
	provided, err := f.read("providers", f.sections[providers])
	if err != nil {
		return err
	}
	t := &tables{needs: make([]catalog.Needs, len(f.packages)), apis: map[catalog.GVK][]int{}, labels: map[string][]int{}}
	d := newDecoder(needed)
	for i := range t.needs {
		t.needs[i] = d.needs()
	}
	p := newDecoder(provided)
	number := func() int {
		n := p.int()
		if n >= len(f.packages) {
			p.fail()
		}
		return n
	}
	for range p.count(4) {
		t.apis[p.gvk()] = list(p, number)
	}
	for range p.count(2) {
		t.labels[p.text()] = list(p, number)
	}
	if d.bad || p.bad {
		return faultf("malformed tables")
	}
	f.tables = t
	return nil
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
		for i, f := range c.files {
			for _, name := range n.Packages {
				if k, ok := f.number(name); ok {
					c.choose(i, k)
				}
			}
			for _, g := range n.APIs {
				c.choose(i, f.tables.apis[g]...)
			}
			for _, l := range n.Labels {
				c.choose(i, f.tables.labels[l]...)
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

func (c *closure) numbers(file int) []int {
	var out []int
	for k, chosen := range c.chosen[file] {
		if chosen {
			out = append(out, k)
		}
	}
	return slices.Clip(out)
}
