package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/inert"
)

// Table prints rows. On a terminal they stand under a heading, aligned, and
// the last column is cut where the line ends; where that would leave nothing of it,
// each row is a paragraph. Elsewhere there is no heading and a tab between columns,
// so that cut and awk have an easy time. Without a row nothing is printed.
type Table struct {
	Head   []string // what the columns hold
	Rows   [][]string
	colors []string // of the rows; "": none
	Uncut  bool     // long lines go on: their end is what matters
}

// Add appends a row of cells, which may be any text.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = inert.Line(c)
	}
	t.Rows, t.colors = append(t.Rows, cells), append(t.colors, "")
}

// Paint gives the last row a colour; "" is none.
func (t *Table) Paint(color string) { t.colors[len(t.colors)-1] = color }

// Write prints the table to the device that term describes.
func (t *Table) Write(term *Terminal) {
	if !term.TTY {
		for _, row := range t.Rows {
			fmt.Fprintln(term, strings.Join(row, "\t"))
		}
		return
	}
	head := make([]string, len(t.Head))
	for i, h := range t.Head {
		head[i] = strings.ToUpper(h)
	}
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, t.Rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	limit := term.width
	switch before := sum(widths[:max(len(widths)-1, 0)]) + 2*(len(widths)-1); {
	case len(t.Rows) == 0:
		return
	case t.Uncut:
		limit = math.MaxInt
	case before+minLast > limit:
		t.paragraphs(term)
		return
	}
	fmt.Fprintln(term, term.Paint(Bold, aligned(head, widths, limit)))
	for i, row := range t.Rows {
		line := aligned(row, widths, limit)
		if t.colors[i] != "" {
			line = term.Paint(t.colors[i], line)
		}
		fmt.Fprintln(term, line)
	}
}

// minLast is how much of the last column there has to be room for.
const minLast = 4

func sum(widths []int) int {
	n := 0
	for _, w := range widths {
		n += w
	}
	return n
}

// paragraphs prints the first cell of each row on a line of its own, and below it
// the others that say something, with what they are, as many on a line as it holds.
func (t *Table) paragraphs(term *Terminal) {
	for i, row := range t.Rows {
		fmt.Fprintln(term, term.Paint(cmp.Or(t.colors[i], Bold), row[0]))
		line := ""
		for k, cell := range row[1:] {
			if cell == "" {
				continue
			}
			part := "  " + t.Head[k+1] + ": " + cell
			if line != "" && utf8.RuneCountInString(line+part) > term.width {
				fmt.Fprintln(term, line)
				line = ""
			}
			line += part
		}
		if line != "" {
			fmt.Fprintln(term, line)
		}
	}
}

// aligned pads each cell but the last to its column's width and cuts the line
// at limit.
func aligned(cells []string, widths []int, limit int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
	}
	line := []rune(strings.TrimRight(b.String(), " "))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}

// Dash stands for nothing in a column.
func Dash(s string) string { return cmp.Or(s, "-") }
