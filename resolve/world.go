package resolve

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

// world is the state of one call of Resolve: data that all rounds share, and warnings.
type world struct {
	converter
	heldPromotions map[string]HeldUpgrade
	along          map[string]string // operator → PinChange.Along
	reportedHolds  []*Hold           // elements of Options.Held that a warning mentions
	quiet          bool              // no warnings and no suggestions: used for trying remedies
}

// converter converts locks and declarations to states, and states to locks.
type converter struct{ chooser }

// chooser lists and ranks the candidates of subscriptions.
type chooser struct {
	environment
	successors map[string]*declare.Subscription // operator → declaration whose spec.replaces names the operator
	forced     map[*want][]*catalog.Entry       // used by WhyNot: candidates that replace the usual ones, without regard to upgrade edges
}

// environment holds the catalogs, the declarations, and data derived from them.
type environment struct {
	x          *catalog.Index
	decl       *declare.Set
	opt        Options
	facts      *factReader
	namespaces map[string]*installNamespace
	visible    map[string][]*catalog.Catalog
	entries    map[entriesKey][]*catalog.Entry
	warnings   []diag.Warning
}

type entriesKey struct {
	cat *catalog.Catalog
	req *requirement
}

// installNamespace holds the settings of one install namespace. A fault in these settings affects only this
// namespace (Rule 4).
type installNamespace struct {
	group    *declare.OperatorGroup // nil if none is declared
	watch    []string               // namespaces that the group watches; empty means all
	exclude  bool                   // catalogs of global namespaces are not visible here
	fault    string                 // reason why nothing can be installed here, or ""
	faultPos diag.Pos
}

// runUntilStable calls f, each time with a new world, until no further CEL rule exceeds the cost limit, and
// returns the last result. A rule that exceeded the limit matches no bundle in later calls. So the order of
// evaluation does not affect the result.
func runUntilStable[T any](x *catalog.Index, decl *declare.Set, opt Options, f func(*world) (T, error)) (T, error) {
	read := newReader()
	for {
		over := read.rules.exceeded
		w := newWorld(x, decl, opt)
		w.facts = read
		out, err := f(w)
		if read.rules.exceeded == over {
			return out, err
		}
	}
}

func newWorld(x *catalog.Index, decl *declare.Set, opt Options) *world {
	w := &world{along: map[string]string{}, heldPromotions: map[string]HeldUpgrade{}}
	w.environment = environment{
		x: x, decl: decl, opt: opt, facts: newReader(),
		namespaces: map[string]*installNamespace{}, visible: map[string][]*catalog.Catalog{}, entries: map[entriesKey][]*catalog.Entry{},
	}
	for _, s := range decl.Subscriptions {
		w.namespace(s.Namespace)
	}
	return w
}

// forTrial returns a quiet world with other declarations and options. It shares the caches of w.
func (w *world) forTrial(decl *declare.Set, opt Options) *world {
	next := newWorld(w.x, decl, opt)
	next.facts, next.entries, next.quiet = w.facts, w.entries, true
	return next
}

// unreadableNeeds returns the unreadable catalogs that may contain the package of s. If s names a catalog, it
// considers only this catalog. Otherwise, the result is nil if a readable catalog has the package.
func (w *environment) unreadableNeeds(s *want) []catalog.ID {
	broken := w.x.Broken()
	switch {
	case s.cat == nil && len(w.x.CatalogsWith(s.pkg)) == 0:
		return slices.SortedFunc(maps.Keys(broken), catalog.ID.Compare)
	case s.cat != nil && broken[*s.cat] != nil:
		return []catalog.ID{*s.cat}
	}
	return nil
}

func (w *environment) warn(warning diag.Warning) { w.warnings = append(w.warnings, warning) }

// namespace returns the settings of an install namespace.
func (w *environment) namespace(ns string) *installNamespace {
	if s, ok := w.namespaces[ns]; ok {
		return s
	}
	s := &installNamespace{}
	w.namespaces[ns] = s
	groups := w.decl.OperatorGroupsIn(ns)
	if len(groups) > 1 {
		names := make([]string, len(groups))
		for i, g := range groups {
			names[i] = g.Name + " (" + g.Pos.String() + ")"
		}
		s.fault = "namespace " + ns + " has " + diag.Count(len(groups), "OperatorGroup") + ": " + strings.Join(names, ", ") + "; keep one"
		s.faultPos = groups[1].Pos
		return s
	}
	if len(groups) == 1 {
		w.applyGroup(s, &groups[0])
	}
	return s
}

