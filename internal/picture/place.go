package picture

// place returns the lane with everything in its place, without a frame.
func (r *rows) place() lane {
	out := lane{rect: rect{w: r.width}}
	next := map[int]Link{} // links to the next box
	for _, k := range r.lane.Links {
		if k.next {
			next[k.From] = k
		}
	}
	base := make([]int, len(r.rows)) // y of the lowest track above each row
	turns := make([]int, len(r.rows))
	y := 0
	for n, row := range r.rows {
		if n > 0 {
			y += rowGap
			if _, ok := next[row[0]-1]; ok {
				turns[n] = y
				y += track + 3
			}
		}
		top := 0
		for _, c := range r.combs {
			for _, part := range c.reach {
				if part.row == n {
					top = max(top, part.track+1)
				}
			}
		}
		if top > 0 {
			y += top*track + 5
		}
		base[n] = y - track - 5
		h := 0
		for _, i := range row {
			h = max(h, r.boxes[i].h)
		}
		for _, i := range row {
			r.boxes[i].y, r.boxes[i].h = y, h
		}
		y += h
	}
	out.h, out.boxes = y, r.boxes
	for i := range r.boxes {
		if k, ok := next[i]; ok {
			out.strokes = append(out.strokes, r.toNext(k, turns))
		}
	}
	for _, c := range r.combs {
		out.strokes = append(out.strokes, r.drawn(c, base))
	}
	return out
}

// toNext returns the line from a box to the next one: an arrow, or a line down and
// around to the row below.
func (r *rows) toNext(k Link, turns []int) stroke {
	a, b := r.boxes[k.From].rect, r.boxes[k.To].rect
	from, to := point{a.x + a.w, a.y + a.h/2}, point{b.x, b.y + b.h/2}
	path := []point{from, to}
	if n := r.of[k.To]; n != r.of[k.From] {
		right := r.width - gutter/2 - r.side*track
		path = []point{from, {right, from.y}, {right, turns[n]}, {1, turns[n]}, {1, to.y}, to}
	}
	return stroke{link: k, pieces: [][]point{path}, head: to}
}

// drawn returns the line of a comb.
func (r *rows) drawn(c comb, base []int) stroke {
	out := stroke{link: c.link, down: true}
	at := map[int]int{} // y of its track, by row
	for _, part := range c.reach {
		at[part.row] = base[part.row] - part.track*track
	}
	side := r.width - r.side*track + c.side*track + 2
	for _, b := range c.from {
		out.pieces = append(out.pieces, []point{{c.ports[b], r.boxes[b].y}, {c.ports[b], at[r.of[b]]}})
	}
	for _, part := range c.reach {
		right := part.right
		if len(c.reach) > 1 {
			right = side
		}
		out.pieces = append(out.pieces, []point{{part.left, at[part.row]}, {right, at[part.row]}})
	}
	if n := len(c.reach); n > 1 {
		out.pieces = append(out.pieces, []point{{side, at[c.reach[0].row]}, {side, at[c.reach[n-1].row]}})
	}
	out.head = point{c.inPort, r.boxes[c.link.To].y}
	out.pieces = append(out.pieces, []point{{c.inPort, at[r.of[c.link.To]]}, out.head})
	return out
}

// layStack returns a lane whose boxes are below each other, in width pixels. What is
// deeper than there is room for is not moved in; a line leads to it from the box
// right above alone.
func layStack(l Lane, width int) lane {
	out := lane{rect: rect{w: width}}
	y := 0
	for i, b := range l.Boxes {
		if i > 0 {
			y += rowGap / 2
			if b.Depth == 0 {
				y += rowGap / 2
			}
		}
		x := min(b.Depth, deepest, max(0, (width-180)/indent)) * indent
		p := sized(b, width-x, width-x, 3)
		p.x, p.y, p.w = x, y, width-x
		out.boxes = append(out.boxes, p)
		y += p.h
	}
	out.h = y
	for _, k := range l.Links {
		a, b := out.boxes[k.From].rect, out.boxes[k.To].rect
		if a.x < b.x || k.To == k.From+1 {
			out.strokes = append(out.strokes, elbow(k, a, b))
		}
	}
	return out
}

// elbow returns the line from a box to one that is further down and further in, or as
// far in where it goes no further.
func elbow(k Link, a, b rect) stroke {
	s := stroke{link: k}
	if x := a.x + indent/2; x < b.x {
		s.head = point{b.x, b.y + b.h/2}
		s.pieces = [][]point{{{x, a.y + a.h}, {x, s.head.y}, s.head}}
		return s
	}
	s.head, s.down = point{b.x + indent/2, b.y}, true
	s.pieces = [][]point{{{b.x + indent/2, a.y + a.h}, s.head}}
	return s
}
