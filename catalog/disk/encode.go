package disk

import "encoding/binary"

// encoder writes one segment or section: values in buf, strings in a table of
// their own.
type encoder struct {
	buf   []byte
	ids   map[string]uint64
	table []byte
}

func newEncoder() *encoder { return &encoder{ids: map[string]uint64{}} }

func (e *encoder) reset() {
	e.buf, e.table = e.buf[:0], e.table[:0]
	clear(e.ids)
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }

func (e *encoder) int(n int) { e.uint(uint64(n)) }

func (e *encoder) bool(b bool) {
	if b {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// text writes the number of s in the table of strings.
func (e *encoder) text(s string) {
	id, ok := e.ids[s]
	if !ok {
		id = uint64(len(e.ids))
		e.ids[s] = id
		e.table = binary.AppendUvarint(e.table, uint64(len(s)))
		e.table = append(e.table, s...)
	}
	e.uint(id)
}

// list writes the length of a list and lets each write the elements. A nil
// list stays nil.
func (e *encoder) list(n int, isNil bool, each func(i int)) {
	if isNil {
		e.uint(0)
		return
	}
	e.int(n + 1)
	for i := range n {
		each(i)
	}
}

func (e *encoder) texts(list []string) {
	e.list(len(list), list == nil, func(i int) { e.text(list[i]) })
}

// appendTo appends what was written: the number of strings, the strings, the
// values.
func (e *encoder) appendTo(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(e.ids)))
	out = append(out, e.table...)
	return append(out, e.buf...)
}
