package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// ChangeKind is the kind of a change between two catalogs.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Part is the part of a catalog that a change affects.
type Part string

// The parts. The changes of one package are sorted in this order.
const (
	PartPackage     Part = "package"        // From, To: the version of the default channel's head
	PartDefault     Part = "defaultChannel" // default channel of a package
	PartLifecycle   Part = "lifecycle"      // support of a MAJOR.MINOR version; From, To: its phases and platforms
	PartDeprecation Part = "deprecation"    // deprecation message of a package, channel or bundle
	PartChannel     Part = "channel"        // From, To: the head of the channel
	PartHead        Part = "head"           // head of a channel
	PartEdges       Part = "edges"          // upgrade edges of a channel entry; From, To: its replaces, skips and skipRange
	PartBundle      Part = "bundle"         // From, To: the version
	PartImage       Part = "image"          // image of a bundle
	PartVersion     Part = "version"        // version of a bundle
	PartProperties  Part = "properties"     // properties of a bundle; From, To: those that only one catalog has
	PartImages      Part = "relatedImages"  // related images of a bundle; From, To: those that only one catalog has
)

// Change is one difference between two catalogs.
type Change struct {
	Kind    ChangeKind `json:"change"`
	Part    Part       `json:"part"`
	Package string     `json:"package"`
	Channel string     `json:"channel,omitempty"` // name of the channel, for a change of a channel, an entry or a head
	Bundle  string     `json:"bundle,omitempty"`  // name of the bundle, for a change of an entry or a bundle
	Version string     `json:"version,omitempty"` // MAJOR.MINOR; set for a lifecycle
	From    string     `json:"from,omitempty"`    // empty if added
	To      string     `json:"to,omitempty"`      // empty if removed
}

// Diff returns the changes from old to new. They are sorted by package: first the package itself,
// then its channels by name with their entries, then its bundles by name. An added or removed package
// or channel is one change; its parts are not listed. Diff ignores the order of packages and the
// source of the catalogs.
func Diff(old, new *Catalog) []Change {
	d := &differ{}
	diffParts(d, Change{Part: PartPackage}, old.Packages(), new.Packages(), (*Package).Name, func(*Change) *string { return &d.pkg }, headVersion, d.diffPackages)
	return d.changes
}

// differ collects changes, one package at a time.
type differ struct {
	changes []Change
	pkg     string // name of the current package
}

// diffParts compares two lists of parts by name. For a part in both lists, it passes a copy of c to the
// function both. For an added or removed part, it adds a copy of c, with the result of describe as From or To.
// nameField returns the field of the copy that holds the name of the part.
func diffParts[T any](d *differ, c Change, old, new []*T, name func(*T) string, nameField func(*Change) *string, describe func(*T) string, both func(c Change, a, b *T)) {
	byName := map[string][2]*T{}
	for side, list := range [][]*T{old, new} {
		for _, v := range list {
			sides := byName[name(v)]
			sides[side] = v
			byName[name(v)] = sides
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byName)) {
		a, b := byName[n][0], byName[n][1]
		c := c
		*nameField(&c), c.Kind = n, Added
		if a != nil {
			c.From, c.Kind = describe(a), Removed
		}
		if b != nil {
			c.To = describe(b)
		}
		if a != nil && b != nil {
			both(c, a, b)
			continue
		}
		c.Package = d.pkg
		d.changes = append(d.changes, c)
	}
}

// add adds c, a change of a part that both catalogs contain. It does nothing if From equals To.
func (d *differ) add(c Change) {
	if c.From != c.To {
		c.Kind, c.Package = Changed, d.pkg
		d.changes = append(d.changes, c)
	}
}

func (d *differ) diffPackages(_ Change, a, b *Package) {
	d.add(Change{Part: PartDefault, From: a.DefaultChannel(), To: b.DefaultChannel()})
	diffParts(d, Change{Part: PartLifecycle}, pointers(a.Lifecycle()), pointers(b.Lifecycle()), func(v *SupportedVersion) string { return v.Name }, func(c *Change) *string { return &c.Version },
		formatLifecycle, func(c Change, _, _ *SupportedVersion) { d.add(c) })
	d.add(Change{Part: PartDeprecation, From: a.Deprecation(), To: b.Deprecation()})
	diffParts(d, Change{Part: PartChannel}, a.Channels(), b.Channels(), (*Channel).Name, func(c *Change) *string { return &c.Channel },
		func(ch *Channel) string { return ch.Head().Name() }, d.diffChannels)
	diffParts(d, Change{Part: PartBundle}, a.Bundles(), b.Bundles(), (*Bundle).Name, func(c *Change) *string { return &c.Bundle },
		func(b *Bundle) string { return b.VersionText() }, d.diffBundles)
}

