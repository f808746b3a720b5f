package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

// option is one candidate for a subscription: a channel entry of a catalog, or the bundle that is already
// installed.
type option struct {
	entry   *catalog.Entry // nil for the installed bundle
	current *installed
}

// options holds the candidates for a subscription, most preferred first. If there are none, it
// holds the reason.
type options struct {
	list       []option
	fault      *fault
	keepReason string // reason why the installed bundle is the only candidate: "installPlanApproval is Manual"
	keepFault  *fault // the fault that keepReason describes; nil if it describes none
	downgrades []*catalog.Entry
}

// fault is a mistake in a declaration.
type fault struct {
	pos       diag.Pos
	msg       string
	withdrawn bool // the catalog lacks the requested channel or package, or no longer has it
}

// preference determines which candidates a subscription prefers in a round.
type preference int

const (
	preferInstalled preference = iota // the installed bundle is preferred
	preferUpgrade                     // upgrades are preferred
	onlyInstalled                     // only the installed bundle
)

// preference returns the preference for s. If it is onlyInstalled, the second result is the reason.
func (w *chooser) preference(s *want) (preference, string) {
	if s.current == nil {
		return preferUpgrade, ""
	}
	if s.hold != "" {
		return onlyInstalled, "held: " + s.hold
	}
	if w.targetOf(s) != nil || w.pinToReach(s) != nil {
		return preferUpgrade, ""
	}
	if s.approval == declare.Manual {
		return onlyInstalled, fmt.Sprintf("its approval is Manual: 'quayside upgrade %s' upgrades it", s.operator())
	}
	if w.opt.Upgrade {
		return preferUpgrade, ""
	}
	return preferInstalled, ""
}

// targetOf returns the upgrade target that the user has named for s, or nil.
func (w *chooser) targetOf(s *want) *Target {
	for i := range w.opt.Named {
		if t := &w.opt.Named[i]; t.Namespace == s.ns && t.Package == s.pkg {
			return t
		}
	}
	return nil
}

// boundTarget returns the upgrade target for s. It returns nil if there is no target, if the target has no
// version or no position for messages, or if the target version is installed.
func (w *chooser) boundTarget(s *want) *Target {
	t := w.targetOf(s)
	if t == nil || t.Version == "" || t.At.IsZero() || s.current != nil && s.current.hasVersion(t.Version) {
		return nil
	}
	return t
}

// options returns the candidates for s.
func (w *chooser) options(s *want) options {
	if sp := w.namespace(s.ns); sp.fault != "" {
		return options{fault: &fault{pos: sp.faultPos, msg: sp.fault}}
	}
	if s.pkg == "" && s.decl != nil && s.decl.Bundle != "" {
		return options{fault: &fault{pos: s.pos(declare.FieldBundle), msg: fmt.Sprintf("bundle %q is not in any catalog", s.decl.Bundle)}}
	}
	how, stay := w.preference(s)
	pkgs, bad := w.packages(s)
	if bad == nil && len(pkgs) > 0 {
		bad = w.checkChannels(s, pkgs)
	}
	if bad != nil {
		keeps := s.current != nil && s.current.pin != nil && !w.isEdited(s)
		if keeps && (how != preferUpgrade || w.targetOf(s) == nil && (s.generated || w.pinToReach(s) != nil)) {
			return options{list: []option{{current: s.current}}, keepReason: bad.msg, keepFault: bad}
		}
		return options{fault: bad}
	}
	if s.current == nil {
		return w.installCandidates(s, pkgs)
	}
	if how == onlyInstalled {
		return options{list: []option{{current: s.current}}, keepReason: stay}
	}
	if t := w.targetOf(s); t != nil && t.Reinstall {
		return w.reinstallCandidates(s, pkgs)
	}
	return w.upgradeCandidates(s, pkgs, how)
}

