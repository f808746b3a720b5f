// Package boxset implements set operations on unions of boxes. A box is a Cartesian product of sets. For
// example, a webhook rule matches a box of requests: groups × versions × resources × operations. The
// elements of a box are never enumerated, so the cost does not depend on their number.
package boxset

import (
	"errors"
	"slices"
)

// Values is a set of strings: the listed strings, or all strings except the listed ones. The zero value is
// the empty set.
type Values struct {
	except bool
	list   []string // sorted, without duplicates
}

// Of returns the set of the given strings.
func Of(list ...string) Values {
	return Values{list: slices.Compact(slices.Sorted(slices.Values(list)))}
}

// Except returns the set of all strings but the given ones. Except() is the set of all strings.
func Except(list ...string) Values {
	v := Of(list...)
	v.except = true
	return v
}

// List returns the strings of the set, sorted. If except is true, the set contains all strings except
// these. The result must not be modified.
func (v Values) List() (list []string, except bool) { return v.list, v.except }

// Empty reports whether the set has no strings.
func (v Values) Empty() bool { return !v.except && len(v.list) == 0 }

// Has reports whether the set contains s.
func (v Values) Has(s string) bool {
	_, listed := slices.BinarySearch(v.list, s)
	return listed != v.except
}

// And returns the strings that are in both sets.
func (v Values) And(w Values) Values {
	switch {
	case v.except && w.except:
		return Except(slices.Concat(v.list, w.list)...)
	case v.except:
		v, w = w, v
	}
	return Values{list: slices.DeleteFunc(slices.Clone(v.list), func(s string) bool { return !w.Has(s) })}
}

// Minus returns the strings of v that are not in w.
func (v Values) Minus(w Values) Values {
	w.except = !w.except
	return v.And(w)
}

// Or returns the strings that are in at least one of the sets.
func (v Values) Or(w Values) Values { return Except().Minus(Except().Minus(v).Minus(w)) }

// Box is a product of sets. It contains the points whose value in each dimension is in the set of this
// dimension. A dimension that is missing in the map allows all values.
type Box map[string]Values

// In returns the values that the box allows in a dimension.
func (b Box) In(dimension string) Values {
	if v, ok := b[dimension]; ok {
		return v
	}
	return Except()
}

// And returns the points that are in both boxes. The boxes are not modified.
func (b Box) And(c Box) Box {
	out := make(Box, len(b)+len(c))
	for d, v := range b {
		out[d] = v
	}
	for d, v := range c {
		out[d] = out.In(d).And(v)
	}
	return out
}

// Empty reports whether the box has no points.
func (b Box) Empty() bool {
	for _, v := range b {
		if v.Empty() {
			return true
		}
	}
	return false
}

// MaxValues limits the number of values that Minus compares, because the sets may be untrusted.
const MaxValues = 5_000_000

// ErrTooLarge means that a difference needs more than MaxValues comparisons.
var ErrTooLarge = errors.New("too many combinations to compare")

// Minus returns the points that are in a box of a, but in no box of b, as non-empty boxes. It does not
// modify its arguments. The only possible error is ErrTooLarge.
func Minus(a, b []Box) ([]Box, error) {
	var out []Box
	steps := 0
	for _, box := range a {
		rest := []Box{box}
		for _, cut := range b {
			var next []Box
			for _, r := range rest {
				if steps += r.size() + cut.size(); steps > MaxValues {
					return nil, ErrTooLarge
				}
				next = cutBox(next, r, cut)
			}
			rest = next
		}
		for _, r := range rest {
			if !r.Empty() {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// size is the cost of a comparison with the box: 1, plus its dimensions, plus the listed values in all dimensions.
func (b Box) size() int {
	n := 1
	for _, v := range b {
		n += 1 + len(v.list)
	}
	return n
}

// cutBox appends to out the parts of box that are outside of cut.
func cutBox(out []Box, box, cut Box) []Box {
	if box.And(cut).Empty() {
		return append(out, box)
	}
	for _, d := range dimensions(cut) {
		if outside := box.In(d).Minus(cut[d]); !outside.Empty() {
			part := box.And(nil)
			part[d] = outside
			out = append(out, part)
		}
		box = box.And(Box{d: cut[d]})
	}
	return out
}

// dimensions returns the dimensions that a box limits, sorted.
func dimensions(b Box) []string {
	out := make([]string, 0, len(b))
	for d := range b {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}
