package resolve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// findMisplaced returns the first error in the pins of a namespace, or "". A subscription must have a pin or a
// conflict. The catalog and channel of a pin must be declared and visible, and must have the bundle. The name
// of a generated subscription must equal OLM's.
func (p *problem) findMisplaced(a answer, decl *declare.Set, ns string) string {
	declared := map[string]declare.Subscription{}
	for _, s := range decl.Subscriptions {
		if s.Namespace != ns {
			continue
		}
		declared[s.Name] = s
		pinned := slices.ContainsFunc(a.Installed, func(i string) bool { return slices.Contains(strings.Split(strings.Fields(i)[1], ","), s.Name) })
		if !pinned && len(a.conflicts) == 0 {
			return s.Name + " has no pin"
		}
	}
	for _, pin := range a.pins {
		from := pin.Catalog.ID
		if pin.Generated() {
			if name := strings.Join([]string{pin.Package, pin.Channel, from.Name, from.Namespace}, "-"); pin.Subscription() != name {
				return fmt.Sprintf("%s ought to be called %s", pin.Subscription(), name)
			}
		} else if s := declared[pin.Subscription()]; s.Package != pin.Package || s.Catalog != nil && *s.Catalog != from || len(s.Channels) > 0 && !slices.Contains(s.Channels, pin.Channel) {
			return fmt.Sprintf("%s is from channel %s of %s, which %s does not declare", pin.Bundle, pin.Channel, from, pin.Subscription())
		}
		if from.Namespace != ns && from.Namespace != p.GlobalCatalogNamespace {
			return fmt.Sprintf("%s is not visible in %s", from, ns)
		}
		if !p.wasInstalled(ns, pin.Bundle) && p.Catalogs[from.Name].Corpus == "" && !slices.Contains(p.entries(from, pin.Package, pin.Channel), pin.Bundle) {
			return fmt.Sprintf("%s is not in channel %q of %s", pin.Bundle, pin.Channel, from)
		}
	}
	return ""
}

// packages returns the packages of a catalog in the problem. It returns nil if the catalog cannot be decoded,
// or if it is a published catalog of the corpus.
func (p *problem) packages(id catalog.ID) []catalog.PackageData {
	if read, ok := p.read[id]; ok {
		return read
	}
	var objects []json.RawMessage
	_ = json.Unmarshal(p.Catalogs[id.Name].FBC, &objects)
	content, _ := fbc.Decode(id.Name, bytes.NewReader(bytes.Join(bytesOf(objects), []byte("\n"))))
	if p.read == nil {
		p.read = map[catalog.ID][]catalog.PackageData{}
	}
	p.read[id] = content.Packages
	return content.Packages
}

// entries returns the bundles of a channel, or of all channels if channel is empty.
func (p *problem) entries(id catalog.ID, pkg, channel string) []string {
	var out []string
	for _, has := range p.packages(id) {
		for _, c := range has.Channels {
			for _, e := range c.Entries {
				if has.Name == pkg && (channel == "" || c.Name == channel) {
					out = append(out, e.Name)
				}
			}
		}
	}
	return out
}

// findNeedless returns an error about a generated pin that meets no requirement after the first round, or "".
// It also considers the requirements of the pinned bundles in the catalogs: the properties of an existing
// ClusterServiceVersion may lack the requirement that caused the pin.
func (p *problem) findNeedless(pins []lockfile.Pin, decl *declare.Set, ns string) string {
	there := presentBundles(pins, decl, ns)
	for _, pin := range pins {
		for _, has := range p.packages(pin.Catalog.ID) {
			for _, b := range has.Bundles {
				if b.Name == pin.Bundle {
					there = append(there, presentBundle{b.Name, b.Properties})
				}
			}
		}
	}
	for _, pin := range pins {
		needed := func(p catalog.Property) bool {
			m := requirementTest(p)
			return m != nil && m(presentBundle{pin.Bundle, pin.Properties})
		}
		if pin.Generated() && !slices.ContainsFunc(there, func(b presentBundle) bool { return slices.ContainsFunc(b.props, needed) }) {
			return "nothing needs " + pin.Bundle
		}
	}
	return ""
}

var (
	subscriptionNamed = regexp.MustCompile(`subscription (\S+) exists`)
	csvNamed          = regexp.MustCompile(`clusterserviceversion (\S+) exists`)
)