// isEdited reports whether the declaration of s was edited after its pin was recorded: it requests another
// package, channel or catalog. If isEdited is false and a requested item is missing, the catalog has changed.
func (w *chooser) isEdited(s *want) bool {
	pin := s.current.pin
	isNew := !slices.Contains(pin.RequestedBy, s.key()) // the pin belongs to other declarations, or to a dependency
	if s.decl == nil || !isNew && (pin.Declaration == "" || len(pin.RequestedBy) > 1 || pin.Declaration == w.declarationDigest(s.ns, []*want{s})) {
		return false
	}
	return s.pkg != "" && s.pkg != pin.Package || len(s.channels) > 0 && !slices.Contains(s.channels, pin.Channel) || s.cat != nil && *s.cat != pin.Catalog.ID
}

// packages returns the package that s requests, from each catalog that may provide it, most
// preferred first.
func (w *chooser) packages(s *want) ([]*catalog.Package, *fault) {
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
			bad.pos = s.pos(declare.FieldCatalog)
		}
		return nil, bad
	}
	if s.decl != nil && s.decl.Dialect == declare.V1 {
		return found, nil
	}
	if len(found) > 1 {
		return nil, ambiguousPackage(s, found)
	}
	return found, nil
}

func ambiguousPackage(s *want, found []*catalog.Package) *fault {
	ids := make([]string, len(found))
	for i, p := range found {
		ids[i] = p.Catalog().ID().String()
	}
	return &fault{
		pos: s.pos(declare.FieldCatalog, declare.FieldPackage), msg: fmt.Sprintf("package %q is in several catalogs (%s): the declaration must name one of them", s.pkg, strings.Join(ids, ", ")),
	}
}

func (w *chooser) packageFrom(s *want, id catalog.ID) ([]*catalog.Package, *fault) {
	c, ok := w.x.Catalog(id)
	if !ok {
		if err, broken := w.x.Broken()[id]; broken {
			return nil, &fault{pos: s.pos(declare.FieldCatalog, declare.FieldBundle), msg: fmt.Sprintf("catalog %s cannot be used: %v", id, err)}
		}
		return nil, &fault{pos: s.pos(declare.FieldCatalog), msg: fmt.Sprintf("no catalog %s%s", id, w.listCatalogs(s.ns))}
	}
	if !w.isVisible(s.ns, id) {
		return nil, &fault{
			pos: s.pos(declare.FieldCatalogNamespace),
			msg: fmt.Sprintf("catalog %s is not visible in namespace %s: only catalogs in these namespaces are visible: %s", id, s.ns, strings.Join(append([]string{s.ns}, w.opt.GlobalNamespaces...), ", ")),
		}
	}
	p, ok := c.Package(s.pkg)
	if !ok {
		return nil, w.noPackage(s, c)
	}
	return []*catalog.Package{p}, nil
}

// listCatalogs lists the visible catalogs for a message.
func (w *chooser) listCatalogs(ns string) string {
	var names []string
	for _, c := range w.catalogs(ns) {
		names = append(names, c.ID().String())
	}
	if len(names) == 0 {
		return ""
	}
	return " (available: " + joinNames(names) + ")"
}

// noPackage returns the fault that the requested package is not in catalog c. If c is nil, the fault is that it
// is in no visible catalog. The fault suggests packages with similar names. These are different operators, so
// they are never installed instead.
func (w *chooser) noPackage(s *want, c *catalog.Catalog) *fault {
	searched := w.catalogs(s.ns)
	where, withdrawn := "in any visible catalog", true
	if c != nil {
		where, searched = "in catalog "+c.ID().String(), []*catalog.Catalog{c}
	} else if broken := w.unreadableCatalogs(s.ns); len(broken) > 0 {
		where, withdrawn = "in any readable catalog (not readable: "+strings.Join(broken, ", ")+")", false
	}
	var names []string
	for _, c := range searched {
		names = append(names, c.Names()...)
	}
	if near := diag.Nearest(s.pkg, names); s.current == nil && len(near) > 0 {
		where += " (similar names: " + strings.Join(near, ", ") + ")"
	}
	if skipped := skippedCharts(searched, s.pkg); len(skipped) > 0 {
		where, withdrawn = where+" ("+diag.Some(skipped, 3)+")", false
	}
	return &fault{s.pos(declare.FieldPackage, declare.FieldBundle), fmt.Sprintf("no package %q %s", s.pkg, where), withdrawn}
}

