package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/subscription"
)

// option is one thing that a subscription can be answered by: an entry, or what
// is installed.
type option struct {
	entry   *catalog.Entry // nil: what is installed
	current *installed
}

// options is what a subscription can be answered by, the preferred first; or
// why it cannot be answered at all.
type options struct {
	of    []option
	fault *fault
	stay  string // why nothing but what is installed is offered: "installPlanApproval is Manual"
	down  []*catalog.Entry
}

// fault is a mistake in one declaration.
type fault struct {
	pos diag.Pos
	msg string
}

// manner says how a subscription is treated in a round.
type manner int

const (
	keepIt manner = iota // what is installed is preferred
	moveIt               // upgrades are preferred
	fixIt                // only what is installed
)

// manner returns how s is treated, and why it stays where it does.
func (w *world) manner(s *want) (manner, string) {
	if s.current == nil {
		return moveIt, ""
	}
	if s.hold != "" {
		return fixIt, "held: " + s.hold
	}
	if w.named(s) != nil || w.follows(s) != nil {
		return moveIt, ""
	}
	if s.approval == subscription.Manual {
		return fixIt, "its approval is Manual: only --upgrade=" + s.ns + "/" + s.pkg + " moves it"
	}
	if w.opt.Upgrade {
		return moveIt, ""
	}
	return keepIt, ""
}

// named returns the target that names s, or nil.
func (w *world) named(s *want) *Target {
	for i := range w.opt.Named {
		if t := &w.opt.Named[i]; t.Namespace == s.ns && t.Package == s.pkg {
			return t
		}
	}
	return nil
}

// bound returns the target for which s can be answered by one version alone, and that
// says where it stands; nil where none does.
func (w *world) bound(s *want) *Target {
	t := w.named(s)
	if t == nil || t.Version == "" || t.At.IsZero() || s.current != nil && s.current.is(t.Version) {
		return nil
	}
	return t
}

// options returns what can answer s.
func (w *world) options(s *want) options {
	if sp := w.space(s.ns); sp.fault != "" {
		return options{fault: &fault{pos: sp.faultPos, msg: sp.fault}}
	}
	if s.pkg == "" && s.decl != nil && s.decl.Bundle != "" {
		return options{fault: &fault{pos: s.pos(subscription.FieldBundle), msg: fmt.Sprintf("bundle %q is in no catalog", s.decl.Bundle)}}
	}
	how, stay := w.manner(s)
	pkgs, bad := w.packages(s)
	if bad == nil && len(pkgs) > 0 {
		bad = w.checkChannels(s, pkgs)
	}
	if bad != nil {
		if s.current != nil && s.current.pin != nil && (how != moveIt || w.named(s) == nil && (s.generated || w.follows(s) != nil)) {
			return options{of: []option{{current: s.current}}, stay: bad.msg}
		}
		return options{fault: bad}
	}
	if s.current == nil {
		return w.fresh(s, pkgs)
	}
	if how == fixIt {
		return options{of: []option{{current: s.current}}, stay: stay}
	}
	if t := w.named(s); t != nil && t.Anew {
		return w.anew(s, pkgs)
	}
	return w.upgrades(s, pkgs, how)
}

// packages returns the package that s asks for, from each catalog that may
// serve it, the preferred first.
func (w *world) packages(s *want) ([]*catalog.Package, *fault) {
	if s.cat != nil {
		return w.packageFrom(s, *s.cat)
	}
	var found []*catalog.Package
	deselected := false
	for _, c := range w.catalogs(s.ns) {
		switch p, ok := c.Package(s.pkg); {
		case !ok:
		case s.decl != nil && !s.decl.Selector.Matches(c.Labels()):
			deselected = true
		default:
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		bad := w.noPackage(s, nil)
		if deselected {
			bad.pos = s.pos(subscription.FieldCatalog)
		}
		return nil, bad
	}
	if s.decl != nil && s.decl.Dialect == subscription.V1 {
		return found, nil
	}
	if len(found) > 1 {
		return nil, ambiguous(s, found)
	}
	return found, nil
}

func ambiguous(s *want, found []*catalog.Package) *fault {
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.Catalog().ID().String()
	}
	return &fault{
		pos: s.pos(subscription.FieldCatalog, subscription.FieldPackage), msg: fmt.Sprintf("package %q is in several catalogs: %s", s.pkg, strings.Join(ids, ", ")),
	}
}

