package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Facts holds the decoded properties of one bundle.
type Facts struct {
	Package, Version string  // fields of the last olm.package property
	Release          *string // field of the last olm.package property, unparsed; nil if omitted
	Provides         []GVK
	Labels           []string
	Requires         []Requirement // in the order of the properties
	Deprecated       bool
	MaxVersion       string // olm.maxOpenShiftVersion, such as "4.9", unparsed
	Unusable         string // error of the first invalid requirement, or ""
}

// Read decodes the properties of one bundle. An invalid requirement sets Unusable. Other invalid
// properties are ignored.
func Read(ps []Property) Facts {
	var f Facts
	r := NewReader()
	for _, p := range ps {
		_ = r.Add(&f, p)
	}
	f.Sort()
	return f
}

// Reader decodes properties. It caches the results, because most properties of successive
// versions of an operator are equal.
type Reader struct {
	gvks     map[string]cachedResult[GVK]
	requires map[requirementKey]cachedResult[*Requirement]
}

type requirementKey struct{ typ, value string }

type cachedResult[T any] struct {
	value T
	err   error
}

// NewReader returns a Reader with an empty cache.
func NewReader() *Reader {
	return &Reader{gvks: map[string]cachedResult[GVK]{}, requires: map[requirementKey]cachedResult[*Requirement]{}}
}

// Add decodes p and adds it to f. An invalid olm.package or olm.gvk is an error and leaves f
// unchanged. An invalid requirement sets f.Unusable.
func (r *Reader) Add(f *Facts, p Property) error {
	switch p.Type {
	case TypePackage:
		var v ownPackage
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return fmt.Errorf("property %s: %w", p.Type, jsonFault(err))
		}
		f.Package, f.Version, f.Release = v.PackageName, v.Version, v.Release
	case TypeGVK:
		got, ok := r.gvks[string(p.Value)]
		if !ok {
			got.value, got.err = parseGVK(p.Value)
			r.gvks[string(p.Value)] = got
		}
		if got.err != nil {
			return fmt.Errorf("property %s: %w", p.Type, got.err)
		}
		f.Provides = append(f.Provides, got.value)
	case TypeLabel:
		var v label
		if json.Unmarshal(p.Value, &v) == nil && v.Label != "" {
			f.Labels = append(f.Labels, v.Label)
		}
	case TypeDeprecated:
		f.Deprecated = true
	case TypeMaxVersion:
		f.MaxVersion = plainText(p.Value)
	case TypeGVKRequired, TypePackageRequired, TypeLabelRequired, TypeConstraint:
		r.addRequirement(f, p)
	}
	return nil
}

func (r *Reader) addRequirement(f *Facts, p Property) {
	key := requirementKey{p.Type, string(p.Value)}
	got, ok := r.requires[key]
	if !ok {
		got.value, got.err = parseRequirement(p)
		r.requires[key] = got
	}
	switch {
	case got.err == nil:
		f.Requires = append(f.Requires, *got.value)
	case f.Unusable == "":
		f.Unusable = p.Type + ": " + got.err.Error()
	}
}

// Sort sorts Provides and Labels and removes duplicates.
func (f *Facts) Sort() {
	slices.SortFunc(f.Provides, GVK.Compare)
	f.Provides = slices.Compact(f.Provides)
	slices.Sort(f.Labels)
	f.Labels = slices.Compact(f.Labels)
}

// plainText returns the text of a JSON string. It returns any other JSON value unchanged.
func plainText(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(string(value))
}