// applyGroup sets the watched namespaces from an OperatorGroup. It matches the selector of the group against
// the labels of declared Namespaces (rule 11).
func (w *environment) applyGroup(s *installNamespace, g *declare.OperatorGroup) {
	s.group, s.exclude = g, g.ExcludeGlobal
	s.watch = g.TargetNamespaces
	if g.ServiceAccountName != "" {
		w.warn(diag.Warning{Pos: g.At("spec.serviceAccountName"), Code: "service-account", Subject: g.Namespace + "/" + g.Name, Msg: "OperatorGroup " + g.Namespace + "/" + g.Name +
			": serviceAccountName is ignored, because the GitOps tool applies the manifests with its own permissions"})
	}
	if g.Selector == nil || len(g.TargetNamespaces) > 0 {
		return
	}
	s.watch = w.decl.NamespacesMatching(g.Selector)
	if len(s.watch) == 0 {
		s.fault = "OperatorGroup " + g.Namespace + "/" + g.Name + ": its selector matches no declared Namespace; list the namespaces in spec.targetNamespaces"
		s.faultPos = g.At("spec.selector")
	}
}

// isGlobal reports whether the catalogs of namespace ns are visible in all namespaces. It returns
// true for "", the namespace of ClusterCatalogs.
func (w *environment) isGlobal(ns string) bool {
	return ns == "" || w.opt.GlobalNamespaces == nil || slices.Contains(w.opt.GlobalNamespaces, ns)
}

// isVisible reports whether catalog id is visible in an install namespace.
func (w *environment) isVisible(ns string, id catalog.ID) bool {
	return id.Namespace == ns || w.isGlobal(id.Namespace) && !w.namespace(ns).exclude
}

// catalogs returns the catalogs that are visible in ns, most preferred first: sorted by priority, then catalogs
// in ns first, then by namespace and name. It implements Rule 3 of the package comment.
func (w *environment) catalogs(ns string) []*catalog.Catalog {
	if cats, ok := w.visible[ns]; ok {
		return cats
	}
	var cats []*catalog.Catalog
	for _, c := range w.x.Catalogs() {
		if w.isVisible(ns, c.ID()) {
			cats = append(cats, c)
		}
	}
	distance := func(c *catalog.Catalog) int {
		if c.ID().Namespace == ns {
			return 0
		}
		return 1
	}
	slices.SortFunc(cats, func(a, b *catalog.Catalog) int {
		return cmp.Or(cmp.Compare(b.Priority(), a.Priority()), cmp.Compare(distance(a), distance(b)),
			strings.Compare(a.ID().Namespace, b.ID().Namespace), strings.Compare(a.ID().Name, b.ID().Name))
	})
	w.visible[ns] = cats
	return cats
}

// providers returns the entries of a catalog that meet a requirement. They are sorted: default channels first,
// then by package, by channel, and from the head of a channel down. It implements Rule 3 of the package
// comment.
func (w *environment) providers(c *catalog.Catalog, r *requirement) []*catalog.Entry {
	key := entriesKey{c, r}
	if got, ok := w.entries[key]; ok {
		return got
	}
	var found []*catalog.Entry
	for _, ch := range w.channelsFor(c, r.scope) {
		for _, e := range ch.Walk() {
			if r.match(w.facts.bundle(e.Bundle())) {
				found = append(found, e)
			}
		}
	}
	w.entries[key] = found
	return found
}

// channelsFor returns the channels of c that may contain bundles in the scope, in the order of
// Catalog.Channels.
func (w *environment) channelsFor(c *catalog.Catalog, where searchScope) []*catalog.Channel {
	if where.anywhere {
		return c.Channels()
	}
	seen := map[*catalog.Package]bool{}
	var pkgs []*catalog.Package
	add := func(p *catalog.Package) {
		if !seen[p] {
			seen[p] = true
			pkgs = append(pkgs, p)
		}
	}
	for _, name := range where.packages {
		if p, ok := c.Package(name); ok {
			add(p)
		}
	}
	for _, g := range where.apis {
		for _, e := range c.Providers(g) {
			add(e.Channel().Package())
		}
	}
	var channels []*catalog.Channel
	for _, p := range pkgs {
		channels = append(channels, p.Channels()...)
	}
	slices.SortFunc(channels, func(a, b *catalog.Channel) int {
		return cmp.Or(-compareBool(a.IsDefault(), b.IsDefault()),
			strings.Compare(a.Package().Name(), b.Package().Name()), strings.Compare(a.Name(), b.Name()))
	})
	return channels
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
