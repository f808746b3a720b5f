package lockfile

import "slices"

// Merge returns base with the changes of each next to it, in order. Each must be made
// from base.
func Merge(base *File, next ...*File) *File {
	pins, leaving := slices.Clone(base.Pins), slices.Clone(base.Leaving)
	for _, n := range next {
		pins = mergeBlocks(pins, base.Pins, n.Pins, comparePins)
		leaving = mergeBlocks(leaving, base.Leaving, n.Leaving, compareLeaving)
	}
	out := base.With(pins)
	out.Leaving = nonEmpty(leaving)
	return out.sorted()
}

// mergeBlocks returns onto with the changes from base to next.
func mergeBlocks[T block](onto, base, next []T, compare func(a, b T) int) []T {
	out := slices.Clone(onto)
	remove := func(b T) { out = slices.DeleteFunc(out, func(o T) bool { return compare(o, b) == 0 }) }
	for _, b := range base {
		if i := slices.IndexFunc(next, func(n T) bool { return compare(n, b) == 0 }); i < 0 {
			remove(b)
		} else if checksum(next[i]) != checksum(b) {
			remove(b)
			out = append(out, next[i])
		}
	}
	for _, n := range next {
		if !slices.ContainsFunc(base, func(b T) bool { return compare(n, b) == 0 }) {
			remove(n)
			out = append(out, n)
		}
	}
	return out
}

// Apart reports whether Git merges two files that were made from base, in either order:
// they change other blocks, and neither adds or removes one where the other does.
func Apart(base, a, b *File) bool {
	x, y := editsOf(base, a), editsOf(base, b)
	for _, i := range x.touched {
		if slices.Contains(y.touched, i) {
			return false
		}
	}
	for _, i := range x.gaps {
		if slices.Contains(y.gaps, i) {
			return false
		}
	}
	return true
}

// edits are the places of a lock that a change touches: blocks by their number, pins
// before those that are leaving, and gaps, where gap i is before block i.
type edits struct{ touched, gaps []int }

func editsOf(base, next *File) edits {
	var e edits
	n := addBlocks(&e, 0, base.Pins, next.Pins, comparePins)
	if len(base.Leaving) == 0 && len(next.Leaving) > 0 {
		e.gaps = append(e.gaps, n) // the list itself comes behind the last pin
	}
	addBlocks(&e, n+1, base.Leaving, next.Leaving, compareLeaving)
	return e
}

// addBlocks adds the places of one list, whose first block has the number first, and
// returns the number behind its last one. A block that is removed opens the gaps on
// both sides.
func addBlocks[T block](e *edits, first int, base, next []T, compare func(a, b T) int) int {
	for i, b := range base {
		j := slices.IndexFunc(next, func(n T) bool { return compare(n, b) == 0 })
		switch {
		case j < 0:
			e.touched = append(e.touched, first+i)
			e.gaps = append(e.gaps, first+i, first+i+1)
		case checksum(next[j]) != checksum(b):
			e.touched = append(e.touched, first+i)
		}
	}
	for _, n := range next {
		i, found := slices.BinarySearchFunc(base, n, compare)
		if !found {
			e.gaps = append(e.gaps, first+i)
		}
	}
	return first + len(base)
}
