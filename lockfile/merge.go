package lockfile

import "slices"

// CanMerge reports whether Git can merge a and b, both derived from base, without conflict, in either
// order. This requires that they change different blocks, and add and remove blocks in different
// places.
func CanMerge(base, a, b *File) bool {
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

// edits holds the numbers of the blocks and gaps that a change touches. Blocks are numbered in the
// order of the file: first the pins, then the entries of Leaving. Gap i is before block i.
type edits struct{ touched, gaps []int }

func editsOf(base, next *File) edits {
	var e edits
	n := addBlocks(&e, 0, base.Pins, next.Pins, comparePins)
	if len(base.Leaving) == 0 && len(next.Leaving) > 0 {
		e.gaps = append(e.gaps, n) // the new list starts after the last pin
	}
	addBlocks(&e, n+1, base.Leaving, next.Leaving, compareLeaving)
	return e
}

// addBlocks adds the touched blocks and gaps of one list to e. The first block of the list has the
// number first. It returns the number that follows the last block. A removed block also touches the
// gaps on both sides.
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
