package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// RequirementKind is the kind of a Requirement. It determines which fields of the Requirement are
// set.
type RequirementKind int

// The kinds of requirements, each with the fields that are set.
const (
	RequireGVK     RequirementKind = iota + 1 // GVK
	RequirePackage                            // Package and Range
	RequireLabel                              // Label
	RequireAll                                // Of: one bundle must meet all of them
	RequireAny                                // Of: one bundle must meet at least one of them
	RequireNot                                // Of: one bundle must meet none of them
	RequireCEL                                // Rule: a CEL expression, not compiled by this package
)

// Requirement is a condition that at least one bundle of the resolved set must meet.
type Requirement struct {
	Kind    RequirementKind
	GVK     GVK
	Package string
	Range   Range
	Label   string
	Of      []Requirement
	Rule    string // `properties.exists(p, p.type == "certified")`
	Message string // failureMessage of an olm.constraint; may be empty
}

// Parts returns r and, recursively, the requirements in Of.
func (r *Requirement) Parts() iter.Seq[*Requirement] {
	return func(yield func(*Requirement) bool) { r.eachPart(yield) }
}

func (r *Requirement) eachPart(yield func(*Requirement) bool) bool {
	if !yield(r) {
		return false
	}
	for i := range r.Of {
		if !r.Of[i].eachPart(yield) {
			return false
		}
	}
	return true
}

// EmptyField returns the name of the first field whose empty value makes the requirement impossible to meet,
// or "". It does not examine the parts in Of.
func (r *Requirement) EmptyField() string {
	fields := map[RequirementKind][]struct{ name, value string }{
		RequirePackage: {{"packageName", r.Package}},
		RequireLabel:   {{"label", r.Label}},
		RequireGVK:     {{"group", r.GVK.Group}, {"version", r.GVK.Version}, {"kind", r.GVK.Kind}},
	}
	for _, f := range fields[r.Kind] {
		if f.value == "" {
			return f.name
		}
	}
	return ""
}

const (
	maxConstraintSize  = 2 << 16 // bytes, as in Operator Framework's own parser
	maxConstraintDepth = 32
)

// parseRequirement parses a property of one of the types olm.gvk.required, olm.package.required,
// olm.constraint and olm.label.required.
func parseRequirement(p Property) (*Requirement, error) {
	switch p.Type {
	case TypeGVKRequired:
		g, err := parseGVK(p.Value)
		if err != nil {
			return nil, err
		}
		return &Requirement{Kind: RequireGVK, GVK: g}, nil
	case TypePackageRequired:
		var v packageConstraint
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, jsonFault(err)
		}
		return v.requirement()
	case TypeLabelRequired:
		var v label
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, jsonFault(err)
		}
		return &Requirement{Kind: RequireLabel, Label: v.Label}, nil
	default:
		return parseConstraint(p.Value)
	}
}

func parseGVK(value []byte) (GVK, error) {
	var v gvk
	if err := json.Unmarshal(value, &v); err != nil {
		return GVK{}, jsonFault(err)
	}
	return GVK(v), nil
}

type packageConstraint struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

func (v packageConstraint) requirement() (*Requirement, error) {
	r, err := ParseRange(v.VersionRange)
	if err != nil {
		return nil, fmt.Errorf("package %q: %w", v.PackageName, err)
	}
	return &Requirement{Kind: RequirePackage, Package: v.PackageName, Range: r}, nil
}

// constraint mirrors the JSON of an olm.constraint.
type constraint struct {
	FailureMessage string             `json:"failureMessage"`
	Cel            *celRule           `json:"cel"`
	Package        *packageConstraint `json:"package"`
	GVK            *gvk               `json:"gvk"`
	All            *compound          `json:"all"`
	Any            *compound          `json:"any"`
	Not            *compound          `json:"not"`
}

type celRule struct {
	Rule string `json:"rule"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

// parseConstraint parses the value of an olm.constraint property. Unknown fields, an empty
// constraint at any level, and an invalid range are errors.
func parseConstraint(value []byte) (*Requirement, error) {
	if len(value) > maxConstraintSize {
		return nil, fmt.Errorf("constraint of %d bytes exceeds the limit of %d", len(value), maxConstraintSize)
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	var c constraint
	if err := d.Decode(&c); err != nil {
		return nil, jsonFault(err)
	}
	return c.requirement(1)
}

func (c *constraint) requirement(depth int) (*Requirement, error) {
	if depth > maxConstraintDepth {
		return nil, fmt.Errorf("constraint nested deeper than %d levels", maxConstraintDepth)
	}
	r, err := c.convert(depth)
	if err != nil {
		return nil, err
	}
	r.Message = c.FailureMessage
	return r, nil
}

// convert returns the requirement for the first field that is set, in OLM's order of fields. depth
// is the nesting level.
func (c *constraint) convert(depth int) (*Requirement, error) {
	switch {
	case c.GVK != nil:
		return &Requirement{Kind: RequireGVK, GVK: GVK(*c.GVK)}, nil
	case c.Package != nil:
		return c.Package.requirement()
	case c.All != nil:
		return c.All.requirement(RequireAll, depth)
	case c.Any != nil:
		return c.Any.requirement(RequireAny, depth)
	case c.Not != nil:
		return c.Not.requirement(RequireNot, depth)
	case c.Cel != nil:
		return &Requirement{Kind: RequireCEL, Rule: c.Cel.Rule}, nil
	default:
		return nil, errors.New("constraint is empty: set one of gvk, package, all, any, not, cel")
	}
}

func (c *compound) requirement(kind RequirementKind, depth int) (*Requirement, error) {
	r := &Requirement{Kind: kind, Of: make([]Requirement, 0, len(c.Constraints))}
	for i := range c.Constraints {
		sub, err := c.Constraints[i].requirement(depth + 1)
		if err != nil {
			return nil, err
		}
		r.Of = append(r.Of, *sub)
	}
	return r, nil
}

// jsonFault returns the error of a JSON decoder in the style of our messages, without the prefix
// "json: ".
func jsonFault(err error) error {
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		return fmt.Errorf("%s: expected %s, got %s", cmp.Or(typ.Field, "value"), strings.Replace(typ.Type.Kind().String(), "struct", "object", 1), typ.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