func (w *world) packageFrom(s *want, id catalog.ID) ([]*catalog.Package, *fault) {
	c, ok := w.x.Catalog(id)
	if !ok {
		if err, broken := w.x.Broken()[id]; broken {
			return nil, &fault{pos: s.pos(subscription.FieldCatalog, subscription.FieldBundle), msg: fmt.Sprintf("catalog %s cannot be used: %v", id, err)}
		}
		return nil, &fault{pos: s.pos(subscription.FieldCatalog), msg: fmt.Sprintf("no catalog %s%s", id, w.haveCatalogs(s.ns))}
	}
	if !w.sees(s.ns, id) {
		return nil, &fault{
			pos: s.pos(subscription.FieldCatalogNamespace),
			msg: fmt.Sprintf("catalog %s is not visible in namespace %s, and those of namespace %s are", id, s.ns, strings.Join(append([]string{s.ns}, w.opt.GlobalNamespaces...), ", ")),
		}
	}
	p, ok := c.Package(s.pkg)
	if !ok {
		return nil, w.noPackage(s, c)
	}
	return []*catalog.Package{p}, nil
}

// haveCatalogs says which catalogs there are.
func (w *world) haveCatalogs(ns string) string {
	var names []string
	for _, c := range w.catalogs(ns) {
		names = append(names, c.ID().String())
	}
	if len(names) == 0 {
		return ""
	}
	return " (have " + list(names) + ")"
}

func (w *world) noPackage(s *want, c *catalog.Catalog) *fault {
	where := "in any visible catalog"
	if c != nil {
		where = "in catalog " + c.ID().String()
	}
	return &fault{s.pos(subscription.FieldPackage, subscription.FieldBundle), fmt.Sprintf("no package %q %s", s.pkg, where)}
}

// checkChannels finds permitted channels that no catalog has.
func (w *world) checkChannels(s *want, pkgs []*catalog.Package) *fault {
	for _, name := range s.channels {
		for _, p := range pkgs {
			if _, ok := p.Channel(name); ok {
				return nil
			}
		}
	}
	if len(s.channels) == 0 {
		return nil
	}
	return &fault{
		pos: s.pos(subscription.FieldChannel),
		msg: fmt.Sprintf("channel %q not in package %s (have %s)", strings.Join(s.channels, ", "), s.pkg, strings.Join(pkgs[0].ChannelNames(), ", ")),
	}
}

// channelsOf returns the channels of p that s permits: the default one first.
func (s *want) channelsOf(p *catalog.Package) []*catalog.Channel {
	var out []*catalog.Channel
	for _, ch := range p.Channels() {
		if len(s.channels) == 0 || slices.Contains(s.channels, ch.Name()) {
			out = append(out, ch)
		}
	}
	return out
}

// entriesOf returns what of returns for each channel that s permits, in order: of
// returns a list of its own each time.
func (s *want) entriesOf(pkgs []*catalog.Package, of func(*catalog.Channel) []*catalog.Entry) []*catalog.Entry {
	var es []*catalog.Entry
	for _, p := range pkgs {
		for _, ch := range s.channelsOf(p) {
			if next := of(ch); es == nil {
				es = next // a copy already
			} else {
				es = append(es, next...)
			}
		}
	}
	return es
}

// allows returns a test for what s may be answered by: bundles by name, or
// versions. Rule 9.
func (s *want) allows() (func(bundle string, v catalog.Version) bool, *fault) {
	switch {
	case s.decl != nil && len(s.decl.Allowed) > 0:
		return func(bundle string, _ catalog.Version) bool { return slices.Contains(s.decl.Allowed, bundle) }, nil
	case s.decl == nil || s.decl.Range == "":
		return func(string, catalog.Version) bool { return true }, nil
	}
	in, err := olm.ParseVersions(s.decl.Range)
	if err != nil {
		return nil, &fault{pos: s.pos(subscription.FieldRange), msg: fmt.Sprintf("version range %q: %v", s.decl.Range, err)}
	}
	return func(_ string, v catalog.Version) bool { return in(v.String()) }, nil
}

// limits reports whether s says which versions may answer it, and allowed is how
// messages say it.
func (s *want) limits() bool { return s.decl != nil && (s.decl.Range != "" || len(s.decl.Allowed) > 0) }

func (s *want) allowed() string {
	if len(s.decl.Allowed) > 0 {
		return "among those listed (" + list(s.decl.Allowed) + ")"
	}
	return fmt.Sprintf("in the range %q", s.decl.Range)
}

