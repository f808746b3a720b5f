package resolve_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
)

// byRule returns the rule of resolution.md section 0 that demands another answer
// than OLM's for a problem that no list of exceptions knows, or 0. What the rule
// asks about is in the problem itself, and the answer must be sound.
func (p *problem) byRule(e expectation, got answer) int {
	switch {
	case got.Outcome != "fixpoint" || got.fault != "":
		return 0
	case p.hasReplaced(e.Namespace):
		return 8 // phases play no part: what a CSV has replaced is gone
	case p.goesDown(e):
		return 5 // versions do not go down
	case e.Nondeterministic && p.preferred(e, got):
		return 3 // sound, and preferred to all that OLM gave
	}
	return 0
}

// object is what the rules look at.
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

// hasReplaced reports whether a ClusterServiceVersion is there beside the one
// that has replaced it.
func (p *problem) hasReplaced(ns string) bool {
	csvs := p.objects(ns, "ClusterServiceVersion")
	return slices.ContainsFunc(csvs, func(by object) bool {
		return by.Spec.Replaces != "" && slices.ContainsFunc(csvs, func(c object) bool { return c.Metadata.Name == by.Spec.Replaces })
	})
}

// goesDown reports whether OLM, on its way, put a lower version of a package in
// the place of a higher one.
func (p *problem) goesDown(e expectation) bool {
	last := map[string]catalog.Version{}
	for _, s := range p.objects(e.Namespace, "Subscription") {
		for _, c := range p.objects(e.Namespace, "ClusterServiceVersion") {
			if v, err := olm.ParseVersion(c.Spec.Version); err == nil && s.Status.InstalledCSV == c.Metadata.Name {
				last[s.Spec.Name] = v
			}
		}
	}
	for _, step := range e.Steps {
		for _, i := range step.Install {
			v, err := olm.ParseVersion(i.Version)
			if err != nil {
				continue
			}
			if old, ok := last[i.Package]; ok && v.LT(old) {
				return true
			}
			last[i.Package] = v
		}
	}
	return false
}

// preferred reports whether got is preferred to every alternative: the first
// subscription, in the order of names, whose version differs has the higher one.
func (p *problem) preferred(e expectation, got answer) bool {
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
				if version, err := olm.ParseVersion(v["version"]); err == nil && prop.Type == "olm.package" {
					out[o.Name] = packageVersion{v["packageName"], version}
				}
			}
		}
	}
	return out
}
