package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve/explain"
)

// remedies returns changes that may resolve the conflict. Only the first few changes are tried, so the most
// likely changes come first: corrections of names and targets, changes of settings and declarations that the
// causes mention, flags, other versions, channels and catalogs, and finally removals. It implements Rule 13 of
// the package comment.
func (t *explainer) remedies() []remedy {
	t.addCorrections()
	t.addUnmanaged()
	apart := t.hasBan(banInstallMode) || t.excludesEachOther() || t.isGroupAtFault()
	if apart {
		t.addWatches()
	}
	t.addSettings()
	if apart {
		t.addNamespaces()
	}
	t.addFlags()
	t.addAlternatives()
	if !apart && t.hasSeveralVersions() {
		t.addNamespaces()
	}
	if t.hasBan(banInstallMode) || t.hasBan(banCluster) {
		t.addSetting("install it anyway: set spec.requirements: warn", func(in *inputs) { in.opt.Requirements = "warn" })
	}
	for _, s := range t.declaredWants() {
		if t.unknownTarget(s) != nil || t.b.w.boundTarget(s) != nil {
			continue // the target is the problem, not the declaration
		}
		t.add(remedy{Remedy: explain.Remedy{At: s.pos().String(), Text: "remove subscription " + s.key()}, removes: true, apply: func(in *inputs) {
			in.decl.Subscriptions = slices.DeleteFunc(in.decl.Subscriptions, func(d declare.Subscription) bool { return d.Key() == s.key() })
		}})
	}
	return t.suggested
}

// hasBan reports whether a ban of this kind is part of the conflict.
func (t *explainer) hasBan(kind banKind) bool {
	return slices.ContainsFunc(t.causes, func(x taggedCause) bool {
		c, ok := x.cause.(banCause)
		return ok && c.why.kind == kind
	})
}

// excludesEachOther reports whether the conflict contains different operators that exclude each
// other.
func (t *explainer) excludesEachOther() bool {
	return slices.ContainsFunc(t.causes, func(x taggedCause) bool {
		switch x.cause.(type) {
		case oneProviderCause, overlapCause:
			return true
		}
		return false
	})
}

// hasSeveralVersions reports whether the conflict contains several versions of a package. Such versions exclude
// each other.
func (t *explainer) hasSeveralVersions() bool {
	return slices.ContainsFunc(t.causes, func(x taggedCause) bool {
		_, is := x.cause.(onePackageCause)
		return is
	})
}

// isGroupAtFault reports whether an OperatorGroup may cause the conflict.
func (t *explainer) isGroupAtFault() bool {
	return slices.ContainsFunc(t.namespaces(), func(ns string) bool { return t.b.w.namespace(ns).fault != "" })
}

// addUnmanaged adds remedies for installed bundles without a subscription: a declared subscription of the
// package adopts the bundle, or the user deletes it.
func (t *explainer) addUnmanaged() {
	for _, x := range t.causes {
		c, ok := x.cause.(installedCause)
		if !ok {
			continue
		}
		name := c.inst.bundle
		for _, s := range t.declaredWants() {
			if s.ns == c.ns && s.current == nil && cmp.Or(c.inst.pkg(), s.pkg) == s.pkg {
				t.addEdit(s, s.pos(declare.FieldInstalled), "adopt it: set status.installedCSV: "+name, func(d *declare.Subscription) { d.InstalledCSV = name })
			}
		}
		t.add(remedy{Remedy: explain.Remedy{At: c.position(), Text: "delete " + name}, removes: true, apply: func(in *inputs) {
			in.decl.CSVs = slices.DeleteFunc(slices.Clone(in.decl.CSVs), func(csv declare.ClusterServiceVersion) bool { return csv.Namespace == c.ns && csv.Name == name })
		}})
	}
}

// add adds a remedy. It ignores duplicates.
func (t *explainer) add(r remedy) {
	if !slices.ContainsFunc(t.suggested, func(have remedy) bool { return have.Remedy == r.Remedy }) {
		t.suggested = append(t.suggested, r)
	}
}

