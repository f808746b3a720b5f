package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// rows lays out a lane whose boxes follow each other from left to right, in as many
// rows as its width asks for.
type rows struct {
	lane   Lane
	width  int
	boxes  []placed
	of     []int   // row of each box
	rows   [][]int // boxes of each row
	side   int     // tracks in the gutter at the right
	combs  []comb
	onSide int // tracks that the gutter needs
}

// comb is a line that leads from some boxes to one: a track above each row that has
// one of them, which a track at the right joins.
type comb struct {
	link   Link
	from   []int
	reach  []reach // a row each, from the top
	side   int     // its track in the gutter
	inPort int     // where it enters the box, of ports there
	ports  map[int]int
}

// reach is the part of a comb above one row.
type reach struct{ row, left, right, track int }

// layRows returns the lane, laid out in at most width pixels. Lines for which there is
// no room are said in the boxes that they lead to: first those that pass versions
// over, then the others, last the way.
func layRows(l Lane, width int) lane {
	for _, drawn := range []func(Link) bool{
		func(Link) bool { return true },
		func(k Link) bool { return k.Way || k.Stroke == Solid },
		func(k Link) bool { return k.Way },
		func(Link) bool { return false },
	} {
		one := said(l, drawn)
		if len(one.Links) > len(one.Boxes)*(1+widest/portWidth) {
			continue // more than could begin and end at boxes
		}
		if r, ok := tryRows(one, width); ok {
			return r.place()
		}
	}
	panic(fmt.Sprintf("no room for boxes without lines in %d pixels", width))
}

// said returns the lane with the links that are not drawn as lines of text. Those
// that go straight to the next box are always drawn.
func said(l Lane, drawn func(Link) bool) Lane {
	out := l
	out.Boxes, out.Links = slices.Clone(l.Boxes), nil
	type group struct {
		to     int
		stroke Stroke
	}
	from := map[group][]Link{}
	var order []group
	for _, k := range l.Links {
		if k.next || drawn(k) {
			out.Links = append(out.Links, k)
			continue
		}
		g := group{k.To, k.Stroke}
		if from[g] == nil {
			order = append(order, g)
		}
		from[g] = append(from[g], k)
	}
	for _, g := range order {
		links := from[g]
		b := &out.Boxes[g.to]
		text := links[0].Label + " " + l.Boxes[links[0].From].Lines[0].S
		if n := len(links); n > 1 {
			text = fmt.Sprintf("%s … %s (%d)", text, l.Boxes[links[n-1].From].Lines[0].S, n)
		}
		b.Lines = append(slices.Clone(b.Lines), Text{S: text})
	}
	return out
}

// Bounds of what can be told apart.
const (
	mostTracks = 7 // above a row
	mostSide   = 6 // in a gutter of a wide lane
	portWidth  = 9
)

func tryRows(l Lane, width int) (*rows, bool) {
	r := &rows{lane: l, width: width}
	room := mostSide
	if width < 500 {
		room = 3
	}
	for {
		r.size()
		r.wrap()
		if !r.route() || r.onSide > room {
			return nil, false
		}
		if r.onSide <= r.side {
			return r, true
		}
		r.side = r.onSide
	}
}

// size gives every box the size that its text asks for.
func (r *rows) size() {
	r.boxes = make([]placed, len(r.lane.Boxes))
	most := min(widest, r.width-2*gutter-r.side*track)
	for i, b := range r.lane.Boxes {
		r.boxes[i] = sized(b, narrowest, most, 1)
	}
}

// sized returns a box that is as wide as its text, within bounds. Lines below the
// first are wrapped into so many.
func sized(b Box, least, most, lines int) placed {
	p := placed{box: b}
	n := (most - 2*padX) / cell
	w := 0
	for i, t := range b.Lines {
		parts := []string{cut(t.S, n)}
		if i > 0 && lines > 1 {
			parts = wrap(t.S, n, lines)
		}
		for _, s := range parts {
			p.lines = append(p.lines, Text{S: s, Warn: t.Warn})
			w = max(w, cells(s))
		}
	}
	p.w = max(w*cell+2*padX, least)
	p.h = len(p.lines)*leading + 2*padY
	return p
}

// natural returns how wide a lane is in one row.
func natural(l Lane) int {
	w := 0
	for _, b := range l.Boxes {
		w += sized(b, narrowest, widest, 1).w + between
	}
	return w - between
}

