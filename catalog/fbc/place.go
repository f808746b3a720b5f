package fbc

import (
	"sort"

	"github.com/quayside/quayside/internal/diag"
)

// placed returns where the YAML stands that became the JSON at an offset of d,
// or where all of it does.
func (d *decoder) placed(offset int) diag.Pos {
	next := sort.Search(len(d.places), func(i int) bool { return d.places[i].Offset > offset })
	if next == 0 || d.places[next-1].Line == 0 {
		return d.base
	}
	at := d.places[next-1]
	return diag.Pos{File: d.file, Line: at.Line + d.lines, Col: at.Col}
}
