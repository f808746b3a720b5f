package resolve

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/subscription"
)

// world is what stays the same from round to round: the catalogs, what is
// declared, and what has been read of them.
type world struct {
	x         *catalog.Index
	decl      *subscription.Set
	opt       Options
	read      *reader
	spaces    map[string]*space
	visible   map[string][]*catalog.Catalog
	entries   map[entriesKey][]*catalog.Entry
	followers map[string]*subscription.Subscription // of what others follow: the declaration that says so
	warnings  []diag.Warning
	stays     []Stay
	force     map[*want][]*catalog.Entry // what alone may answer a subscription, whatever its edges: for questions
	quiet     bool                       // a trial: nothing is suggested
}

type entriesKey struct {
	cat *catalog.Catalog
	req *requirement
}

// space is one install namespace. Rule 4.
type space struct {
	group    *subscription.OperatorGroup // nil: none declared
	watch    []string                    // of the group; empty: all namespaces
	exclude  bool                        // no catalogs of global namespaces
	fault    string                      // why nothing can be installed here
	faultPos diag.Pos
}

// settle calls f with a fresh world until no rule was found to cost too much
// on the way: such a rule counts for nothing from the beginning, wherever it is
// met first.
func settle[T any](x *catalog.Index, decl *subscription.Set, opt Options, f func(*world) (T, error)) (T, error) {
	read := newReader()
	for {
		over := read.rules.over
		w := newWorld(x, decl, opt)
		w.read = read
		out, err := f(w)
		if read.rules.over == over {
			return out, err
		}
	}
}

func newWorld(x *catalog.Index, decl *subscription.Set, opt Options) *world {
	w := &world{
		x: x, decl: decl, opt: opt, read: newReader(),
		spaces: map[string]*space{}, visible: map[string][]*catalog.Catalog{},
		entries: map[entriesKey][]*catalog.Entry{},
	}
	for _, s := range decl.Subscriptions {
		w.space(s.Namespace)
	}
	return w
}

// waits returns the catalogs that could not be read and that s needs: the one that
// it names, else any of them where its package is in no other.
func (w *world) waits(s *want) []catalog.ID {
	broken := w.x.Broken()
	switch {
	case s.cat == nil && len(w.x.Having(s.pkg)) == 0:
		return slices.SortedFunc(maps.Keys(broken), catalog.ID.Compare)
	case s.cat != nil && broken[*s.cat] != nil:
		return []catalog.ID{*s.cat}
	}
	return nil
}

func (w *world) warn(warning diag.Warning) { w.warnings = append(w.warnings, warning) }

// space returns what is known of an install namespace.
func (w *world) space(ns string) *space {
	if s, ok := w.spaces[ns]; ok {
		return s
	}
	s := &space{}
	w.spaces[ns] = s
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
		w.followGroup(s, &groups[0])
	}
	return s
}

// followGroup takes over what an OperatorGroup says. Its selector is matched
// against the declared Namespaces (rule 11).
func (w *world) followGroup(s *space, g *subscription.OperatorGroup) {
	s.group, s.exclude = g, g.ExcludeGlobal
	s.watch = g.TargetNamespaces
	if g.ServiceAccountName != "" {
		w.warn(diag.Warning{Pos: g.At("spec.serviceAccountName"), Code: "service-account", Subject: g.Namespace + "/" + g.Name, Msg: "OperatorGroup " + g.Namespace + "/" + g.Name +
			": serviceAccountName is not honoured: what installs the manifests decides what they may do"})
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

// isGlobal reports whether catalogs of that namespace are visible everywhere.
// Catalogs without a namespace are.
func (w *world) isGlobal(ns string) bool {
	return ns == "" || w.opt.GlobalNamespaces == nil || slices.Contains(w.opt.GlobalNamespaces, ns)
}

// sees reports whether catalog id is visible in an install namespace.
func (w *world) sees(ns string, id catalog.ID) bool {
	return id.Namespace == ns || w.isGlobal(id.Namespace) && !w.space(ns).exclude
}

// catalogs returns the catalogs visible in ns, the preferred first: by
// priority, then those of the namespace itself, then by name. Rule 3.
func (w *world) catalogs(ns string) []*catalog.Catalog {
	if cats, ok := w.visible[ns]; ok {
		return cats
	}
	var cats []*catalog.Catalog
	for _, c := range w.x.Catalogs() {
		if w.sees(ns, c.ID()) {
			cats = append(cats, c)
		}
	}
	away := func(c *catalog.Catalog) int {
		if c.ID().Namespace == ns {
			return 0
		}
		return 1
	}
	slices.SortFunc(cats, func(a, b *catalog.Catalog) int {
		return cmp.Or(cmp.Compare(b.Priority(), a.Priority()), cmp.Compare(away(a), away(b)),
			strings.Compare(a.ID().Namespace, b.ID().Namespace), strings.Compare(a.ID().Name, b.ID().Name))
	})
	w.visible[ns] = cats
	return cats
}

// providers returns the entries of one catalog that meet a requirement, the
// preferred first: those of default channels, then by package, then by channel,
// and within a channel from the head down. Rule 3.
func (w *world) providers(c *catalog.Catalog, r *requirement) []*catalog.Entry {
	key := entriesKey{c, r}
	if got, ok := w.entries[key]; ok {
		return got
	}
	var found []*catalog.Entry
	for _, ch := range w.channelsFor(c, r.where) {
		for _, e := range ch.Walk() {
			if r.match(w.read.bundle(e.Bundle())) {
				found = append(found, e)
			}
		}
	}
	w.entries[key] = found
	return found
}

// channelsFor returns the channels in which bundles that match may be, in the
// order of Catalog.Channels.
func (w *world) channelsFor(c *catalog.Catalog, where hint) []*catalog.Channel {
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
