package picture

import (
	"cmp"
	"slices"
)

// Widths returns the widths at which a picture is drawn for a page: for a telephone,
// for something between and for a desk. In a window of 320 pixels, the narrowest that a
// page has to be read in (WCAG 2.1, 1.4.10), the first is scaled by little.
func Widths() []int { return []int{312, 700, 1140} }

// layout returns the picture with everything in its place, at most width pixels wide.
func (p Picture) layout(width int) scene {
	s := scene{w: width}
	y := 0
	write := func(text, kind string, letter, line, most int) {
		for _, part := range wrap(text, (width-2)/letter, most) {
			y += line
			s.labels = append(s.labels, label{point{1, y - 5}, part, kind})
		}
	}
	write(p.Title, "t", 10, 22, 3)
	for _, g := range p.Groups {
		y += 10
		if g.Title != "" {
			write(g.Title, "b", cell, leading, 4)
			y += 6
		}
		lanes, h := best(g.Lanes, width)
		for i := range lanes {
			lanes[i].move(0, y)
		}
		s.lanes = append(s.lanes, lanes...)
		y += h
	}
	if len(p.Notes) > 0 {
		y += 8
	}
	for _, n := range p.Notes {
		write(n, "d", cell, leading, 4)
	}
	y = s.legend(p, y+10)
	s.h = y + 1
	return s
}

// best lays lanes out in the number of columns that takes the least room; stacks, in
// columns that are about as wide as a telephone.
func best(lanes []Lane, width int) ([]lane, int) {
	if len(lanes) > 0 && lanes[0].Stack {
		return grid(lanes, width, max(1, width/stackColumn))
	}
	least, h := grid(lanes, width, 1)
	for n := 2; n <= width/narrowestColumn; n++ {
		if other, oh := grid(lanes, width, n); oh < h {
			least, h = other, oh
		}
	}
	return least, h
}

const (
	narrowestColumn = 280
	stackColumn     = 340
)

// grid lays lanes out in n columns, from the left to the right and then further down,
// and returns how high that is. A lane in rows takes as many columns as it needs, those
// beside it are as high.
func grid(lanes []Lane, width, n int) ([]lane, int) {
	unit := (width - (n-1)*laneGap) / n
	heights := make([]int, n) // of what stands in each column of a grid of stacks
	var out []lane
	column, y := 0, 0
	first := 0 // lane of this shelf
	shelf := func() {
		h := 0
		for _, l := range out[first:] {
			h = max(h, l.h)
		}
		for i := first; i < len(out); i++ {
			out[i].h = h
		}
		if h > 0 {
			y += h + laneGap
		}
		first, column = len(out), 0
	}
	for _, l := range lanes {
		if l.Stack {
			lowest := 0
			for c, h := range heights {
				if h < heights[lowest] {
					lowest = c
				}
			}
			one := framed(l, unit)
			one.move(lowest*(unit+laneGap), heights[lowest])
			heights[lowest] += one.h + laneGap
			out = append(out, one)
			continue
		}
		span := 1
		for span < n && natural(l)+2*frame > span*unit+(span-1)*laneGap {
			span++
		}
		if column+span > n {
			shelf()
		}
		one := framed(l, span*unit+(span-1)*laneGap)
		one.move(column*(unit+laneGap), y)
		out = append(out, one)
		column += span
	}
	if len(lanes) > 0 && !lanes[0].Stack {
		shelf()
		return out, max(0, y-laneGap)
	}
	h := 0
	for _, one := range heights {
		h = max(h, one)
	}
	return out, max(0, h-laneGap)
}

// sorted returns links by where they lead to, how they are drawn and where they
// begin, each once. Of those from a box to the one that follows, one goes straight: the
// way, if it does.
func sorted(links []Link) []Link {
	out := slices.Clone(links)
	slices.SortFunc(out, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Stroke, b.Stroke), compareBool(a.Way, b.Way), cmp.Compare(a.From, b.From), cmp.Compare(a.Label, b.Label))
	})
	out = slices.Compact(out)
	next := map[int]int{} // link to the box that follows, by where it begins
	for i, k := range out {
		if old, ok := next[k.From]; k.To == k.From+1 && (!ok || k.Way && !out[old].Way) {
			next[k.From] = i
		}
	}
	for _, i := range next {
		out[i].next = true
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// framed returns a lane with its title and a frame, width pixels wide.
func framed(l Lane, width int) lane {
	inner := width - 2*frame
	l.Links = sorted(l.Links)
	var out lane
	if l.Stack {
		out = layStack(l, inner)
	} else {
		out = layRows(l, inner)
	}
	out.title = wrap(l.Title, inner/cell, 3)
	top := frame - 4
	if len(out.title) > 0 {
		top += len(out.title)*leading + 4
	}
	out.move(frame, top)
	out.rect = rect{w: width, h: top + out.h + frame}
	return out
}

// legend explains what occurs, from y on, and returns where it ends.
func (s *scene) legend(p Picture, y int) int {
	looks, strokes := map[Look]bool{}, map[Stroke]bool{}
	for _, l := range s.lanes {
		for _, b := range l.boxes {
			looks[b.box.Look] = true
		}
		for _, k := range l.strokes {
			strokes[k.link.Stroke] = true
		}
	}
	const sample, h = 34, 22
	x := 1
	for _, k := range p.Legend {
		if k.Line && !strokes[k.Stroke] || !k.Line && !looks[k.Look] {
			continue
		}
		w := sample + 8 + cells(k.Text)*cell
		if x > 1 && x+w > s.w {
			x, y = 1, y+h
		}
		s.keys = append(s.keys, placedKey{rect{x, y, sample, 14}, k})
		s.labels = append(s.labels, label{point{x + sample + 8, y + 12}, k.Text, "d"})
		x += w + 20
	}
	if x > 1 {
		y += h
	}
	return y
}
