package catalog

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// newChannel validates data and returns it as a Channel of p. It adds problems to faults.
func newChannel(p *Package, data *ChannelData, faults *diag.List) *Channel {
	c := &Channel{pkg: p, data: data, byName: make(map[string]*Entry, len(data.Entries))}
	before := len(*faults)
	if data.Name == "" {
		faults.Addf(data.Pos, "channel of package %q has no name", p.Name())
	} else if err := sanitize.CheckName(data.Name); err != nil {
		faults.Addf(data.Pos, "channel of package %q: name %w", p.Name(), err)
	}
	for i := range data.Entries {
		c.addEntry(&data.Entries[i], faults)
	}
	if len(data.Entries) == 0 {
		faults.Addf(data.Pos, "channel %q of package %q has no entry", data.Name, p.Name())
		return c
	}
	head := c.findHead(faults)
	if head == nil {
		return c
	}
	c.checkChain(head, faults)
	if len(*faults) == before {
		c.sortEntries(head)
	}
	return c
}

// CheckGraph validates the upgrade graph of a channel of package pkg. The error is a diag.List. Faults are a
// missing head, several heads, a cycle, and entries outside of the replaces chain. CheckGraph does not check
// whether the bundles exist.
func CheckGraph(pkg string, data ChannelData) error {
	var faults diag.List
	c := &Channel{pkg: &Package{data: &PackageData{Name: pkg}}, data: &data, byName: map[string]*Entry{}}
	for i := range data.Entries {
		e := &Entry{channel: c, data: &data.Entries[i]}
		c.byName[e.Name()] = e
		c.entries = append(c.entries, e)
	}
	if head := c.findHead(&faults); head != nil {
		c.checkChain(head, &faults)
	}
	return faults.Err()
}

func (c *Channel) addEntry(data *EntryData, faults *diag.List) {
	pos := data.Pos
	if pos.IsZero() {
		pos = c.data.Pos
	}
	if first, ok := c.byName[data.Name]; ok {
		faults.Addf(pos, "duplicate entry %q in channel %q of package %q%s", data.Name, c.Name(), c.pkg.Name(), otherPosition(first.data.Pos))
		return
	}
	e := &Entry{channel: c, data: data}
	if data.Name == "" {
		faults.Addf(pos, "channel %q of package %q has an entry without a name", c.Name(), c.pkg.Name())
		return
	}
	b, ok := c.pkg.byBundle[data.Name]
	if !ok {
		faults.Addf(pos, "entry %q of channel %q of package %q has no bundle%s",
			data.Name, c.Name(), c.pkg.Name(), diag.DidYouMean(data.Name, c.pkg.bundleNames()))
	}
	e.bundle = b
	if slices.Contains(data.Skips, "") {
		faults.Addf(pos, "entry %q of channel %q of package %q skips an empty name", data.Name, c.Name(), c.pkg.Name())
	}
	if data.SkipRange != "" {
		e.skipRange, e.badRange = ParseRange(data.SkipRange)
	}
	for _, name := range append([]string{data.Replaces}, data.Skips...) {
		if err := sanitize.CheckName(name); err != nil {
			faults.Addf(pos, "entry %q of channel %q of package %q replaces or skips an invalid name: %w", data.Name, c.Name(), c.pkg.Name(), err)
		}
	}
	c.byName[data.Name] = e
	c.entries = append(c.entries, e)
}

// findHead returns the head: the only entry that no other entry replaces or skips. If there is not
// exactly one, it adds a fault and returns nil.
func (c *Channel) findHead(faults *diag.List) *Entry {
	incoming := make(map[string]bool, len(c.entries))
	for _, e := range c.entries {
		if e.data.Replaces != "" {
			incoming[e.data.Replaces] = true
		}
		for _, s := range e.data.Skips {
			incoming[s] = true
		}
	}
	var heads []*Entry
	for _, e := range c.entries {
		if !incoming[e.Name()] {
			heads = append(heads, e)
		}
	}
	switch len(heads) {
	case 1:
		return heads[0]
	case 0:
		faults.Addf(c.data.Pos, "channel %q of package %q has no head: every entry is replaced or skipped by another", c.Name(), c.pkg.Name())
	default:
		faults.Addf(c.data.Pos, "channel %q of package %q has %d heads: %s", c.Name(), c.pkg.Name(), len(heads), nameList(heads))
	}
	return nil
}

// checkChain follows the replaces chain from the head to the first skipped entry. It adds a fault
// for a cycle, and for entries that are neither in the chain nor skipped.
func (c *Channel) checkChain(head *Entry, faults *diag.List) {
	skipped := c.skippedNames()
	reached := map[string]bool{}
	var path []string
	for e := head; e != nil; e = c.byName[e.data.Replaces] {
		path = append(path, e.Name())
		reached[e.Name()] = true
		next := e.data.Replaces
		if next == "" {
			break
		}
		if reached[next] {
			at := slices.Index(path, next)
			faults.Addf(c.data.Pos, "channel %q of package %q has a cycle: %s",
				c.Name(), c.pkg.Name(), strings.Join(append(path[at:], next), " replaces "))
			return
		}
		if skipped[next] {
			reached[next] = true
			break
		}
	}
	var stranded []*Entry
	for _, e := range c.entries {
		if !reached[e.Name()] && !skipped[e.Name()] {
			stranded = append(stranded, e)
		}
	}
	if len(stranded) > 0 {
		faults.Addf(c.data.Pos, "channel %q of package %q: replaces chain from head %q does not reach %s",
			c.Name(), c.pkg.Name(), head.Name(), nameList(stranded))
	}
}

// sortEntries sets c.walk to the replaces chain from head, and sorts c.entries.
func (c *Channel) sortEntries(head *Entry) {
	skipped := c.skippedNames()
	seen := make(map[*Entry]bool, len(c.entries))
	for e := head; e != nil && !seen[e]; e = c.byName[e.data.Replaces] {
		seen[e] = true
		if !skipped[e.Name()] {
			e.walked = true
			c.walk = append(c.walk, e)
		}
	}
	rest := slices.DeleteFunc(c.entries, func(e *Entry) bool { return e.walked })
	slices.SortFunc(rest, func(a, b *Entry) int { return compareNewest(a.bundle, b.bundle) })
	c.entries = append(slices.Clone(c.walk), rest...)
}

func (c *Channel) skippedNames() map[string]bool {
	skipped := map[string]bool{}
	for _, e := range c.entries {
		for _, s := range e.data.Skips {
			skipped[s] = true
		}
	}
	return skipped
}

// nameList returns the names of entries for a message, sorted and quoted. A long list is cut and
// ends in an ellipsis.
func nameList(entries []*Entry) string {
	const most = 10
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = `"` + e.Name() + `"`
	}
	slices.Sort(names)
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}