// addEdit adds a remedy that changes the declaration of s. The remedy is shown with the position at and the given text.
func (t *explainer) addEdit(s *want, at diag.Pos, text string, change func(*declare.Subscription)) {
	t.add(remedy{Remedy: explain.Remedy{At: at.String(), Text: text}, apply: func(in *inputs) { change(in.subscription(s.key())) }})
}

// declaredWants returns the declared subscriptions that take part in the conflict.
func (t *explainer) declaredWants() []*want {
	var out []*want
	for _, x := range t.causes {
		if c, ok := x.cause.(requestCause); ok && c.want.decl != nil && !slices.Contains(out, c.want) {
			out = append(out, c.want)
		}
	}
	return out
}

// addCorrections adds remedies for names that do not exist, targets that the declaration excludes, and
// holds.
func (t *explainer) addCorrections() {
	for _, s := range t.declaredWants() {
		if key := (Target{Namespace: s.ns, Package: s.pkg}); s.current != nil && s.approval == declare.Manual && t.b.w.targetOf(s) == nil {
			t.addFlag("--upgrade", key, func(in *inputs) { in.setTarget(key) })
		}
		t.addDeclaredVersion(s)
		t.addOtherTargets(s)
		t.addSimilar(s)
		if s.starting != "" && s.current == nil {
			t.addEdit(s, s.pos(declare.FieldStartingCSV), "remove startingCSV", func(d *declare.Subscription) { d.StartingCSV = "" })
		}
		if s.decl.Hold != "" && s.current != nil {
			t.addEdit(s, s.pos(declare.FieldHold), "remove the hold", func(d *declare.Subscription) { d.Hold = "" })
		}
	}
}

// addAlternatives adds remedies that request the newest version, another channel, or another
// catalog.
func (t *explainer) addAlternatives() {
	for _, s := range t.declaredWants() {
		if s.limitsVersions() {
			t.addVersion(s)
		}
		for _, p := range t.b.w.x.CatalogsWith(s.pkg) {
			if id := p.ID(); t.b.w.isVisible(s.ns, id) && (s.cat == nil || *s.cat == id) {
				t.addChannels(s, p)
			}
		}
		others := t.b.w.x.CatalogsWith(s.pkg)
		if s.cat != nil { // a catalog with the same name in another namespace comes first
			rank := func(c *catalog.Catalog) int {
				if c.ID().Name == s.cat.Name {
					return 0
				}
				return 1
			}
			others = slices.SortedStableFunc(slices.Values(others), func(a, b *catalog.Catalog) int { return rank(a) - rank(b) })
		}
		for _, c := range others {
			if id := c.ID(); (s.cat == nil || *s.cat != id) && s.decl.Bundle == "" {
				t.addEdit(s, s.pos(declare.FieldCatalog, declare.FieldPackage), "set its catalog to "+id.String(), func(d *declare.Subscription) { d.Catalog = &id })
			}
		}
	}
}

// addDeclaredVersion adds a remedy if the declaration of s does not allow the target version. The remedy is the
// command that changes the declaration to this version.
func (t *explainer) addDeclaredVersion(s *want) {
	target := t.b.w.targetOf(s)
	pkgs, bad := t.b.w.packages(s)
	if target == nil || target.Version == "" || bad != nil || s.decl.Dialect == declare.OCM || !s.disallows(target, pkgs) {
		return
	}
	anywhere := *s
	anywhere.channels = nil
	var channels []string
	for _, e := range anywhere.entriesOf(pkgs, (*catalog.Channel).Entries) {
		if isVersion(e, target.Version) {
			channels = append(channels, e.Channel().Name())
		}
	}
	isDeclared := slices.ContainsFunc(channels, func(name string) bool { return len(s.channels) == 0 || slices.Contains(s.channels, name) })
	t.add(remedy{
		Remedy: explain.Remedy{At: s.pos(declare.FieldRange, declare.FieldChannel).String(), Text: fmt.Sprintf("run 'quayside add %s@%s -n %s'", s.pkg, target.Version, s.ns)},
		apply: func(in *inputs) {
			d := in.subscription(s.key())
			if in.opt.Hops = -1; d.Range != "" {
				d.Range = target.Version
			}
			if !isDeclared && len(channels) > 0 {
				d.Channels = channels[:1]
			}
		},
	})
}

