package disk

import "encoding/binary"

// decoder reads what an encoder wrote. After the first fault it returns zero
// values; the caller asks once, at the end, whether there was one.
type decoder struct {
	all   string // the same bytes as raw, which strings are cut from
	raw   []byte
	at    int
	table []span
	bad   bool
}

// span is one string of the table.
type span struct{ from, to int }

// newDecoder returns a decoder of data, which must not change as long as
// anything that was read from it lives.
func newDecoder(data []byte) *decoder {
	d := &decoder{all: string(data), raw: data}
	n := d.count(1)
	d.table = make([]span, n)
	for i := range d.table {
		size := d.count(1)
		d.table[i] = span{d.at, d.at + size}
		d.at += size
	}
	return d
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.raw[d.at:])
	if size <= 0 {
		d.fail()
		return 0
	}
	d.at += size
	return n
}

// count reads how many things of at least size bytes follow.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64((len(d.raw)-d.at)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// int reads a number that is no count.
func (d *decoder) int() int {
	n := d.uint()
	if n > 1<<62 {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) bool() bool { return d.uint() != 0 }

func (d *decoder) span() span {
	id := d.uint()
	if id >= uint64(len(d.table)) {
		d.fail()
		return span{}
	}
	return d.table[id]
}

func (d *decoder) text() string {
	s := d.span()
	return d.all[s.from:s.to]
}

// bytes reads a text as bytes, which the caller shares and must not modify.
func (d *decoder) bytes() []byte {
	s := d.span()
	return d.raw[s.from:s.to:s.to]
}

func (d *decoder) fail() {
	d.bad = true
	d.at = len(d.raw) // nothing more can be read
}

// list reads a list whose elements take at least one byte each.
func list[T any](d *decoder, each func() T) []T {
	n := d.uint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(len(d.raw)-d.at) {
		d.fail()
		return nil
	}
	out := make([]T, 0, min(n, 1<<16))
	for range n {
		if d.bad {
			return nil
		}
		out = append(out, each())
	}
	return out
}

func (d *decoder) texts() []string { return list(d, d.text) }
