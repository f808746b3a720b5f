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

// assemblePackage builds a package and its channels from its bundles.
func assemblePackage(name string, members []*member) (catalog.PackageData, []diag.Warning) {
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
		data, w := linkChannel(name, ch, channels[ch])
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

// defaultChannel returns the default channel of a package: the default that the newest bundle declares. If that
// channel does not exist, the next older bundle decides, and so on. Adding the bundles to an index in version
// order gives the same result. If no bundle declares an existing channel, the default is the only channel of
// the package or, if there are several, the first channel (by name) of the newest bundle. It returns a warning
// if the newest declared default does not exist, or if nothing declares one of several channels.
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
		return m.defaultChannel, []diag.Warning{newGuessedDefaultWarning(pkg, newestFirst[0], absent, m.defaultChannel)}
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
	return guess, []diag.Warning{newGuessedDefaultWarning(pkg, newestFirst[0], absent, guess)}
}

func newGuessedDefaultWarning(pkg string, newest *member, absent, guess string) diag.Warning {
	why := "no bundle has a default channel"
	if absent != "" {
		why = fmt.Sprintf("no bundle here is in the default channel %q", absent)
	}
	return diag.Warning{
		Pos: newest.data.Pos, Code: "bundle-default-channel", Subject: pkg,
		Msg: fmt.Sprintf("package %q: %s; using %q", pkg, why, guess),
	}
}

// linkChannel builds a channel from its bundles, which are sorted newest first. The CSVs contain the upgrade
// edges. If bundles are missing and the edges do not form a valid graph, it calls bridgeGaps and returns a
// warning.
func linkChannel(pkg, name string, members []*member) (catalog.ChannelData, []diag.Warning) {
	ch := catalog.ChannelData{Name: name, Pos: members[0].data.Pos}
	for _, m := range members {
		ch.Entries = append(ch.Entries, m.entry)
	}
	broken := catalog.CheckGraph(pkg, ch)
	if broken == nil {
		return ch, nil
	}
	entries, changed := bridgeGaps(ch.Entries)
	if len(changed) == 0 {
		return ch, nil // still not a valid graph: catalog.New reports the reason
	}
	ch.Entries = entries
	return ch, []diag.Warning{{
		Pos: ch.Pos, Code: "bundle-gap", Subject: pkg,
		Msg: fmt.Sprintf("channel %q of package %q is ordered by version, because its bundles do not form one graph: %s",
			name, pkg, strings.Join(changed, ", ")),
	}}
}

// bridgeGaps links the entries that no entry skips into one chain, in which each entry replaces the
// next older entry. entries are sorted newest first. An entry that replaced a missing bundle now skips
// this bundle, so that clusters with the bundle can still upgrade. changed describes the new edges.
func bridgeGaps(entries []catalog.EntryData) (bridged []catalog.EntryData, changed []string) {
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
			changed = append(changed, setReplaces(newer, e.Name, present))
		}
		newer = e
	}
	if newer != nil && present[newer.Replaces] {
		changed = append(changed, setReplaces(newer, "", present))
	}
	for i := range bridged {
		if e := &bridged[i]; skipped[e.Name] && e.Replaces == head {
			changed = append(changed, setReplaces(e, "", present))
		}
	}
	return bridged, changed
}

// setReplaces sets the bundle that e replaces. An empty name means that e replaces nothing. If the bundle that
// e replaced before is not in present, e now skips it. The result describes the change.
func setReplaces(e *catalog.EntryData, name string, present map[string]bool) string {
	if old := e.Replaces; old != "" && !present[old] && !slices.Contains(e.Skips, old) {
		e.Skips = append(slices.Clone(e.Skips), old)
	}
	e.Replaces = name
	if name == "" {
		return fmt.Sprintf("%q replaces nothing", e.Name)
	}
	return fmt.Sprintf("%q replaces %q", e.Name, name)
}