// addSimilar adds remedies that replace an unknown channel or startingCSV by a similar name.
func (t *explainer) addSimilar(s *want) {
	pkgs, _ := t.b.w.packages(s)
	var bundles []string
	for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
		bundles = append(bundles, e.Name())
	}
	if s.current == nil && !slices.Contains(bundles, s.starting) {
		for _, name := range diag.Nearest(s.starting, bundles) {
			t.addEdit(s, s.pos(declare.FieldStartingCSV), "set startingCSV: "+name, func(d *declare.Subscription) { d.StartingCSV = name })
		}
	}
	for _, p := range pkgs {
		if len(s.channels) > 0 && len(s.channelsOf(p)) == 0 {
			for _, name := range diag.Nearest(s.channels[0], p.ChannelNames()) {
				t.addChannel(s, name)
			}
		}
	}
}

// addChannels adds remedies that request another channel of the package.
func (t *explainer) addChannels(s *want, c *catalog.Catalog) {
	p, ok := c.Package(s.pkg)
	if !ok || len(s.channels) == 0 {
		return
	}
	for _, name := range p.ChannelNames() {
		if !slices.Contains(s.channels, name) {
			t.addChannel(s, name)
		}
	}
}

func (t *explainer) addChannel(s *want, name string) {
	t.addEdit(s, s.pos(declare.FieldChannel, declare.FieldPackage), "request channel "+name, func(d *declare.Subscription) { d.Channels = []string{name} })
}

// addVersion adds a remedy that allows the newest version, if the declaration of s does not allow that version.
func (t *explainer) addVersion(s *want) {
	pkgs, _ := t.b.w.packages(s)
	allowed, bad := s.versionFilter()
	for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Walk) {
		v := e.Bundle().Version().String()
		switch {
		case bad == nil && allowed(e.Name(), e.Bundle().Version()):
			continue
		case len(s.decl.Allowed) > 0:
			t.addEdit(s, s.pos(declare.FieldRange), "allow "+e.Name(), func(d *declare.Subscription) { d.Allowed = append(slices.Clone(d.Allowed), e.Name()) })
		default:
			t.addEdit(s, s.pos(declare.FieldRange), "request version "+v, func(d *declare.Subscription) { d.Range = v })
		}
		return
	}
}

