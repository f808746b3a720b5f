package lockfile

import "slices"

// CanMerge reports whether Git can merge a and b, which are both derived from base, without a conflict and in
// either order. Git can merge a and b if they change different blocks, and add and remove blocks in different
// places.
func CanMerge(base, a, b *File) bool {
	x, y := editsOf(base, a), editsOf(base, b)
	overlap := func(a, b []int) bool {
		return slices.ContainsFunc(a, func(i int) bool { return slices.Contains(b, i) })
	}
	return !overlap(x.touched, y.touched) && !overlap(x.gaps, y.gaps)
}

// edits describes which lines of the lock a change touches: blocks, and gaps between blocks. Blocks
// are numbered in the order of the file, first the pins, then the leaving operators. Gap i is
// before block i.
type edits struct{ touched, gaps []int }

func editsOf(base, next *File) edits {
	var e edits
	n := addBlocks(&e, 0, base.Pins, next.Pins, comparePins)
	if len(base.Leaving) == 0 && len(next.Leaving) > 0 {
		e.gaps = append(e.gaps, n) // the new section begins after the last pin
	}
	addBlocks(&e, n+1, base.Leaving, next.Leaving, compareLeaving)
	return e
}

// addBlocks adds to e the differences between base and next, two versions of one section of the lock. first is
// the number of the first block of the section. addBlocks returns the number of the first block after the
// section. For a removed block, it also adds the gaps on both sides of the block.
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
