package resolve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// demandingRule returns the number of the rule in the package comment that demands another answer than OLM's.
// If no rule does, or if the answer is unsound, it returns 0. The result depends only on the problem and the
// answers, not on a list of exceptions.
func (p *problem) demandingRule(t *testing.T, e expectation, got answer) int {
	switch {
	case got.Outcome == "conflict" && got.fault == "" && p.needsDowngrade(t, e):
		return 5 // the conflict is that a downgrade is not allowed
	case got.Outcome != "fixpoint" || got.fault != "":
		return 0
	case p.ignoresReplaced(t, e, got):
		return 8 // regardless of phases, a replaced CSV counts as removed
	case p.refusesDowngrade(e, got):
		return 5 // downgrades are not allowed
	case e.Nondeterministic && p.isPreferred(e, got):
		return 3 // sound, and preferred to all answers of OLM
	case p.followsDocumentedOrder(e, got) && e.Nondeterministic:
		return 3 // a dependency is from the catalog and channel that its first dependent prefers
	case p.followsDocumentedOrder(e, got):
		return 15 // a preference that OLM loses
	}
	return 0
}

// object holds the fields of an object that the rules use.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct{ Name, Version, Replaces string }
	Status   struct{ InstalledCSV string }
}

func (p *problem) objects(ns, kind string) []object {
	var out []object
	for _, raw := range p.Objects {
		var o object
		if json.Unmarshal(raw, &o) == nil && o.Kind == kind && o.Metadata.Namespace == ns {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b object) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// replaced returns the ClusterServiceVersions that have no subscription because a ClusterServiceVersion with a
// subscription replaced them, directly or indirectly.
func (p *problem) replaced(ns string) map[string]bool {
	csvs, current := p.objects(ns, "ClusterServiceVersion"), map[string]bool{}
	for _, s := range p.objects(ns, "Subscription") {
		current[s.Status.InstalledCSV] = true
	}
	gone := map[string]bool{}
	for range csvs { // follow the chain of replaces
		for _, by := range csvs {
			old := by.Spec.Replaces
			there := slices.ContainsFunc(csvs, func(c object) bool { return c.Metadata.Name == old })
			if there && !current[old] && (current[by.Metadata.Name] || gone[by.Metadata.Name]) {
				gone[old] = true
			}
		}
	}
	return gone
}

// ignoresReplaced reports whether OLM's answer contains a replaced ClusterServiceVersion, and got equals
// quayside's answer to the problem without the replaced ClusterServiceVersions.
func (p *problem) ignoresReplaced(t *testing.T, e expectation, got answer) bool {
	gone := p.replaced(e.Namespace)
	inTheWay := slices.ContainsFunc(e.Installed, func(i install) bool { return gone[i.CSV] && len(i.Subscriptions) == 0 })
	if !inTheWay {
		return false
	}
	without := *p
	without.Objects = slices.DeleteFunc(slices.Clone(p.Objects), func(raw json.RawMessage) bool {
		var o object
		return json.Unmarshal(raw, &o) == nil && o.Kind == "ClusterServiceVersion" && o.Metadata.Namespace == e.Namespace && gone[o.Metadata.Name]
	})
	x, ok := without.index(t, map[string]*catalog.Content{})
	return ok && without.solve(t, x)[e.Namespace].differs(got) == ""
}

// refusesDowngrade reports whether got differs from OLM's answer only because of OLM's downgrades. The rounds
// before the first downgrade must be equal, and so must the final bundles of packages that OLM never downgrades.
func (p *problem) refusesDowngrade(e expectation, got answer) bool {
	round, pkgs := p.firstDowngrade(e)
	want := e.asAnswer(p)
	if round < 0 || e.Outcome != "fixpoint" || len(want.Rounds) < round || len(got.Rounds) < round {
		return false
	}
	versions := p.versions()
	others := func(installed []string) []string {
		return slices.DeleteFunc(slices.Clone(installed), func(i string) bool { return pkgs[versions[strings.Fields(i)[0]].pkg] })
	}
	return slices.EqualFunc(want.Rounds[:round], got.Rounds[:round], slices.Equal) && slices.Equal(others(want.Installed), others(got.Installed))
}

// needsDowngrade reports whether OLM's answer contains a downgrade, and quayside gives the same answer if it is
// allowed to downgrade.
func (p *problem) needsDowngrade(t *testing.T, e expectation) bool {
	if round, _ := p.firstDowngrade(e); round < 0 || e.Outcome != "fixpoint" {
		return false
	}
	x, ok := p.index(t, map[string]*catalog.Content{})
	if !ok {
		return false
	}
	with := *p
	with.allowDowngrade = true
	down := with.solve(t, x)[e.Namespace]
	if e.Nondeterministic {
		return e.checkAlternatives(p, down) == ""
	}
	return e.asAnswer(p).differs(down) == ""
}

// followsDocumentedOrder reports whether got differs from OLM's answer only in the channels and catalogs of
// generated subscriptions, and got has the channels and catalogs that the documented order prefers.
func (p *problem) followsDocumentedOrder(e expectation, got answer) bool {
	want := e.asAnswer(p)
	versions := p.versions()
	theirs, first, other := map[string]generated{}, true, false
	for _, g := range e.Generated {
		theirs[g.Package] = g
	}
	for _, pin := range got.pins {
		g, ok := theirs[pin.Package]
		id := catalog.ID{Namespace: g.SourceNamespace, Name: g.Source}
		if ok && pin.Generated() && (id != pin.Catalog.ID || g.Channel != pin.Channel) {
			other = true
			first = first && slices.Compare(p.rank(got, pin, pin.Catalog.ID, pin.Channel), p.rank(got, pin, id, g.Channel)) < 0
		}
	}
	bare := func(a answer) []string { // without the names of generated subscriptions
		out := slices.Clone(a.Installed)
		for i := range out {
			csv, subs, _ := strings.Cut(out[i], " ")
			left := slices.DeleteFunc(strings.Split(subs, ","), func(s string) bool {
				return slices.ContainsFunc(a.Generated, func(g string) bool { return strings.HasPrefix(g, s+" "+versions[csv].pkg+" ") })
			})
			out[i] = csv + " " + strings.Join(left, ",")
		}
		return out
	}
	return other && first && len(e.Generated) == len(got.Generated) && slices.Equal(bare(want), bare(got)) &&
		(e.Nondeterministic || slices.EqualFunc(want.Rounds, got.Rounds, slices.Equal))
}

// rank returns a key that sorts the catalogs and channels of a dependency by preference, lowest first. The
// order depends on the first operator that requires the dependency.
func (p *problem) rank(got answer, pin lockfile.Pin, id catalog.ID, channel string) []string {
	var by []lockfile.Pin
	for _, r := range lockfile.New(got.pins).RequiredBy(pin) {
		at := slices.IndexFunc(got.pins, func(by lockfile.Pin) bool { return by.Key() == r.Pin })
		if at >= 0 {
			by = append(by, got.pins[at])
		}
	}
	slices.SortFunc(by, func(a, b lockfile.Pin) int { // declared ones come first in the search
		return strings.Compare(strconv.FormatBool(a.Generated())+a.Subscription(), strconv.FormatBool(b.Generated())+b.Subscription())
	})
	own := len(by) > 0 && by[0].Catalog.ID == id
	isDefault := slices.ContainsFunc(p.packages(id), func(has catalog.PackageData) bool {
		return has.Name == pin.Package && has.DefaultChannel == channel
	})
	no := func(yes bool) string { return strconv.FormatBool(!yes) }
	return []string{no(own), fmt.Sprintf("%010d", 1<<30-p.Catalogs[id.Name].Priority), no(id.Namespace == pin.Namespace), id.Name, no(isDefault), channel}
}

// firstDowngrade returns the first round in which OLM downgrades a package, or -1. It also returns all packages
// that OLM downgrades in any round.
func (p *problem) firstDowngrade(e expectation) (round int, pkgs map[string]bool) {
	last := map[string]catalog.Version{}
	for _, s := range p.objects(e.Namespace, "Subscription") {
		for _, c := range p.objects(e.Namespace, "ClusterServiceVersion") {
			if v, err := catalog.ParseVersion(c.Spec.Version); err == nil && s.Status.InstalledCSV == c.Metadata.Name {
				last[s.Spec.Name] = v
			}
		}
	}
	round, pkgs = -1, map[string]bool{}
	for at, step := range e.Steps {
		for _, i := range step.Install {
			v, err := catalog.ParseVersion(i.Version)
			if err != nil {
				continue
			}
			if old, ok := last[i.Package]; ok && v.LT(old) {
				pkgs[i.Package] = true
				if round < 0 {
					round = at
				}
			}
			last[i.Package] = v
		}
	}
	return round, pkgs
}

// isPreferred reports whether got is preferred to every alternative of OLM. For each alternative, it compares
// the packages in the order of the subscriptions. At the first difference, got must have the higher version.
func (p *problem) isPreferred(e expectation, got answer) bool {
	versions := p.versions()
	of := func(names []string, pkg string) catalog.Version {
		for _, n := range names {
			if b, ok := versions[strings.Fields(n)[0]]; ok && b.pkg == pkg {
				return b.version
			}
		}
		return catalog.Version{}
	}
	for _, alt := range e.Alternatives {
		better := 0
		for _, s := range p.objects(e.Namespace, "Subscription") {
			if better = of(got.Installed, s.Spec.Name).Compare(of(alt.Installed, s.Spec.Name)); better != 0 {
				break
			}
		}
		if better <= 0 {
			return false
		}
	}
	return len(e.Alternatives) > 0
}

type packageVersion struct {
	pkg     string
	version catalog.Version
}

// versions returns the package and version of every bundle by its name.
func (p *problem) versions() map[string]packageVersion {
	out := map[string]packageVersion{}
	for _, c := range p.Catalogs {
		var objects []struct {
			Schema, Name string
			Properties   []catalog.Property
		}
		_ = json.Unmarshal(c.FBC, &objects)
		for _, o := range objects {
			for _, prop := range o.Properties {
				v := fields(prop.Value)
				if version, err := catalog.ParseVersion(v["version"]); err == nil && prop.Type == "olm.package" {
					out[o.Name] = packageVersion{v["packageName"], version}
				}
			}
		}
	}
	return out
}