// namespaces returns the namespaces of the conflict.
func (t *explainer) namespaces() []string {
	var out []string
	for _, x := range t.causes {
		out = append(out, x.about().ns)
		if c, ok := x.cause.(overlapCause); ok {
			out = append(out, c.other)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(ns string) bool { return ns == "" })
}

// addWatches adds remedies that change the watched namespaces of OperatorGroups and declarations. For operators
// that exclude each other, no remedy watches all namespaces, because such a remedy cannot resolve the conflict.
func (t *explainer) addWatches() {
	watches := func(ns string, now []string) (out [][]string) {
		for _, to := range [][]string{{ns}, nil} {
			if !slices.Equal(to, now) && (to != nil || !t.excludesEachOther()) {
				out = append(out, to)
			}
		}
		return out
	}
	for _, ns := range t.namespaces() {
		groups := t.b.w.decl.OperatorGroupsIn(ns)
		if len(groups) > 1 {
			for i, g := range groups {
				rest := append(slices.Clone(groups[:i]), groups[i+1:]...)
				t.add(remedy{Remedy: explain.Remedy{At: rest[0].Pos.String(), Text: "keep only OperatorGroup " + g.Name + " in namespace " + ns}, apply: func(in *inputs) { in.setGroup(g) }})
			}
			continue
		}
		for _, g := range groups {
			for _, to := range watches(ns, t.b.w.namespace(ns).watch) {
				next := g
				next.TargetNamespaces, next.Selector = to, nil
				t.add(remedy{Remedy: explain.Remedy{At: g.At("spec.targetNamespaces").String(), Text: "make OperatorGroup " + g.Name + " watch " + formatWatched(to)}, apply: func(in *inputs) { in.setGroup(next) }})
			}
		}
	}
	for _, s := range t.declaredWants() {
		if s.decl.Watch == nil && !s.decl.WatchAll {
			continue
		}
		for _, to := range watches(s.ns, s.decl.Watch) {
			text := "make it watch all namespaces"
			if to != nil {
				text = "make it watch namespace " + s.ns
			}
			t.addEdit(s, s.pos(declare.FieldWatch), text, func(d *declare.Subscription) { d.Watch, d.WatchAll = to, to == nil })
		}
	}
}

// addFlag adds the remedy to run the same command with another flag. key is the flag's value, or zero.
func (t *explainer) addFlag(flag string, key Target, change func(*inputs)) {
	flag = strings.TrimSuffix(flag+"="+key.Namespace+"/"+key.Package, "=/")
	text := "run again with " + flag
	if command := t.b.w.opt.Command; command != "" {
		text = fmt.Sprintf("run '%s %s'", command, flag)
	}
	t.add(remedy{Remedy: explain.Remedy{Text: text}, apply: change})
}

// addFlags adds remedies with flags that change or drop pins of the conflict.
func (t *explainer) addFlags() {
	pinned := t.pinnedTargets()
	if len(pinned) > 0 || slices.ContainsFunc(t.declaredWants(), func(s *want) bool { return s.current != nil }) {
		t.addFlag("--allow-downgrade", Target{}, func(in *inputs) { in.opt.AllowDowngrade = true })
	}
	for _, key := range pinned {
		t.addFlag("--unpin", key, func(in *inputs) { in.opt.Unpin = append(slices.Clone(in.opt.Unpin), key) })
		fresh := key
		fresh.Reinstall = true
		if !slices.ContainsFunc(t.b.w.opt.Named, func(n Target) bool { return n.Namespace == key.Namespace && n.Package == key.Package }) {
			t.addFlag("--reinstall", key, func(in *inputs) { in.setTarget(fresh) })
		}
	}
}

// unknownTarget returns the upgrade target of s if its version does not exist in the package.
// Otherwise it returns nil.
func (t *explainer) unknownTarget(s *want) *Target {
	target := t.b.w.targetOf(s)
	if target == nil || target.Version == "" || slices.Contains(t.publishedVersions(s), target.Version) {
		return nil
	}
	return target
}

// publishedVersions returns the versions of the package in the channels that s permits.
func (t *explainer) publishedVersions(s *want) []string {
	var out []string
	pkgs, _ := t.b.w.packages(s)
	for _, e := range s.entriesOf(pkgs, (*catalog.Channel).Entries) {
		out = append(out, e.Bundle().Version().String())
	}
	return out
}

// addOtherTargets adds remedies with another target version for s, if the requested version does not exist or
// takes part in the conflict.
func (t *explainer) addOtherTargets(s *want) {
	target, near := t.unknownTarget(s), []string{}
	if target != nil {
		near = diag.Nearest(target.Version, t.publishedVersions(s))
	} else if target = t.b.w.boundTarget(s); target == nil {
		return
	}
	written := target.At.Line > 0 // the target is an edited version in the lock, not a flag
	addTarget := func(version, text string) {
		other, change := *target, explain.Remedy{Text: "request " + s.ns + "/" + s.pkg + text}
		if other.Version = version; written {
			change = explain.Remedy{At: target.At.String(), Text: "write " + version}
		}
		t.add(remedy{Remedy: change, apply: func(in *inputs) { in.setTarget(other) }})
	}
	for _, v := range near {
		addTarget(v, "@"+v)
	}
	if written {
		same := func(n Target) bool { return n.Namespace == target.Namespace && n.Package == target.Package }
		t.add(remedy{Remedy: explain.Remedy{At: target.At.String(), Text: "undo the edit"}, apply: func(in *inputs) {
			in.opt.Named = slices.DeleteFunc(slices.Clone(in.opt.Named), same)
		}})
		return
	}
	addTarget("", ", without a version")
}

// pinnedTargets returns the pinned operators that take part in the conflict.
func (t *explainer) pinnedTargets() []Target {
	var out []Target
	add := func(i *installed, pkg string) {
		if key := (Target{Namespace: i.ns, Package: pkg}); i.pin != nil && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	for _, s := range t.declaredWants() {
		if s.current != nil {
			add(s.current, s.pkg)
		}
	}
	for _, x := range t.causes {
		if c, ok := x.cause.(banCause); ok && c.why.kind == banPinned {
			add(t.b.undeclared[pkgKey{c.ns, c.pkg}].current, c.pkg)
		}
	}
	return out
}

// versionField returns the name of the setting that contains the version of Kubernetes. If clusters are
// declared, it names the clusters whose version is lower than version v, which the operator needs.
func (t *explainer) versionField(operator, v string) string {
	if len(t.b.w.opt.Clusters) == 0 {
		return "spec.kubernetesVersion"
	}
	var below []string
	for _, c := range t.b.w.clusters(operator) {
		if isBelow(c.KubernetesVersion, v) {
			below = append(below, c.Name)
		}
	}
	return "kubernetesVersion of " + diag.Some(below, 3)
}

// addSetting adds a remedy that changes a setting in quayside.yaml.
func (t *explainer) addSetting(text string, change func(*inputs)) {
	t.add(remedy{Remedy: explain.Remedy{Text: text + " in quayside.yaml"}, apply: change})
}

// addSettings adds remedies that change the settings that the causes mention.
func (t *explainer) addSettings() {
	addGlobal := func(ns string, id catalog.ID, offer string) {
		if t.b.w.isVisible(ns, id) {
			return
		}
		t.addSetting(fmt.Sprintf("make catalog %s%s visible everywhere: add %s to spec.globalCatalogNamespaces", id, offer, id.Namespace), func(in *inputs) {
			in.opt.GlobalNamespaces = append(slices.Clone(in.opt.GlobalNamespaces), id.Namespace)
		})
	}
	for _, x := range t.causes {
		switch c := x.cause.(type) {
		case banCause:
			if v := c.why.kube; v != "" {
				t.addSetting("upgrade the cluster, and set "+t.versionField(c.ns+"/"+c.pkg, v)+": \""+v+"\"", func(in *inputs) { in.opt.KubernetesVersion, in.opt.Clusters = v, nil })
			}
		case overlapCause:
			t.addSetting("allow the overlap: set spec.allowOverlap: true", func(in *inputs) { in.opt.AllowOverlap = true })
		case requirementCause:
			if !t.b.w.opt.SharedDependencies && t.b.hasSeveralNamespaces() {
				t.addSetting("share the dependency between namespaces: set spec.sharedDependencies: true", func(in *inputs) { in.opt.SharedDependencies = true })
			}
			for _, cat := range t.b.w.x.Catalogs() {
				if len(t.b.w.providers(cat, c.req)) > 0 {
					addGlobal(c.ns, cat.ID(), " (it offers "+c.req.text+")")
				}
			}
		case requestCause:
			for _, cat := range t.b.w.x.CatalogsWith(c.want.pkg) {
				if id := cat.ID(); c.want.cat == nil || *c.want.cat == id {
					addGlobal(c.want.ns, id, "")
				}
			}
		}
	}
}

// addNamespaces adds remedies that move a declared subscription to another namespace: an existing namespace, or
// a new namespace whose OperatorGroup watches only the new namespace.
func (t *explainer) addNamespaces() {
	for _, s := range t.declaredWants() {
		addMove := func(ns, text string, change func(*inputs)) {
			t.add(remedy{Remedy: explain.Remedy{At: s.pos(declare.FieldNamespace).String(), Text: text}, apply: func(in *inputs) {
				in.subscription(s.key()).Namespace = ns
				change(in)
			}})
		}
		for _, g := range t.b.w.decl.OperatorGroups {
			if g.Namespace != s.ns && !slices.ContainsFunc(t.b.st.wants, func(o *want) bool { return o.ns == g.Namespace && o.pkg == s.pkg }) {
				addMove(g.Namespace, "move subscription "+s.key()+" to namespace "+g.Namespace, func(*inputs) {})
			}
		}
		own := s.ns + "-" + s.pkg
		if len(t.b.w.decl.OperatorGroupsIn(own)) == 0 {
			addMove(own, "move subscription "+s.key()+" to its own namespace, with an OperatorGroup that watches only that namespace", func(in *inputs) {
				in.setGroup(declare.OperatorGroup{Namespace: own, Name: own, TargetNamespaces: []string{own}})
			})
		}
	}
}