func pointers(list []SupportedVersion) []*SupportedVersion {
	out := make([]*SupportedVersion, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// formatLifecycle formats the support phases of v in their order, and its platforms in alphabetical order.
func formatLifecycle(v *SupportedVersion) string {
	var phases, platforms []string
	for _, p := range v.Phases {
		phases = append(phases, p.Name+" "+p.Start+" to "+p.End)
	}
	for _, p := range v.Platforms {
		platforms = append(platforms, p.Name+" "+p.Version)
	}
	slices.Sort(platforms)
	return strings.Join(append([]string{strings.Join(phases, ", ")}, platforms...), "; ")
}

// headVersion returns the version of the head of the default channel, or "".
func headVersion(p *Package) string {
	if c, ok := p.Channel(p.DefaultChannel()); ok && c.Head().Bundle() != nil {
		return c.Head().Bundle().VersionText()
	}
	return ""
}

func (d *differ) diffChannels(c Change, a, b *Channel) {
	d.add(Change{Part: PartDeprecation, Channel: c.Channel, From: a.Deprecation(), To: b.Deprecation()})
	d.add(Change{Part: PartHead, Channel: c.Channel, From: c.From, To: c.To})
	diffParts(d, Change{Part: PartEdges, Channel: c.Channel}, a.Entries(), b.Entries(), (*Entry).Name, func(c *Change) *string { return &c.Bundle },
		(*Entry).formatEdges, func(c Change, _, _ *Entry) { d.add(c) })
}

// formatEdges formats the replaces, skips and skipRange of e.
func (e *Entry) formatEdges() string {
	var parts []string
	if name := e.Replaces(); name != "" {
		parts = append(parts, "replaces "+name)
	}
	if skips := e.Skips(); len(skips) > 0 {
		slices.Sort(skips)
		parts = append(parts, "skips "+strings.Join(slices.Compact(skips), ", "))
	}
	if r, ok := e.SkipRange(); ok {
		parts = append(parts, "skips range "+r.String())
	}
	return strings.Join(parts, "; ")
}

func (d *differ) diffBundles(c Change, a, b *Bundle) {
	d.add(Change{Part: PartVersion, Bundle: c.Bundle, From: c.From, To: c.To})
	d.add(Change{Part: PartDeprecation, Bundle: c.Bundle, From: a.Deprecation(), To: b.Deprecation()})
	d.add(Change{Part: PartImage, Bundle: c.Bundle, From: a.Image(), To: b.Image()})
	from, to := onlyIn(propertyTexts(a), propertyTexts(b))
	d.add(Change{Part: PartProperties, Bundle: c.Bundle, From: from, To: to})
	from, to = onlyIn(imageTexts(a), imageTexts(b))
	d.add(Change{Part: PartImages, Bundle: c.Bundle, From: from, To: to})
}

func propertyTexts(b *Bundle) []string {
	var out []string
	for _, p := range b.Properties() {
		if p.Type != TypePackage { // changes of olm.package are reported as PartVersion
			out = append(out, p.Type+" "+canonicalJSON(p.Value))
		}
	}
	return out
}

// canonicalJSON returns raw with sorted keys, and without insignificant escapes and white space. It
// returns invalid JSON unchanged.
func canonicalJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := dec.Decode(&value); err != nil || enc.Encode(value) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func imageTexts(b *Bundle) []string {
	var out []string
	for _, im := range b.RelatedImages() {
		if im.Image != b.Image() { // a change of the bundle image is reported as PartImage
			out = append(out, im.Image)
		}
	}
	return out
}

// onlyIn returns the items that are only in a, and those that are only in b. Both results are
// sorted and joined by commas.
func onlyIn(a, b []string) (onlyA, onlyB string) {
	minus := func(x, y []string) string {
		rest := slices.DeleteFunc(slices.Clone(x), func(s string) bool { return slices.Contains(y, s) })
		slices.Sort(rest)
		return strings.Join(slices.Compact(rest), ", ")
	}
	return minus(a, b), minus(b, a)
}