// wrap deals the boxes out to rows.
func (r *rows) wrap() {
	r.of, r.rows = make([]int, len(r.boxes)), nil
	room := r.width
	if natural(r.lane) > room {
		room -= 2*gutter + r.side*track
	}
	x := room + 1
	for i := range r.boxes {
		b := &r.boxes[i]
		if x+b.w > room {
			r.rows = append(r.rows, nil)
			x = 0
		}
		n := len(r.rows) - 1
		b.x, r.of[i] = x, n
		r.rows[n] = append(r.rows[n], i)
		x += b.w + between
	}
	if len(r.rows) > 1 {
		for i := range r.boxes {
			r.boxes[i].x += gutter
		}
	}
}

// route finds a track for every link but those to the next box, and reports
// whether there is room for them.
func (r *rows) route() bool {
	r.comb()
	if !r.ports() {
		return false
	}
	for n := range r.rows {
		if !r.tracks(n) {
			return false
		}
	}
	r.sides()
	return true
}

// comb groups the links, which are sorted, by where they lead to and how they are
// drawn.
func (r *rows) comb() {
	r.combs = nil
	for _, k := range r.lane.Links {
		if k.next || k.To == k.From {
			continue
		}
		if n := len(r.combs) - 1; n >= 0 && r.combs[n].link.To == k.To && r.combs[n].link.Stroke == k.Stroke && r.combs[n].link.Way == k.Way {
			if from := r.combs[n].from; from[len(from)-1] != k.From {
				r.combs[n].from = append(from, k.From)
			}
			continue
		}
		r.combs = append(r.combs, comb{link: k, from: []int{k.From}, side: -1, ports: map[int]int{}})
	}
}

// ports finds a place on the top of each box for every line that begins or ends
// there: those that end on its left, those that begin on its right.
func (r *rows) ports() bool {
	ends := make([][]int, len(r.boxes)) // combs
	for i, c := range r.combs {
		ends[c.link.To] = append(ends[c.link.To], i)
	}
	for i, c := range r.combs {
		for _, from := range c.from {
			ends[from] = append(ends[from], i)
		}
	}
	for b, list := range ends {
		if len(list)*portWidth > r.boxes[b].w {
			return false
		}
		for n, i := range list {
			x := r.boxes[b].x + r.boxes[b].w*(n+1)/(len(list)+1)
			if r.combs[i].link.To == b {
				r.combs[i].inPort = x
			} else {
				r.combs[i].ports[b] = x
			}
		}
	}
	return true
}

// tracks finds a track above row n for every comb that has a box there; the shortest
// come to lie lowest.
func (r *rows) tracks(n int) bool {
	var here []*reach
	for i := range r.combs {
		c := &r.combs[i]
		one := reach{row: n, left: r.width, right: -1}
		several := false
		for _, b := range append([]int{c.link.To}, c.from...) {
			if r.of[b] != n {
				several = true
				continue
			}
			x := c.inPort
			if b != c.link.To {
				x = c.ports[b]
			}
			one.left, one.right = min(one.left, x), max(one.right, x)
		}
		if one.right < 0 {
			continue
		}
		if several {
			one.right = r.width
		}
		c.reach = append(c.reach, one)
		here = append(here, &c.reach[len(c.reach)-1])
	}
	slices.SortStableFunc(here, func(a, b *reach) int { return cmp.Compare(a.right-a.left, b.right-b.left) })
	free := assign(len(here), func(i, j int) bool { return here[i].left <= here[j].right+2 && here[j].left <= here[i].right+2 })
	for i, of := range here {
		of.track = free[i]
		if of.track >= mostTracks {
			return false
		}
	}
	return true
}

// sides finds a track in the gutter for every comb with boxes in several rows.
func (r *rows) sides() {
	r.onSide = 0
	var here []*comb
	for i := range r.combs {
		if len(r.combs[i].reach) > 1 {
			here = append(here, &r.combs[i])
		}
	}
	top := func(c *comb) int { return c.reach[0].row }
	bottom := func(c *comb) int { return c.reach[len(c.reach)-1].row }
	slices.SortStableFunc(here, func(a, b *comb) int { return cmp.Compare(bottom(a)-top(a), bottom(b)-top(b)) })
	for i, n := range assign(len(here), func(i, j int) bool { return top(here[i]) <= bottom(here[j]) && top(here[j]) <= bottom(here[i]) }) {
		here[i].side = n
		r.onSide = max(r.onSide, n+1)
	}
}

// assign returns the lowest number for each of n things that none before it has with
// which it is at odds.
func assign(n int, atOdds func(i, j int) bool) []int {
	out := make([]int, n)
	for i := range out {
		taken := map[int]bool{}
		for j := range i {
			if atOdds(i, j) {
				taken[out[j]] = true
			}
		}
		for taken[out[i]] {
			out[i]++
		}
	}
	return out
}
