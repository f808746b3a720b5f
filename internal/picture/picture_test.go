package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLayout draws random pictures and holds what every one is held to.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		for _, width := range append(Widths(), 1168) {
			if faults := p.faults(width); len(faults) > 0 {
				t.Fatalf("width %d:\n%s", width, strings.Join(faults, "\n"))
			}
		}
	})
}

// TestLarge does so with more than there is room for.
func TestLarge(t *testing.T) {
	for name, link := range map[string]func(i int) []int{
		"chain":               func(i int) []int { return []int{i + 1} },
		"all to all":          func(i int) []int { return upTo(200)[i+1:] },
		"all back":            func(i int) []int { return upTo(i) },
		"all to the last one": func(i int) []int { return []int{i + 1, 199} },
		"in a circle":         func(i int) []int { return []int{(i + 1) % 200} },
		"to itself":           func(i int) []int { return []int{i} },
		"nowhere":             func(int) []int { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := Lane{Title: name}
			for i := range 200 {
				l.Boxes = append(l.Boxes, Box{Lines: []Text{{S: fmt.Sprint(i)}}})
				for _, to := range link(i) {
					if to < 200 {
						l.Links = append(l.Links, Link{From: i, To: to, Stroke: Stroke(i % 3), Label: "to"})
					}
				}
			}
			p := Picture{Groups: []Group{{Lanes: []Lane{l}}}}
			for _, width := range Widths() {
				for _, fault := range p.faults(width) {
					t.Errorf("width %d: %s", width, fault)
				}
			}
		})
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// random returns a picture of rows or of stacks.
func random(r *rand.Rand) Picture {
	p := Picture{Title: word(r), Notes: []string{word(r)}, Legend: []Key{{Text: "a"}, {Text: "a line", Line: true}, {Text: "faint", Look: Faint}}}
	for range 1 + r.IntN(2) {
		g := Group{Title: word(r)}
		stack := r.IntN(3) == 0
		for range 1 + r.IntN(5) {
			l := Lane{Title: word(r), Stack: stack}
			for i := range 1 + r.IntN(30) {
				b := Box{Look: Look(r.IntN(4)), Lines: []Text{{S: word(r)}}}
				for range r.IntN(3) {
					b.Lines = append(b.Lines, Text{S: word(r), Warn: r.IntN(2) == 0})
				}
				if stack && i > 0 {
					parent := r.IntN(i)
					for l.Boxes[parent].Depth+1 > l.Boxes[i-1].Depth+1 || !last(l.Boxes, parent) {
						parent = i - 1
					}
					b.Depth = l.Boxes[parent].Depth + 1
					l.Links = append(l.Links, Link{From: parent, To: i})
				}
				l.Boxes = append(l.Boxes, b)
			}
			for range r.IntN(4) * len(l.Boxes) / 2 {
				if !stack {
					l.Links = append(l.Links, Link{From: r.IntN(len(l.Boxes)), To: r.IntN(len(l.Boxes)), Stroke: Stroke(r.IntN(3)), Way: r.IntN(5) == 0, Label: "leads"})
				}
			}
			g.Lanes = append(g.Lanes, l)
		}
		p.Groups = append(p.Groups, g)
	}
	return p
}

// last reports whether box i is the last one of its depth, so that something may
// be put below it.
func last(boxes []Box, i int) bool {
	return !slices.ContainsFunc(boxes[i+1:], func(b Box) bool { return b.Depth <= boxes[i].Depth })
}

func word(r *rand.Rand) string {
	n := r.IntN(12)
	if r.IntN(8) == 0 {
		n = r.IntN(400)
	}
	letters := []rune("abc.-/ 漢ü🙂0123")
	var b strings.Builder
	for range n {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// faults returns what is wrong with a picture as it is laid out.
func (p Picture) faults(width int) []string {
	var out []string
	s := p.layout(width)
	var lanes []Lane
	for _, g := range p.Groups {
		lanes = append(lanes, g.Lanes...)
	}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	all := rect{0, 0, s.w, s.h}
	if s.w > width {
		add("%d wide", s.w)
	}
	var boxes []placed
	for i, l := range s.lanes {
		if !all.holds(l.rect) {
			add("lane %d %v leaves %v", i, l.rect, all)
		}
		for _, other := range s.lanes[:i] {
			if l.meets(other.rect) {
				add("lanes %v and %v lie on each other", l.rect, other.rect)
			}
		}
		for _, b := range l.boxes {
			if !l.holds(b.rect) {
				add("box %v leaves its lane %v", b.rect, l.rect)
			}
			for _, other := range boxes {
				if b.meets(other.rect) {
					add("boxes %v and %v lie on each other", b.rect, other.rect)
				}
			}
			if len(b.lines)*leading > b.h {
				add("%d lines in a box of %d", len(b.lines), b.h)
			}
			for _, line := range b.lines {
				if padX+cells(line.S)*cell > b.w {
					add("%q leaves its box of %d", line.S, b.w)
				}
			}
			boxes = append(boxes, b)
		}
		out = append(out, l.linkFaults(lanes[i])...)
	}
	for _, l := range s.labels {
		if l.x+cells(l.s)*cell > s.w || l.y > s.h {
			add("%q at %v leaves the picture", l.s, l.point)
		}
	}
	return out
}

// linkFaults returns what is wrong with the lines of a lane: each link is drawn, or said
// in the box that it leads to, and nothing is drawn that is no link.
func (l lane) linkFaults(of Lane) []string {
	type end struct {
		from, to int
		stroke   Stroke
	}
	var out []string
	drawn, links := map[end]bool{}, map[end]bool{}
	for _, k := range l.strokes {
		out = append(out, l.strokeFaults(k)...)
		for _, piece := range k.pieces {
			for b := range l.boxes {
				if l.boxes[b].onEdge(piece[0]) {
					drawn[end{b, k.link.To, k.link.Stroke}] = true
				}
			}
		}
	}
	for _, k := range of.Links {
		e := end{k.From, k.To, k.Stroke}
		links[e] = true
		said := slices.ContainsFunc(l.boxes[k.To].box.Lines, func(t Text) bool { return k.Label != "" && strings.HasPrefix(t.S, k.Label) })
		if !drawn[e] && !said && k.From != k.To && !of.Stack {
			out = append(out, fmt.Sprintf("link %v is neither drawn nor said", e))
		}
	}
	for e := range drawn {
		if !links[e] {
			out = append(out, fmt.Sprintf("line %v is no link", e))
		}
	}
	return out
}

// strokeFaults returns what is wrong with a line: it hangs together, begins at boxes,
// ends at the one that it leads to, and runs through none.
func (l lane) strokeFaults(k stroke) []string {
	var out []string
	if !l.boxes[k.link.To].onEdge(k.head) {
		out = append(out, fmt.Sprintf("the line to box %d ends at %v, not at %v", k.link.To, k.head, l.boxes[k.link.To].rect))
	}
	if !slices.ContainsFunc(k.pieces, func(piece []point) bool {
		return slices.ContainsFunc(l.boxes, func(b placed) bool { return b.onEdge(piece[0]) })
	}) {
		out = append(out, fmt.Sprintf("the line to box %d begins at none", k.link.To))
	}
	for _, piece := range k.pieces {
		for i := range piece[1:] {
			a, b := piece[i], piece[i+1]
			if a.x != b.x && a.y != b.y {
				out = append(out, fmt.Sprintf("%v to %v is askew", a, b))
			}
			r := rect{min(a.x, b.x), min(a.y, b.y), max(a.x, b.x) - min(a.x, b.x), max(a.y, b.y) - min(a.y, b.y)}
			if !l.holds(r) {
				out = append(out, fmt.Sprintf("line %v leaves its lane %v", r, l.rect))
			}
			for _, box := range l.boxes {
				if r.x < box.x+box.w && box.x < r.x+r.w && r.y < box.y+box.h && box.y < r.y+r.h {
					out = append(out, fmt.Sprintf("line %v runs through box %v", r, box.rect))
				}
			}
		}
	}
	// Which pieces meet: all of them, from the first on.
	reached := map[int]bool{0: true}
	for changed := true; changed; {
		changed = false
		for i, piece := range k.pieces {
			for j := range reached {
				if !reached[i] && (touches(piece, k.pieces[j]) || touches(k.pieces[j], piece)) {
					reached[i], changed = true, true
				}
			}
		}
	}
	if len(reached) != len(k.pieces) {
		out = append(out, fmt.Sprintf("of the line to box %d, %d of %d pieces hang together: %v", k.link.To, len(reached), len(k.pieces), k.pieces))
	}
	return out
}

// touches reports whether an end of a lies on b.
func touches(a, b []point) bool {
	for _, p := range []point{a[0], a[len(a)-1]} {
		for i := range b[1:] {
			if min(b[i].x, b[i+1].x) <= p.x && p.x <= max(b[i].x, b[i+1].x) && min(b[i].y, b[i+1].y) <= p.y && p.y <= max(b[i].y, b[i+1].y) {
				return true
			}
		}
	}
	return false
}

func (r rect) holds(o rect) bool {
	return r.x <= o.x && r.y <= o.y && o.x+o.w <= r.x+r.w && o.y+o.h <= r.y+r.h
}

func (r rect) meets(o rect) bool {
	return r.x < o.x+o.w && o.x < r.x+r.w && r.y < o.y+o.h && o.y < r.y+r.h
}

func (r rect) onEdge(p point) bool {
	return r.x <= p.x && p.x <= r.x+r.w && r.y <= p.y && p.y <= r.y+r.h &&
		(p.x == r.x || p.x == r.x+r.w || p.y == r.y || p.y == r.y+r.h)
}

// TestOrder shows that it does not matter in which order links are told.
func TestOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r)
		want := p.SVG(1200)
		for _, g := range p.Groups {
			for _, l := range g.Lanes {
				r.Shuffle(len(l.Links), func(i, j int) { l.Links[i], l.Links[j] = l.Links[j], l.Links[i] })
			}
		}
		if !bytes.Equal(want, p.SVG(1200)) {
			t.Fatalf("seed %d: another order of links gives another picture", seed)
		}
	}
}