// checkConflict checks an answer to a problem for which OLM finds no solution. A conflict in got must contain a
// subscription or ClusterServiceVersion of OLM's error. It need not contain all of them: OLM reports one of
// several contradicting sets, and this set is not minimal. checkConflict returns the error in got, or "".
func (e *expectation) checkConflict(got answer) string {
	said := strings.Join(append(e.ErrorsSeen, e.Error), ", ")
	for _, c := range got.conflicts {
		for _, m := range subscriptionNamed.FindAllStringSubmatch(said, -1) {
			if slices.Contains(c.Subscriptions, e.Namespace+"/"+m[1]) {
				return ""
			}
		}
		for _, m := range csvNamed.FindAllStringSubmatch(said, -1) {
			if slices.Contains(strings.FieldsFunc(c.Error(), func(r rune) bool { return strings.ContainsRune(" \t\n,:", r) }), m[1]) {
				return ""
			}
		}
	}
	return "a conflict of others than OLM's"
}

// checkError checks an answer to a problem for which OLM fails. Each conflict in got must contain a
// subscription that causes OLM's error (rule 4), or whose package is already installed without a subscription.
// checkError returns the error in got, or "".
func (e *expectation) checkError(p *problem, got answer) string {
	groups := len(p.objects(e.Namespace, "OperatorGroup"))
	blamed := map[string]bool{}
	for _, raw := range p.Objects {
		var s struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Spec     struct{ Name, Channel, Source, SourceNamespace string }
		}
		if json.Unmarshal(raw, &s) != nil || s.Kind != "Subscription" || s.Metadata.Namespace != e.Namespace {
			continue
		}
		id := catalog.ID{Namespace: s.Spec.SourceNamespace, Name: s.Spec.Source}
		all, any := p.unusable(id, s.Spec.Name, s.Spec.Channel)
		inUse := func(b presentBundle) bool { return slices.Contains(b.claims(), "olm.package "+s.Spec.Name+"/ ") }
		any = any || slices.ContainsFunc(got.free, inUse)
		all = all || groups > 1 || slices.Contains(p.InvalidCatalogs, id.Name)
		blamed[e.Namespace+"/"+s.Metadata.Name] = all || any
		if all && !slices.ContainsFunc(got.conflicts, func(c *explain.Conflict) bool {
			return slices.Contains(c.Subscriptions, e.Namespace+"/"+s.Metadata.Name)
		}) {
			return s.Metadata.Name + " takes part in no conflict, and nothing can answer it"
		}
	}
	for _, c := range got.conflicts {
		if !slices.ContainsFunc(c.Subscriptions, func(s string) bool { return blamed[s] }) {
			return "a conflict without a subscription that causes the error: " + c.Title()
		}
	}
	return ""
}

// unusable reports whether all bundles of a channel have a malformed requirement, and whether any bundle has one.
func (p *problem) unusable(id catalog.ID, pkg, channel string) (all, any bool) {
	all = true
	for _, has := range p.packages(id) {
		for _, b := range has.Bundles {
			if has.Name != pkg || !slices.Contains(p.entries(id, pkg, channel), b.Name) {
				continue
			}
			bad := slices.ContainsFunc(b.Properties, unreadable)
			all, any = all && bad, any || bad
		}
	}
	return all && any, any
}

// unreadable reports whether a requirement has a malformed range or is a malformed constraint.
func unreadable(p catalog.Property) bool {
	switch p.Type {
	case "olm.package.required":
		_, err := catalog.ParseRange(fields(p.Value)["versionRange"])
		return err != nil
	case "olm.constraint":
		return malformed(p.Value)
	}
	return false
}

// malformed reports whether a constraint, or a constraint inside of it, is malformed: it does not have exactly
// one known kind, its range is malformed, or its rule is not a boolean CEL expression.
func malformed(constraint json.RawMessage) bool {
	var c map[string]json.RawMessage
	if json.Unmarshal(constraint, &c) != nil {
		return true
	}
	delete(c, "failureMessage")
	if len(c) != 1 {
		return true
	}
	for kind, value := range c {
		switch kind {
		case "gvk":
		case "package":
			_, err := catalog.ParseRange(fields(value)["versionRange"])
			return err != nil
		case "cel":
			return !isBoolean(fields(value)["rule"])
		case "all", "any", "not":
			var inner struct{ Constraints []json.RawMessage }
			return json.Unmarshal(value, &inner) != nil || slices.ContainsFunc(inner.Constraints, malformed)
		default:
			return true
		}
	}
	return false
}

// isBoolean reports whether a rule of a constraint is a boolean CEL expression.
func isBoolean(rule string) bool {
	env, err := cel.NewEnv(cel.Variable("properties", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Function("semver_compare", cel.Overload("semver_compare", []*cel.Type{cel.DynType, cel.DynType}, cel.IntType)))
	if err != nil {
		panic(err)
	}
	ast, bad := env.Compile(rule)
	return bad.Err() == nil && ast.OutputType() == cel.BoolType
}
