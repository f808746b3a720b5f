package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/sanitize"
)

// Table prints rows below a heading. On a terminal, it aligns the columns and truncates the last
// column at the end of the line. If that column would be too narrow, it prints each row as a
// paragraph. If the output is not a terminal, it separates columns with tabs, for cut and awk. It
// prints nothing without rows.
type Table struct {
	Head   []string // names of the columns
	Rows   [][]string
	colors []string // color of each row; empty: none
	Uncut  bool     // do not truncate lines
}

// Add appends a row of cells, which may be any text.
func (t *Table) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = sanitize.Line(c)
	}
	t.Rows, t.colors = append(t.Rows, cells), append(t.colors, "")
}

// Paint sets the color of the last row. "" means none.
func (t *Table) Paint(color string) { t.colors[len(t.colors)-1] = color }

// Write prints the table to term.
func (t *Table) Write(term *Terminal) {
	if len(t.Rows) == 0 {
		return
	}
	head := make([]string, len(t.Head))
	for i, h := range t.Head {
		head[i] = strings.ToUpper(h)
	}
	if !term.TTY {
		for _, row := range append([][]string{head}, t.Rows...) {
			fmt.Fprintln(term, strings.Join(row, "\t"))
		}
		return
	}
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, t.Rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	limit := term.width
	switch before := sum(widths[:max(len(widths)-1, 0)]) + 2*(len(widths)-1); {
	case t.Uncut:
		limit = math.MaxInt
	case before+minLast > limit:
		t.writeParagraphs(term)
		return
	}
	fmt.Fprintln(term, term.Paint(Bold, alignCells(head, widths, limit)))
	for i, row := range t.Rows {
		line := alignCells(row, widths, limit)
		if t.colors[i] != "" {
			line = term.Paint(t.colors[i], line)
		}
		fmt.Fprintln(term, line)
	}
}

// minLast is the minimum width of the last column.
const minLast = 4

func sum(widths []int) int {
	n := 0
	for _, w := range widths {
		n += w
	}
	return n
}

// writeParagraphs prints the first cell of each row on its own line. Below it are the other cells
// with their column names, as many per line as fit. Empty cells are omitted.
func (t *Table) writeParagraphs(term *Terminal) {
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

// alignCells pads each cell except the last to the width of its column. It truncates the line to the width
// limit.
func alignCells(cells []string, widths []int, limit int) string {
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

// Dash returns s, or "-" if s is empty.
func Dash(s string) string { return cmp.Or(s, "-") }
