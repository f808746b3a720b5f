package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// Picture is a list of rows with lines between them.
type Picture struct {
	Title  string // title, also used as the accessible name
	Desc   string // accessible description
	Rows   []Row
	Links  []Link
	Notes  []string // text below the rows
	Legend []string // meaning of each Stroke; strokes that are not used are omitted
}

// Row is one row.
type Row struct {
	Text  string // name or heading
	Note  string // text after the name
	Warn  bool   // whether the note is a warning
	Style RowStyle
	Depth int // indentation; the row belongs to the nearest row above with a smaller depth
}

// RowStyle is the style of a row.
type RowStyle int

// The styles of rows.
const (
	Plain RowStyle = iota
	Heading
	Strong // subject of the picture
	OnPath // on the path to the subject
	Faint  // skipped or missing
)

// Stroke is the style of a line.
type Stroke int

// The strokes of lines.
const (
	Solid Stroke = iota
	Dashed
	Dotted
)

// Link is an arrow from one row to another. Links with the same target and the same style share a line.
type Link struct {
	From, To int // indexes of rows
	Stroke   Stroke
	OnPath   bool
}

// Limits of a picture.
const (
	maxRows    = 2000
	maxColumns = 40
	maxText    = 253 // characters of a name, as in Kubernetes
	maxDepth   = 8
)

// truncateRows returns the picture with at most maxRows rows. If it drops rows, it adds a note.
func (p Picture) truncateRows() Picture {
	if n := len(p.Rows) - maxRows; n > 0 {
		p.Rows = p.Rows[:maxRows]
		p.Notes = append(slices.Clone(p.Notes), diag.Count(n, "more row")+": too many to draw")
	}
	return p
}

// rail is a vertical line for all links to one row. Column 0 is next to the dots.
type rail struct {
	Link
	from        []int // indexes of the source rows, nearest to the target first
	top, bottom int   // ends, in half rows
	column      int
}

// leadsUp reports whether the target is above the source.
func (l Link) leadsUp() bool { return l.From > l.To }

func (l Link) distance() int { return max(l.From-l.To, l.To-l.From) }

// rails returns the lines that can be drawn, the number of columns that they need, and the number of lines for
// which no column is free.
func (p Picture) rails() (out []rail, columns, undrawn int) {
	links := slices.DeleteFunc(slices.Clone(p.Links), func(l Link) bool {
		return l.From == l.To || max(l.From, l.To) >= len(p.Rows)
	})
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(a.distance()-b.distance(), a.To-b.To, a.From-b.From, int(a.Stroke-b.Stroke), strings.Compare(fmt.Sprint(a.OnPath), fmt.Sprint(b.OnPath)))
	})
	type key struct {
		to      int
		stroke  Stroke
		way, up bool
	}
	at := map[key]int{}
	var all []rail
	for _, l := range links {
		k := key{l.To, l.Stroke, l.OnPath, l.leadsUp()}
		i, ok := at[k]
		if !ok {
			i = len(all)
			at[k], all = i, append(all, rail{Link: l})
		}
		all[i].from = append(all[i].from, l.From)
	}
	for i := range all {
		r := &all[i]
		last := r.from[len(r.from)-1] // farthest source
		r.top, r.bottom = 2*r.To+1, 2*last
		if !r.leadsUp() {
			r.top, r.bottom = 2*last+1, 2*r.To
		}
	}
	slices.SortStableFunc(all, func(a, b rail) int { return (a.bottom - a.top) - (b.bottom - b.top) })
	taken := make([][]rail, maxColumns)
	for _, r := range all {
		r.column = slices.IndexFunc(taken, func(column []rail) bool {
			return !slices.ContainsFunc(column, func(o rail) bool { return r.top <= o.bottom && o.top <= r.bottom })
		})
		if r.column < 0 {
			undrawn++
			continue
		}
		taken[r.column] = append(taken[r.column], r)
		columns = max(columns, r.column+1)
		out = append(out, r)
	}
	return out, columns, undrawn
}

// textWidth returns the width of text in pixels, rounded up. It assumes DejaVu Sans with 14 pixels, the widest
// font of a picture.
func textWidth(text, class string) int {
	n := 0 // in tenths of a pixel
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijlI.,:;'|! ", r):
			n += 45
		case strings.ContainsRune("ftr-/()[]", r):
			n += 56
		case strings.ContainsRune("mwMW@%…", r):
			n += 140
		case r >= 0x1100 && (r < 0x2000 || r > 0x2027):
			n += 155
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			n += 88
		default:
			n += 118
		}
	}
	if class == "b" {
		n = n * 115 / 100
	}
	return n/10 + 1
}

// legend returns the strokes that the legend explains: those that the picture uses.
func (p Picture) legend(rails []rail) []Stroke {
	var out []Stroke
	for i := range p.Legend {
		if slices.ContainsFunc(rails, func(r rail) bool { return r.Stroke == Stroke(i) }) {
			out = append(out, Stroke(i))
		}
	}
	return out
}

// notes returns the notes below the rows, including one for lines that are not drawn.
func (p Picture) notes(undrawn int) []string {
	if undrawn == 0 {
		return p.Notes
	}
	return append(slices.Clone(p.Notes), fmt.Sprintf("%s: too many to draw", diag.Count(undrawn, "more line")))
}
