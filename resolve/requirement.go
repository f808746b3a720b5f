package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/model"
)

// requirement is one requirement of a bundle. A single bundle of the solution must match it
// (resolution.md section 5).
type requirement struct {
	label string // in the lock: "package b >=1.0.0"; equal labels mean equal requirements
	words string // in messages: "package b >=1.0.0"
	note  string // the author's failure message
	match func(*facts) bool
	fault func() error // the reason why it cannot be evaluated; nil: always evaluable
	where hint
}

// hint limits the search for matching bundles.
type hint struct {
	anywhere bool
	packages []string
	apis     []model.GVK
}

// compile turns a requirement into a single predicate on bundles.
func compile(r model.Requirement, rules *celRules) *requirement {
	parts := make([]*requirement, len(r.Of))
	for i, sub := range r.Of {
		parts[i] = compile(sub, rules)
	}
	out := compileOne(r, parts, rules)
	if len(parts) > 0 {
		out.fault = func() error {
			for _, p := range parts {
				if err := p.unknown(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return out
}

// unknown returns the reason why r cannot be evaluated, or nil.
func (r *requirement) unknown() error {
	if r.fault == nil {
		return nil
	}
	return r.fault()
}

func compileOne(r model.Requirement, parts []*requirement, rules *celRules) *requirement {
	switch r.Kind {
	case model.RequireGVK:
		return compileAPI(r.GVK)
	case model.RequirePackage:
		return compilePackage(r)
	case model.RequireLabel:
		return compileLabel(r.Label)
	case model.RequireCEL:
		return rules.requirement(r.Rule)
	case model.RequireAll:
		return compileAll(parts)
	case model.RequireAny:
		return compileAny(parts)
	default:
		return compileNot(parts)
	}
}

func compileAPI(g model.GVK) *requirement {
	return &requirement{
		label: "olm.gvk.required " + g.String(),
		words: "the API " + g.String(),
		match: func(f *facts) bool { return slices.Contains(f.apis, g) },
		where: hint{apis: []model.GVK{g}},
	}
}

func compilePackage(r model.Requirement) *requirement {
	text := r.Package + " " + r.Range.String()
	return &requirement{
		label: "olm.package.required " + text,
		words: "package " + text,
		match: func(f *facts) bool { return f.inRange(r.Package, r.Range) },
		where: hint{packages: []string{r.Package}},
	}
}

func compileLabel(name string) *requirement {
	return &requirement{
		label: "olm.label.required " + name,
		words: fmt.Sprintf("a bundle labelled %q", name),
		match: func(f *facts) bool { return slices.Contains(f.labels, name) },
		where: hint{anywhere: true},
	}
}

func compileAll(parts []*requirement) *requirement {
	where := hint{anywhere: true}
	for _, p := range parts {
		if !p.where.anywhere {
			where = p.where
			break
		}
	}
	return &requirement{
		label: "olm.constraint all(" + join(parts, ", ", requirementName) + ")",
		words: "one bundle that is " + join(parts, " and also ", requirementText),
		match: func(f *facts) bool {
			return !slices.ContainsFunc(parts, func(p *requirement) bool { return !p.match(f) })
		},
		where: where,
	}
}

func compileAny(parts []*requirement) *requirement {
	var where hint
	for _, p := range parts {
		where.anywhere = where.anywhere || p.where.anywhere
		where.packages = append(where.packages, p.where.packages...)
		where.apis = append(where.apis, p.where.apis...)
	}
	return &requirement{
		label: "olm.constraint any(" + join(parts, ", ", requirementName) + ")",
		words: join(parts, " or ", requirementText),
		match: func(f *facts) bool {
			return slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		where: where,
	}
}

// compileNot matches bundles that no part matches. It filters candidates, and does not exclude
// other bundles from the solution.
func compileNot(parts []*requirement) *requirement {
	return &requirement{
		label: "olm.constraint not(" + join(parts, ", ", requirementName) + ")",
		words: "a bundle that is not " + join(parts, " nor ", requirementText),
		match: func(f *facts) bool {
			return !slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		where: hint{anywhere: true},
	}
}

func requirementText(r *requirement) string { return r.words }

// requirementName returns the label without the repeated "olm.constraint".
func requirementName(r *requirement) string { return strings.TrimPrefix(r.label, "olm.constraint ") }

func join(rs []*requirement, sep string, of func(*requirement) string) string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		parts[i] = of(r)
	}
	return strings.Join(parts, sep)
}

// requirementKey writes a key of r. Equal requirements have equal keys. It is cheaper than
// compiling r.
func requirementKey(b *strings.Builder, r model.Requirement) {
	fmt.Fprintf(b, "%d", r.Kind)
	switch r.Kind {
	case model.RequireGVK:
		b.WriteString(r.GVK.Group + "\x00" + r.GVK.Version + "\x00" + r.GVK.Kind)
	case model.RequirePackage:
		b.WriteString(r.Package + "\x00" + r.Range.String())
	case model.RequireLabel:
		b.WriteString(r.Label)
	case model.RequireCEL:
		b.WriteString(r.Rule)
	default: // only the parts matter
	}
	b.WriteByte('(')
	for _, sub := range r.Of {
		requirementKey(b, sub)
	}
	b.WriteByte(')')
}
