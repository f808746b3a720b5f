package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Facts holds the decoded properties of one bundle.
type Facts struct {
	Package, Version string  // of the last olm.package
	Release          *string // of the last olm.package, as written; nil if omitted
	Provides         []GVK
	Labels           []string
	Requires         []Requirement // in the order of the properties
	Deprecated       bool
	MaxVersion       string // of OpenShift, such as "4.9", as written
	Unusable         string // the first invalid requirement and its error, or ""
}

// Read decodes the properties of one bundle. It ignores invalid properties, except for
// requirements, which set Unusable.
func Read(ps []Property) Facts {
	var f Facts
	r := NewReader()
	for _, p := range ps {
		_ = r.Add(&f, p)
	}
	f.Sort()
	return f
}

// Reader decodes properties and caches the results, because most properties of a bundle equal those
// of its previous version.
type Reader struct {
	gvks     map[string]cachedResult[GVK]
	requires map[requirementKey]cachedResult[*Requirement]
}

type requirementKey struct{ typ, value string }

type cachedResult[T any] struct {
	value T
	err   error
}

// NewReader returns a reader with an empty cache.
func NewReader() *Reader {
	return &Reader{gvks: map[string]cachedResult[GVK]{}, requires: map[requirementKey]cachedResult[*Requirement]{}}
}

// Add decodes p into f. It returns an error and leaves f unchanged for an invalid olm.package or
// olm.gvk. An invalid requirement sets f.Unusable.
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

// Sort sorts and deduplicates Provides and Labels.
func (f *Facts) Sort() {
	slices.SortFunc(f.Provides, GVK.Compare)
	f.Provides = slices.Compact(f.Provides)
	slices.Sort(f.Labels)
	f.Labels = slices.Compact(f.Labels)
}

// plainText returns the text of a JSON string, or any other value as written.
func plainText(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(string(value))
}
