package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
)

// A requirement is one thing that a bundle needs: some one bundle of the
// solution must match it (resolution.md section 5).
type requirement struct {
	label string // as the lock records it: "package b >=1.0.0"; equal labels mean equal requirements
	words string // as a person would say it: "package b >=1.0.0"
	note  string // the author's failure message
	match func(*facts) bool
	fault func() error // why nobody can tell whether it is met; nil: it cannot happen
	where hint
}

// hint says where bundles that match can be found at all.
type hint struct {
	anywhere bool
	packages []string
	apis     []catalog.GVK
}

// compile turns a requirement into one test on one bundle.
func compile(r catalog.Requirement, rules *celRules) *requirement {
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

// unknown returns why nobody can tell whether r is met, or nil.
func (r *requirement) unknown() error {
	if r.fault == nil {
		return nil
	}
	return r.fault()
}

func compileOne(r catalog.Requirement, parts []*requirement, rules *celRules) *requirement {
	switch r.Kind {
	case olm.RequireGVK:
		return compileAPI(r.GVK)
	case olm.RequirePackage:
		return compilePackage(r)
	case olm.RequireLabel:
		return compileLabel(r.Label)
	case olm.RequireCEL:
		return rules.requirement(r.Rule)
	case olm.RequireAll:
		return compileAll(parts)
	case olm.RequireAny:
		return compileAny(parts)
	default:
		return compileNot(parts)
	}
}

func compileAPI(g catalog.GVK) *requirement {
	return &requirement{
		label: "olm.gvk.required " + g.String(),
		words: "the API " + g.String(),
		match: func(f *facts) bool { return slices.Contains(f.apis, g) },
		where: hint{apis: []catalog.GVK{g}},
	}
}

func compilePackage(r catalog.Requirement) *requirement {
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
		label: "olm.constraint all(" + join(parts, ", ", bare) + ")",
		words: "one bundle that is " + join(parts, " and also ", words),
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
		label: "olm.constraint any(" + join(parts, ", ", bare) + ")",
		words: join(parts, " or ", words),
		match: func(f *facts) bool {
			return slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		where: where,
	}
}

// compileNot matches bundles that no part matches: it filters candidates and
// forbids nothing.
func compileNot(parts []*requirement) *requirement {
	return &requirement{
		label: "olm.constraint not(" + join(parts, ", ", bare) + ")",
		words: "a bundle that is not " + join(parts, " nor ", words),
		match: func(f *facts) bool {
			return !slices.ContainsFunc(parts, func(p *requirement) bool { return p.match(f) })
		},
		where: hint{anywhere: true},
	}
}

func words(r *requirement) string { return r.words }

// bare is the label without the repeated "olm.constraint".
func bare(r *requirement) string { return strings.TrimPrefix(r.label, "olm.constraint ") }

func join(rs []*requirement, sep string, of func(*requirement) string) string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		parts[i] = of(r)
	}
	return strings.Join(parts, sep)
}

// requirementKey spells r so that equal requirements have equal keys. It costs
// less than compiling r.
func requirementKey(b *strings.Builder, r catalog.Requirement) {
	fmt.Fprintf(b, "%d", r.Kind)
	switch r.Kind {
	case olm.RequireGVK:
		b.WriteString(r.GVK.Group + "\x00" + r.GVK.Version + "\x00" + r.GVK.Kind)
	case olm.RequirePackage:
		b.WriteString(r.Package + "\x00" + r.Range.String())
	case olm.RequireLabel:
		b.WriteString(r.Label)
	case olm.RequireCEL:
		b.WriteString(r.Rule)
	default: // what it is made of follows
	}
	b.WriteByte('(')
	for _, sub := range r.Of {
		requirementKey(b, sub)
	}
	b.WriteByte(')')
}