// fresh returns what can be installed anew. Rule 1.
func (w *world) fresh(s *want, pkgs []*catalog.Package) options {
	allowed, bad := s.allows()
	if bad != nil {
		return options{fault: bad}
	}
	target := w.named(s)
	es := s.entriesOf(pkgs, func(ch *catalog.Channel) []*catalog.Entry { return w.offered(s, ch) })
	es = slices.DeleteFunc(es, func(e *catalog.Entry) bool {
		return !allowed(e.Name(), e.Bundle().Version()) || target != nil && target.Version != "" && !isVersion(e, target.Version)
	})
	if len(es) == 0 {
		return options{fault: w.noVersion(s, pkgs, target)}
	}
	if !s.isV1() {
		return asOptions(withTwins(s, es))
	}
	es = w.rank(s, es)
	if bad := tied(s, es); bad != nil {
		return options{fault: bad}
	}
	return asOptions(es)
}

// offered returns the entries of a channel that a fresh install may take.
func (w *world) offered(s *want, ch *catalog.Channel) []*catalog.Entry {
	target := w.named(s)
	switch {
	case s.starting != "":
		if e, ok := ch.Entry(s.starting); ok {
			return []*catalog.Entry{e}
		}
		return nil
	case s.isV1(), target != nil && target.Version != "", s.limits():
		return ch.Entries()
	}
	return ch.Walk()
}

func (s *want) isV1() bool { return s.decl != nil && s.decl.Dialect == subscription.V1 }

// rank orders entries for an OLM v1 declaration: what is deprecated last, then
// by the catalogs' priority, then the newest first, of one version the newest release. Others stay as they are,
// followed by the same bundles in other permitted channels. Rule 9.
func (w *world) rank(s *want, es []*catalog.Entry) []*catalog.Entry {
	if !s.isV1() {
		return es
	}
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b *catalog.Entry) int {
		ca, cb := a.Channel().Package().Catalog(), b.Channel().Package().Catalog()
		return cmp.Or(compareBool(deprecated(a), deprecated(b)), cmp.Compare(cb.Priority(), ca.Priority()),
			b.Bundle().Version().Compare(a.Bundle().Version()), b.Bundle().ComparePackaged(a.Bundle()), ca.ID().Compare(cb.ID()))
	})
	return es
}

// tied reports that two catalogs of the same priority offer the package, which
// is for the user to decide. Rule 9.
func tied(s *want, es []*catalog.Entry) *fault {
	first := es[0].Channel().Package()
	for _, e := range es[1:] {
		p := e.Channel().Package()
		if p.Catalog() != first.Catalog() && p.Catalog().Priority() == first.Catalog().Priority() && deprecated(e) == deprecated(es[0]) {
			return ambiguous(s, []*catalog.Package{first, p})
		}
	}
	return nil
}

func deprecated(e *catalog.Entry) bool {
	return e.Bundle().Deprecation() != "" || e.Channel().Deprecation() != "" || e.Channel().Package().Deprecation() != ""
}

func asOptions(es []*catalog.Entry) options {
	out := options{of: make([]option, len(es))}
	for i, e := range es {
		out.of[i] = option{entry: e}
	}
	return out
}

// noVersion explains why no version of the package can be taken.
func (w *world) noVersion(s *want, pkgs []*catalog.Package, target *Target) *fault {
	var versions []string
	for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
		versions = append(versions, e.Bundle().Version().String())
	}
	newest := ""
	switch {
	case target != nil && target.Version != "":
		return &fault{target.or(s.pos(subscription.FieldPackage, subscription.FieldBundle)), fmt.Sprintf("package %s has no version %q%s%s", s.pkg, target.Version, s.inChannels(), didYouMean(target.Version, versions))}
	case s.starting != "":
		return &fault{s.pos(subscription.FieldStartingCSV), fmt.Sprintf("no bundle %q in package %s%s", s.starting, s.pkg, s.inChannels())}
	case len(versions) > 0:
		newest = " (the newest is " + versions[0] + ")"
	}
	return &fault{s.pos(subscription.FieldRange), fmt.Sprintf("no version of package %s%s is %s%s", s.pkg, s.inChannels(), s.allowed(), newest)}
}

func (s *want) inChannels() string {
	if len(s.channels) == 0 {
		return ""
	}
	return " in channel " + strings.Join(s.channels, ", ")
}
