package cli

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/inert"
)

// table prints rows. On a terminal they stand under a heading, aligned, and
// the last column is cut where the line ends; elsewhere there is no heading
// and a tab between columns, so that cut and awk have an easy time.
type table struct {
	head   []string
	rows   [][]string
	colors []string // of the rows; "": none
	uncut  bool     // long lines go on: their end is what matters
}

// add appends a row of cells, which may be any text.
func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = inert.Line(c)
	}
	t.rows, t.colors = append(t.rows, cells), append(t.colors, "")
}

// paint gives the last row a colour; "" is none.
func (t *table) paint(color string) { t.colors[len(t.colors)-1] = color }

// write prints the table to the device that term describes.
func (t *table) write(term *terminal) {
	if !term.tty {
		for _, row := range t.rows {
			fmt.Fprintln(term, strings.Join(row, "\t"))
		}
		return
	}
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = strings.ToUpper(h)
	}
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	limit := term.width
	if t.uncut {
		limit = math.MaxInt
	}
	fmt.Fprintln(term, term.paint(bold, aligned(head, widths, limit)))
	for i, row := range t.rows {
		line := aligned(row, widths, limit)
		if t.colors[i] != "" {
			line = term.paint(t.colors[i], line)
		}
		fmt.Fprintln(term, line)
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