// skippedCharts returns the warnings about charts that the catalogs skip and that may be versions of the package.
func skippedCharts(catalogs []*catalog.Catalog, pkg string) []string {
	var out []string
	for _, c := range catalogs {
		for _, w := range c.Warnings() {
			if w.Code == "chart-skipped" && (w.Subject == "" || w.Subject == pkg) {
				out = append(out, w.String())
			}
		}
	}
	return out
}

// unreadableCatalogs returns the catalogs that are visible in a namespace but cannot be read, for a
// message.
func (w *environment) unreadableCatalogs(ns string) []string {
	var out []string
	for _, id := range slices.SortedFunc(maps.Keys(w.x.Broken()), catalog.ID.Compare) {
		if w.isVisible(ns, id) {
			out = append(out, id.String())
		}
	}
	return out
}

// checkChannels returns a fault if channels are requested, but no catalog has any of them. Otherwise, it returns nil.
func (w *chooser) checkChannels(s *want, pkgs []*catalog.Package) *fault {
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
		pos: s.pos(declare.FieldChannel), withdrawn: true,
		msg: fmt.Sprintf("channel %q not in package %s (available: %s)", strings.Join(s.channels, ", "), s.pkg, strings.Join(pkgs[0].ChannelNames(), ", ")),
	}
}

// channelsOf returns the channels of p that s permits, the default channel first.
func (s *want) channelsOf(p *catalog.Package) []*catalog.Channel {
	var out []*catalog.Channel
	for _, ch := range p.Channels() {
		if len(s.channels) == 0 || slices.Contains(s.channels, ch.Name()) {
			out = append(out, ch)
		}
	}
	return out
}

// entriesOf calls list for each permitted channel of the packages and returns all results in one slice, in
// order. The function list must return a new slice on each call.
func (s *want) entriesOf(pkgs []*catalog.Package, list func(*catalog.Channel) []*catalog.Entry) []*catalog.Entry {
	var es []*catalog.Entry
	for _, p := range pkgs {
		for _, ch := range s.channelsOf(p) {
			if next := list(ch); es == nil {
				es = next // safe, because list returns a new slice
			} else {
				es = append(es, next...)
			}
		}
	}
	return es
}

// versionFilter returns a function that reports whether the declaration of s allows a bundle and version. A
// malformed version range is a fault. It implements Rule 9 of the package comment.
func (s *want) versionFilter() (func(bundle string, v catalog.Version) bool, *fault) {
	switch {
	case s.decl != nil && len(s.decl.Allowed) > 0:
		return func(bundle string, _ catalog.Version) bool { return slices.Contains(s.decl.Allowed, bundle) }, nil
	case s.decl == nil || s.decl.Range == "":
		return func(string, catalog.Version) bool { return true }, nil
	}
	in, err := catalog.ParseVersions(s.decl.Range)
	if err != nil {
		return nil, &fault{pos: s.pos(declare.FieldRange), msg: fmt.Sprintf("version range %q: %v", s.decl.Range, err)}
	}
	return func(_ string, v catalog.Version) bool { return in(v.String()) }, nil
}

// limitsVersions reports whether the declaration of s restricts versions.
func (s *want) limitsVersions() bool {
	return s.decl != nil && (s.decl.Range != "" || len(s.decl.Allowed) > 0)
}

// describeAllowed describes the allowed versions for a message, such as `in the range ">=1.0.0"`.
func (s *want) describeAllowed() string {
	if len(s.decl.Allowed) > 0 {
		return "among the listed versions (" + joinNames(s.decl.Allowed) + ")"
	}
	return fmt.Sprintf("in the range %q", s.decl.Range)
}

// installCandidates returns the candidates for a new installation. It implements Rule 1 of the package comment.
func (w *chooser) installCandidates(s *want, pkgs []*catalog.Package) options {
	allowed, bad := s.versionFilter()
	if bad != nil {
		return options{fault: bad}
	}
	target := w.targetOf(s)
	es := s.entriesOf(pkgs, func(ch *catalog.Channel) []*catalog.Entry { return w.offeredEntries(s, ch) })
	es = slices.DeleteFunc(es, func(e *catalog.Entry) bool {
		return !allowed(e.Name(), e.Bundle().Version()) || target != nil && target.Version != "" && !isVersion(e, target.Version)
	})
	if len(es) == 0 {
		return options{fault: w.noVersion(s, pkgs, target)}
	}
	if !s.isV1() {
		return asOptions(withOtherChannels(s, es))
	}
	es = w.rank(s, es)
	if bad := checkTies(s, es); bad != nil {
		return options{fault: bad}
	}
	return asOptions(es)
}

