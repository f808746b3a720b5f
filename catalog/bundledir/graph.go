package bundledir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// assemble makes a package of its bundles.
func assemble(name string, members []*member) (catalog.PackageData, []diag.Warning) {
	slices.SortFunc(members, newestFirst)
	newest := members[0]
	p := catalog.PackageData{Name: name, Description: newest.description, Pos: newest.data.Pos}
	channels := map[string][]*member{}
	for _, m := range members {
		p.Bundles = append(p.Bundles, m.data)
		for _, ch := range m.channels {
			channels[ch] = append(channels[ch], m)
		}
	}
	slices.SortFunc(p.Bundles, func(a, b catalog.BundleData) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	var warnings []diag.Warning
	for _, ch := range slices.Sorted(maps.Keys(channels)) {
		data, w := link(name, ch, channels[ch])
		p.Channels = append(p.Channels, data)
		warnings = append(warnings, w...)
	}
	def, w := defaultChannel(name, members, channels)
	p.DefaultChannel = def
	return p, append(warnings, w...)
}

func newestFirst(a, b *member) int {
	return cmp.Or(
		b.version.Compare(a.version),
		-slices.Compare(a.version.Build, b.version.Build),
		strings.Compare(a.data.Name, b.data.Name),
		a.data.Pos.Compare(b.data.Pos),
	)
}

// defaultChannel returns the channel that the newest bundle with an opinion
// names, of those that exist: what adding the bundles to an index in the order
// of their versions would leave. Without any, it is the only channel, or the
// first by name of the newest bundle's.
func defaultChannel(pkg string, newestFirst []*member, channels map[string][]*member) (string, []diag.Warning) {
	absent := ""
	for _, m := range newestFirst {
		if m.defaultChannel == "" {
			continue
		}
		if _, ok := channels[m.defaultChannel]; !ok {
			absent = cmp.Or(absent, m.defaultChannel)
			continue
		}
		if absent == "" {
			return m.defaultChannel, nil
		}
		return m.defaultChannel, []diag.Warning{guessed(pkg, newestFirst[0], absent, m.defaultChannel)}
	}
	names := slices.Sorted(maps.Keys(channels))
	if len(names) == 0 {
		return absent, nil
	}
	guess := names[0]
	if own := slices.Sorted(slices.Values(newestFirst[0].channels)); len(own) > 0 {
		guess = own[0]
	}
	if len(names) == 1 && absent == "" {
		return guess, nil
	}
	return guess, []diag.Warning{guessed(pkg, newestFirst[0], absent, guess)}
}

func guessed(pkg string, newest *member, absent, guess string) diag.Warning {
	why := "no bundle names a default channel"
	if absent != "" {
		why = fmt.Sprintf("no bundle here is in the default channel %q", absent)
	}
	return diag.Warning{
		Pos: newest.data.Pos, Code: "bundle-default-channel", Subject: pkg,
		Msg: fmt.Sprintf("package %q: %s; %q is taken", pkg, why, guess),
	}
}

// link makes a channel of its bundles, newest first. The edges are those that
// the CSVs declare, as long as these make a valid graph. They do not where
// bundles in between are absent: then gaps are bridged in version order.
func link(pkg, name string, members []*member) (catalog.ChannelData, []diag.Warning) {
	ch := catalog.ChannelData{Name: name, Pos: members[0].data.Pos}
	for _, m := range members {
		ch.Entries = append(ch.Entries, m.entry)
	}
	broken := catalog.CheckGraph(pkg, ch)
	if broken == nil {
		return ch, nil
	}
	entries, changed := bridge(ch.Entries)
	if len(changed) == 0 {
		return ch, nil // beyond this remedy; the catalog's check says why
	}
	ch.Entries = entries
	return ch, []diag.Warning{{
		Pos: ch.Pos, Code: "bundle-gap", Subject: pkg,
		Msg: fmt.Sprintf("channel %q of package %q is ordered by version, because the bundles here do not form one graph: %s",
			name, pkg, strings.Join(changed, ", ")),
	}}
}

// bridge returns entries, given newest first, with those that none skips in one
// chain: each replaces the next older. An absent bundle that an entry replaced
// is skipped by it instead, so that the edge from it stays. changed says what
// replaces what now.
func bridge(entries []catalog.EntryData) (bridged []catalog.EntryData, changed []string) {
	present, skipped := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		present[e.Name] = true
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	bridged = slices.Clone(entries)
	var newer *catalog.EntryData
	head := ""
	for i := range bridged {
		e := &bridged[i]
		if skipped[e.Name] {
			continue
		}
		if newer == nil {
			head = e.Name
		} else if newer.Replaces != e.Name {
			changed = append(changed, replace(newer, e.Name, present))
		}
		newer = e
	}
	if newer != nil && present[newer.Replaces] {
		changed = append(changed, replace(newer, "", present))
	}
	for i := range bridged {
		if e := &bridged[i]; skipped[e.Name] && e.Replaces == head {
			changed = append(changed, replace(e, "", present))
		}
	}
	return bridged, changed
}

// replace makes e replace name, and says so.
func replace(e *catalog.EntryData, name string, present map[string]bool) string {
	if old := e.Replaces; old != "" && !present[old] && !slices.Contains(e.Skips, old) {
		e.Skips = append(slices.Clone(e.Skips), old)
	}
	e.Replaces = name
	if name == "" {
		return fmt.Sprintf("%q replaces nothing", e.Name)
	}
	return fmt.Sprintf("%q replaces %q", e.Name, name)
}
