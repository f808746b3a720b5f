package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// requirement is a compiled requirement of a bundle. One matching bundle is enough to meet it.
type requirement struct {
	label string // text for the lock: "package b >=1.0.0"; equal labels mean equal requirements
	text  string // text for messages: "package b >=1.0.0"
	note  string // the failure message written by the author of the bundle
	match func(*facts) bool
	fault func() error // returns the error that prevents its evaluation; nil if none is possible
	scope searchScope
}

// searchScope limits the search for bundles that may match a requirement.
type searchScope struct {
	anywhere bool
	packages []string
	apis     []catalog.GVK
}

// compile converts a requirement to a predicate on bundles.
func compile(r catalog.Requirement, rules *celRules) *requirement {
	parts := make([]*requirement, len(r.Of))
	for i, sub := range r.Of {
		parts[i] = compile(sub, rules)
	}
	out := compileOne(r, parts, rules)
	if len(parts) > 0 {
		out.fault = func() error {
			for _, p := range parts {
				if err := p.err(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return out
}

// err returns the error that prevents the evaluation of r, or nil.
func (r *requirement) err() error {
	if r.fault == nil {
		return nil
	}
	return r.fault()
}

func compileOne(r catalog.Requirement, parts []*requirement, rules *celRules) *requirement {
	switch r.Kind {
	case catalog.RequireGVK:
		return compileAPI(r.GVK)
	case catalog.RequirePackage:
		return compilePackage(r)
	case catalog.RequireLabel:
		return compileLabel(r.Label)
	case catalog.RequireCEL:
		return rules.requirement(r.Rule)
	case catalog.RequireAll:
		return compileAll(parts)
	case catalog.RequireAny:
		return compileAny(parts)
	default:
		return compileNot(parts)
	}
}

func compileAPI(g catalog.GVK) *requirement {
	return &requirement{
		label: "olm.gvk.required " + g.String(),
		text:  "the API " + g.String(),
		match: func(f *facts) bool { return slices.Contains(f.apis, g) },
		scope: searchScope{apis: []catalog.GVK{g}},
	}
}

func compilePackage(r catalog.Requirement) *requirement {
	text := r.Package + " " + r.Range.String()
	return &requirement{
		label: "olm.package.required " + text,
		text:  "package " + text,
		match: func(f *facts) bool { return f.inRange(r.Package, r.Range) },
		scope: searchScope{packages: []string{r.Package}},
	}
}

func compileLabel(name string) *requirement {
	return &requirement{
		label: "olm.label.required " + name,
		text:  fmt.Sprintf("a bundle labelled %q", name),
		match: func(f *facts) bool { return slices.Contains(f.labels, name) },
		scope: searchScope{anywhere: true},
	}
}

func compileAll(parts []*requirement) *requirement {
	where := searchScope{anywhere: true}
	for _, p := range parts {
		if !p.scope.anywhere {
			where = p.scope
			break
		}
	}
	return &requirement{
		label: "olm.constraint all(" + join(parts, ", ", formatLabel) + ")",
		text:  "one bundle that is " + join(parts, " and also ", formatText),
		match: func(f *facts) bool {
			return !slices.ContainsFunc(parts, func(p *requirement) bool { return !p.match(f) })
		},
		scope: where,
	}
}

func compileAny(parts []*requirement) *requirement {
	var where searchScope
	for _, p := range parts {
		where.anywhere = where.anywhere || p.scope.anywhere
		where.packages = append(where.packages, p.scope.packages...)
		where.apis = append(where.apis, p.scope.apis...)
	}
	return &requirement{
		label: "olm.constraint any(" + join(parts, ", ", formatLabel) + ")",
		text:  join(parts, " or ", formatText),
		match: func(f *facts) bool {
			return slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		scope: where,
	}
}

// compileNot returns a requirement that a bundle meets if it matches none of the parts. Other
// bundles of the solution may match them.
func compileNot(parts []*requirement) *requirement {
	return &requirement{
		label: "olm.constraint not(" + join(parts, ", ", formatLabel) + ")",
		text:  "a bundle that is not " + join(parts, " nor ", formatText),
		match: func(f *facts) bool {
			return !slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		scope: searchScope{anywhere: true},
	}
}

func formatText(r *requirement) string { return r.text }

// formatLabel returns the label of r without "olm.constraint", for use in another label.
func formatLabel(r *requirement) string { return strings.TrimPrefix(r.label, "olm.constraint ") }

func join(rs []*requirement, sep string, of func(*requirement) string) string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		parts[i] = of(r)
	}
	return strings.Join(parts, sep)
}

// writeRequirementKey writes a key for r to b. Equal requirements have equal keys. This is cheaper
// than compiling r.
func writeRequirementKey(b *strings.Builder, r catalog.Requirement) {
	fmt.Fprintf(b, "%d", r.Kind)
	switch r.Kind {
	case catalog.RequireGVK:
		b.WriteString(r.GVK.Group + "\x00" + r.GVK.Version + "\x00" + r.GVK.Kind)
	case catalog.RequirePackage:
		b.WriteString(r.Package + "\x00" + r.Range.String())
	case catalog.RequireLabel:
		b.WriteString(r.Label)
	case catalog.RequireCEL:
		b.WriteString(r.Rule)
	default: // only the parts matter
	}
	b.WriteByte('(')
	for _, sub := range r.Of {
		writeRequirementKey(b, sub)
	}
	b.WriteByte(')')
}