// FuzzText puts text of strangers wherever there is text.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "</text><script>alert(1)</script>", `" onload="x()`, "]]>", "&lt;&#x0;", "\u202e\x00\x1b[2J", "\xff\xfe", "\ufffe\U0001ffff", "::error::x", strings.Repeat("漢", 5000), "<foreignObject>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := []Text{{S: s}, {S: s, Warn: true}}
		p := Picture{
			Title: s, Desc: s, Notes: []string{s}, Legend: []Key{{Text: "plain"}},
			Groups: []Group{
				{Title: s, Lanes: []Lane{{Title: s, Boxes: []Box{{Name: s, Lines: text}, {Name: s, Lines: text}, {Lines: text}}, Links: []Link{{From: 0, To: 2, Label: s}}}}},
				{Title: s, Lanes: []Lane{{Title: s, Stack: true, Boxes: []Box{{Name: s, Lines: text}, {Lines: text, Depth: 1}}, Links: []Link{{From: 0, To: 1}}}}},
			},
		}
		for _, width := range Widths() {
			if faults := p.faults(width); len(faults) > 0 {
				t.Error(faults)
			}
		}
		Harmless(t, p.SVG(1200))
		Harmless(t, []byte("<div>"+p.Inline()+"</div>"))
	})
}

// Harmless fails where a picture is no XML, or has in it what it never has: whatever
// runs, loads, or refers to something.
func Harmless(t *testing.T, svg []byte) {
	t.Helper()
	elements := []string{"div", "svg", "title", "desc", "style", "g", "rect", "path", "text"}
	attributes := []string{"xmlns", "class", "role", "width", "height", "viewBox", "x", "y", "rx", "d"}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains(elements, e.Name.Local) {
			t.Errorf("an element <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			if !slices.Contains(attributes, a.Name.Local) {
				t.Errorf("<%s> has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcdef", 5, "ab…ef"}, {"abcdef", 4, "ab…f"}, {"漢漢漢", 5, "漢…漢"}, {"a\nb", 9, "a b"}, {"abc", 1, "…"},
	} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s       string
		n, most int
		want    []string
	}{
		{"", 9, 2, nil},
		{"one two three", 7, 3, []string{"one two", "three"}},
		{"one two three", 7, 1, []string{"one…ree"}},
		{"etcd.database.coreos.com/v1beta2", 16, 3, []string{"etcd.database.", "coreos.com/", "v1beta2"}},
		{"abcdefghij", 4, 3, []string{"abcd", "efgh", "ij"}},
	} {
		if got := wrap(c.s, c.n, c.most); !slices.Equal(got, c.want) {
			t.Errorf("wrap(%q, %d, %d) = %q, want %q", c.s, c.n, c.most, got, c.want)
		}
	}
}