// offeredEntries returns the entries of a channel that a new installation of s may choose.
func (w *chooser) offeredEntries(s *want, ch *catalog.Channel) []*catalog.Entry {
	target := w.targetOf(s)
	switch {
	case s.starting != "":
		if e, ok := ch.Entry(s.starting); ok {
			return []*catalog.Entry{e}
		}
		return nil
	case s.isV1(), target != nil && target.Version != "", s.limitsVersions():
		return ch.Entries()
	}
	return ch.Walk()
}

func (s *want) isV1() bool { return s.decl != nil && s.decl.Dialect == declare.V1 }

// rank returns the entries for a ClusterExtension (OLM v1) sorted: entries that are not deprecated first, then
// by priority of the catalog, then the newest version and release first. For other declarations it returns es
// unchanged. It implements Rule 9 of the package comment.
func (w *chooser) rank(s *want, es []*catalog.Entry) []*catalog.Entry {
	if !s.isV1() {
		return es
	}
	es = slices.Clone(es)
	slices.SortStableFunc(es, func(a, b *catalog.Entry) int {
		ca, cb := a.Channel().Package().Catalog(), b.Channel().Package().Catalog()
		return cmp.Or(compareBool(isDeprecated(a), isDeprecated(b)), cmp.Compare(cb.Priority(), ca.Priority()),
			b.Bundle().Version().Compare(a.Bundle().Version()), b.Bundle().CompareEffectiveReleases(a.Bundle()), ca.ID().Compare(cb.ID()))
	})
	return es
}

// checkTies returns a fault if the user must choose a catalog. This is the case if an entry of another catalog has
// the same priority and the same deprecation as the first entry. It implements Rule 9 of the package comment.
func checkTies(s *want, es []*catalog.Entry) *fault {
	first := es[0].Channel().Package()
	for _, e := range es[1:] {
		p := e.Channel().Package()
		if p.Catalog() != first.Catalog() && p.Catalog().Priority() == first.Catalog().Priority() && isDeprecated(e) == isDeprecated(es[0]) {
			return ambiguousPackage(s, []*catalog.Package{first, p})
		}
	}
	return nil
}

func isDeprecated(e *catalog.Entry) bool {
	return e.Bundle().Deprecation() != "" || e.Channel().Deprecation() != "" || e.Channel().Package().Deprecation() != ""
}

func asOptions(es []*catalog.Entry) options {
	out := options{list: make([]option, len(es))}
	for i, e := range es {
		out.list[i] = option{entry: e}
	}
	return out
}

// noVersion returns the fault that no version of the package can be installed. The fault contains the reason.
func (w *chooser) noVersion(s *want, pkgs []*catalog.Package, target *Target) *fault {
	var versions []string
	for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
		versions = append(versions, e.Bundle().Version().String())
	}
	newest := ""
	switch {
	case target != nil && target.Version != "":
		return &fault{pos: target.posOr(s.pos(declare.FieldPackage, declare.FieldBundle)), msg: fmt.Sprintf("package %s has no version %q%s%s", s.pkg, target.Version, s.inChannels(), didYouMean(target.Version, versions))}
	case s.starting != "":
		return &fault{pos: s.pos(declare.FieldStartingCSV), msg: fmt.Sprintf("no bundle %q in package %s%s", s.starting, s.pkg, s.inChannels())}
	case len(versions) > 0:
		newest = " (the newest is " + versions[0] + ")"
	}
	return &fault{pos: s.pos(declare.FieldRange), msg: fmt.Sprintf("no version of package %s%s is %s%s", s.pkg, s.inChannels(), s.describeAllowed(), newest)}
}

func (s *want) inChannels() string {
	if len(s.channels) == 0 {
		return ""
	}
	return " in channel " + strings.Join(s.channels, ", ")
}
