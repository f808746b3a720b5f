package resolve_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// findUnsound returns the first error in the pins of one namespace, or "". Errors are an unmet requirement, two
// bundles of a package, two providers of an API, and a downgrade. It shares no code with the resolver.
func findUnsound(pins []lockfile.Pin, decl *declare.Set, ns string) string {
	there := presentBundles(pins, decl, ns)
	owner := map[string]string{}
	for _, b := range there {
		for _, claim := range b.claims() {
			if other, ok := owner[claim]; ok {
				return fmt.Sprintf("%s and %s both are %s", other, b.name, claim)
			}
			owner[claim] = b.name
		}
		for _, p := range b.props {
			meets := requirementTest(p)
			if meets != nil && !slices.ContainsFunc(there, meets) {
				return fmt.Sprintf("%s misses %s %s", b.name, p.Type, p.Value)
			}
		}
	}
	return findDowngrade(pins, decl, ns)
}

// presentBundle is one bundle that is installed or pinned in a namespace.
type presentBundle struct {
	name  string
	props []catalog.Property
}

func presentBundles(pins []lockfile.Pin, decl *declare.Set, ns string) []presentBundle {
	var there []presentBundle
	gone := map[string]bool{}
	for _, p := range pins {
		if p.Namespace == ns {
			there = append(there, presentBundle{p.Bundle, p.Properties})
			gone[p.Bundle], gone[p.Replaces] = true, true
		}
	}
	for _, s := range decl.Subscriptions {
		gone[s.InstalledCSV] = gone[s.InstalledCSV] || s.Namespace == ns
	}
	for _, c := range decl.CSVs { // predecessors of replaced bundles
		if c.Namespace == ns && gone[c.Name] {
			gone[c.Replaces] = true
		}
	}
	for _, c := range decl.CSVs {
		if c.Namespace == ns && !gone[c.Name] {
			there = append(there, presentBundle{c.Name, c.Properties})
		}
	}
	return there
}

func (b presentBundle) claims() []string {
	var out []string
	for _, p := range b.props {
		if p.Type == "olm.gvk" || p.Type == "olm.package" {
			v := fields(p.Value)
			out = append(out, p.Type+" "+v["packageName"]+v["group"]+"/"+v["apiVersion"]+" "+v["kind"])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fields returns the string fields of a JSON object. For an API, it adds the version as apiVersion, because the
// field version may also be the version of a package.
func fields(raw json.RawMessage) map[string]string {
	var v map[string]any
	_ = json.Unmarshal(raw, &v)
	out := map[string]string{}
	for k, x := range v {
		if s, ok := x.(string); ok {
			out[k] = s
		}
	}
	if out["kind"] != "" {
		out["apiVersion"] = out["version"]
	}
	return out
}

// requirementTest returns a function that reports whether a bundle meets a requirement. It returns nil if the
// property is not a requirement or has an unknown type.
func requirementTest(p catalog.Property) func(presentBundle) bool {
	v := fields(p.Value)
	switch p.Type {
	case "olm.gvk.required":
		return providesAPI(v)
	case "olm.package.required":
		return inRange(v)
	case "olm.label.required":
		return hasLabel(v["label"])
	case "olm.constraint":
		var c map[string]json.RawMessage
		_ = json.Unmarshal(p.Value, &c)
		return meetsConstraint(c)
	}
	return nil
}

func providesAPI(v map[string]string) func(presentBundle) bool {
	return func(b presentBundle) bool {
		return slices.ContainsFunc(b.props, func(p catalog.Property) bool {
			have := fields(p.Value)
			return p.Type == "olm.gvk" && have["group"] == v["group"] && have["kind"] == v["kind"] && have["version"] == v["version"]
		})
	}
}

func hasLabel(label string) func(presentBundle) bool {
	return func(b presentBundle) bool {
		return slices.ContainsFunc(b.props, func(p catalog.Property) bool { return p.Type == "olm.label" && fields(p.Value)["label"] == label })
	}
}

func inRange(v map[string]string) func(presentBundle) bool {
	in, err := catalog.ParseRange(v["versionRange"])
	return func(b presentBundle) bool {
		return err == nil && slices.ContainsFunc(b.props, func(p catalog.Property) bool {
			have := fields(p.Value)
			version, err := catalog.ParseVersion(have["version"])
			return err == nil && p.Type == "olm.package" && have["packageName"] == v["packageName"] && in.Contains(version)
		})
	}
}

// meetsConstraint returns a test for a compound constraint. No bundle passes the test for an unknown kind.
func meetsConstraint(c map[string]json.RawMessage) func(presentBundle) bool {
	for key, raw := range c {
		switch key {
		case "cel":
			return satisfiesRule(fields(raw)["rule"])
		case "gvk":
			return providesAPI(fields(raw))
		case "package":
			return inRange(fields(raw))
		case "all", "any", "not":
			var v struct{ Constraints []map[string]json.RawMessage }
			_ = json.Unmarshal(raw, &v)
			return func(b presentBundle) bool {
				n := 0
				for _, sub := range v.Constraints {
					if meetsConstraint(sub)(b) {
						n++
					}
				}
				return key == "all" && n == len(v.Constraints) || key == "any" && n > 0 || key == "not" && n == 0
			}
		}
	}
	return func(presentBundle) bool { return false }
}

// satisfiesRule returns a function that reports whether a bundle satisfies a CEL rule.
func satisfiesRule(rule string) func(presentBundle) bool {
	compare := func(a, b ref.Val) ref.Val {
		x, err1 := semver.ParseTolerant(fmt.Sprint(a.Value()))
		y, err2 := semver.ParseTolerant(fmt.Sprint(b.Value()))
		if err1 != nil || err2 != nil {
			return types.NewErr("no versions: %v, %v", a, b)
		}
		return types.Int(x.Compare(y))
	}
	var program cel.Program
	env, err := cel.NewEnv(cel.Variable("properties", cel.DynType), cel.Function("semver_compare",
		cel.Overload("compare", []*cel.Type{cel.DynType, cel.DynType}, cel.IntType, cel.BinaryBinding(compare))))
	if err == nil {
		if ast, issues := env.Compile(rule); issues.Err() == nil {
			program, err = env.Program(ast)
		}
	}
	return func(b presentBundle) bool {
		var props []any
		for _, p := range b.props {
			var v any
			_ = json.Unmarshal(p.Value, &v)
			props = append(props, map[string]any{"type": p.Type, "value": v})
		}
		if program == nil || err != nil {
			return false
		}
		out, _, err := program.Eval(map[string]any{"properties": props})
		return err == nil && out == types.True
	}
}

// findDowngrade returns an error about the first pin with a lower version than the installed bundle, or "".
func findDowngrade(pins []lockfile.Pin, decl *declare.Set, ns string) string {
	for _, s := range decl.Subscriptions {
		for _, c := range decl.CSVs {
			if s.Namespace != ns || c.Namespace != ns || s.InstalledCSV != c.Name {
				continue
			}
			for _, p := range pins {
				old, err1 := catalog.ParseVersion(c.Version)
				now, err2 := catalog.ParseVersion(p.Version)
				if p.Namespace == ns && p.Package == s.Package && err1 == nil && err2 == nil && now.LT(old) {
					return fmt.Sprintf("%s went down from %s to %s", s.Package, old, now)
				}
			}
		}
	}
	return ""
}
