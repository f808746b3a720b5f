package fbc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Decode reads the catalog in r: JSON objects one after the other, or YAML
// documents. The content is sorted and does not depend on the order of the
// objects. file is how errors name r; the error is a diag.List of every fault.
func Decode(file string, r io.Reader) (catalog.Content, error) {
	b := newBuilder()
	if err := b.read(file, r, nil); err != nil {
		b.fault(diag.Pos{File: file}, err)
	}
	return b.content()
}

// read decodes one file into b. With a selector it looks for one bundle's
// manifests and stops when it has them.
func (b *builder) read(file string, r io.Reader, sel *selector) error {
	b.window.Reset(r)
	first, offset, err := peek(b.window)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case first == '{':
		b.file.reset(b.window, offset)
		d := &decoder{file: file, in: b.file, b: b, sel: sel}
		return d.stream()
	default:
		return b.readYAML(file, b.window, offset, sel)
	}
}

// peek returns the first byte that is not blank, and passes over nothing but a
// byte order mark before it, whose size it returns. The error is io.EOF where
// there is no such byte.
func peek(r *bufio.Reader) (first byte, passed int64, err error) {
	const mark, enough = "\uFEFF", beginSize
	if begin, _ := r.Peek(len(mark)); string(begin) == mark {
		n, err := r.Discard(len(mark))
		if passed = int64(n); err != nil {
			return 0, passed, err
		}
	}
	for size := 1; ; size++ {
		begin, err := r.Peek(size)
		begin = begin[:min(max(len(begin), r.Buffered()), enough)]
		if text := bytes.TrimLeft(begin, " \t\r\n"); len(text) > 0 {
			return text[0], passed, nil
		}
		if err != nil {
			return 0, passed, err
		}
		if size = len(begin); size == enough {
			return ' ', passed, nil // so many blanks: no JSON that anyone wrote
		}
	}
}

// decoder turns the objects of one file into what b collects. An error of in
// stops it; what is wrong with the objects otherwise becomes a fault of b.
type decoder struct {
	file  string
	in    *scanner
	whole bool     // all of in is at base, or where places say
	base  diag.Pos // the object's position where whole
	from  int64    // offset of the object
	b     *builder
	sel   *selector

	path    []step                    // to the value that is read
	lenient bool                      // a value of a wrong type, or too large, is none
	aside   *[]catalog.LifecycleFault // where faults go that leave the catalog as it is; nil: to b

	places []yamlnode.Place // of the YAML that in was made of
	lines  int              // how many lines stand before it
}

// text returns a decoder of one JSON value in memory, all of which is at base.
func (b *builder) text(file string, base diag.Pos, value []byte, sel *selector) *decoder {
	in := &scanner{}
	in.resetBytes(value)
	return &decoder{file: file, in: in, whole: true, base: base, b: b, sel: sel}
}

// stream decodes objects until the input ends. What stops it early is returned
// as a fault with its position.
func (d *decoder) stream() error {
	for !d.sel.done() && !d.b.full() {
		d.in.begin()
		switch kind := d.in.kind(); kind {
		case '{':
			d.from = d.in.at()
			o, err := d.object(d.here(), "")
			if err != nil {
				return d.syntax(err)
			}
			d.b.add(o, d.sel)
			d.b.settle()
		case '[', '"', '0', 't', 'f', 'n':
			d.b.faults.Addf(d.here(), "want a JSON object, have %s", kindName(kind))
			d.in.skip()
		case end:
			if err := d.in.failed(); err != nil {
				return d.syntax(err)
			}
			return nil
		default:
			d.in.skip() // which says what is wrong with it
		}
	}
	return nil
}

// here returns where the next value begins, once its kind was asked for.
func (d *decoder) here() diag.Pos { return d.at(d.in.at()) }

func (d *decoder) at(offset int64) diag.Pos {
	if d.whole {
		return d.placed(int(offset))
	}
	line, col := d.in.src.pos(offset)
	return diag.Pos{File: d.file, Line: line, Col: col}
}

// syntax gives an error of the scanner its position.
func (d *decoder) syntax(err error) error {
	var fault *diag.Error
	var syn *jsontext.SyntacticError
	if errors.As(err, &fault) {
		return err
	}
	if errors.Is(err, errLarge) {
		return diag.Errorf(d.here(), "object of more than %d MiB", maxObject>>20)
	}
	if !errors.As(err, &syn) {
		return diag.Errorf(d.here(), "reading: %w", cmp.Or(errors.Unwrap(err), err)) // without the decoder's own words
	}
	pos := d.at(d.in.src.from + syn.ByteOffset)
	switch {
	case errors.Is(syn.Err, io.ErrUnexpectedEOF):
		return diag.Errorf(pos, "malformed JSON: the file ends inside an object")
	case errors.Is(syn.Err, jsontext.ErrDuplicateName):
		return diag.Errorf(pos, "malformed JSON: name %q appears twice in one object", syn.JSONPointer.LastToken())
	case strings.HasPrefix(syn.Err.Error(), "invalid escape sequence"), strings.HasPrefix(syn.Err.Error(), "invalid surrogate pair"):
		return diag.Errorf(pos, "malformed JSON: invalid escape sequence in string") // it would show as much as happened to be read
	default:
		return diag.Errorf(pos, "malformed JSON: %w", syn.Err)
	}
}

// heldField is a field of an object that came before its schema.
type heldField struct {
	name string
	raw  []byte
}

// object decodes one object at pos, which is valid until the next call. schema
// is given where it is known already.
func (d *decoder) object(pos diag.Pos, schema string) (*object, error) {
	o := &d.b.object
	*o = object{pos: pos, schema: schema}
	var early []heldField
	for d.in.enter(); d.in.more(); {
		name := d.in.name()
		switch {
		case string(name) == "schema":
			d.path = append(d.path[:0], step{name: "schema"})
			o.schema = d.text(maxName)
			d.path = d.path[:0]
		case o.schema == "":
			m := heldField{name: string(name)} // before the name is gone
			m.raw = bytes.Clone(d.in.raw())
			early = append(early, m)
		default:
			d.b.forms.schemas[o.schema].field(d, o, name)
		}
	}
	if err := d.in.failed(); err != nil {
		return nil, err
	}
	o.span = d.span()
	return o, d.early(o, early)
}

// span returns where the object that was just read lies.
func (d *decoder) span() catalog.Span {
	if d.whole {
		return d.b.document
	}
	return catalog.Span{Offset: d.from, Size: d.in.passed() - d.from}
}

// early decodes the fields that came before the schema.
func (d *decoder) early(o *object, members []heldField) error {
	if o.schema == "" {
		return nil
	}
	for _, m := range members {
		sub := d.b.text(d.file, o.pos, m.raw, d.sel)
		if d.b.forms.schemas[o.schema].field(sub, o, []byte(m.name)); sub.in.failed() != nil {
			return sub.in.failed()
		}
	}
	return nil
}

// step is a step on the way to a value: into a field, or into the nth element of
// a list.
type step struct {
	name string
	n    int // where name is ""
}

// where returns the path to the value that is read, as a user would write it:
// "entries[3].name".
func (d *decoder) where() string {
	var path strings.Builder
	for i, s := range d.path {
		switch {
		case s.name == "":
			fmt.Fprintf(&path, "[%d]", s.n)
		case i > 0:
			path.WriteString("." + s.name)
		default:
			path.WriteString(s.name)
		}
	}
	return path.String()
}

// text reads a string of at most limit bytes. Null is "". Anything else is a
// fault, and "".
func (d *decoder) text(limit int) string {
	if d.in.kind() != '"' {
		d.wrong("a string")
		return ""
	}
	text := d.in.text()
	if len(text) <= limit {
		return d.b.intern(text)
	}
	if !d.lenient {
		d.fault(d.at(d.in.begun()), "%s of %d bytes: want at most %d", d.where(), len(text), limit)
	}
	return ""
}

// fault adds what is wrong with a value.
func (d *decoder) fault(pos diag.Pos, format string, args ...any) {
	if d.aside == nil {
		d.b.faults.Addf(pos, format, args...)
	} else if len(*d.aside) < maxAside {
		*d.aside = append(*d.aside, catalog.LifecycleFault{Pos: pos, Msg: fmt.Sprintf(format, args...)})
	}
}

// wrong skips the next value, and reports it. Null is none, but where faults are
// kept aside.
func (d *decoder) wrong(want string) {
	kind := d.in.kind()
	if d.lenient || kind == 'n' && d.aside == nil {
		d.in.skip()
		return
	}
	pos := d.here()
	if d.in.skip(); d.in.failed() == nil {
		d.fault(pos, "%s: want %s, have %s", d.where(), want, kindName(kind))
	}
}

// items goes into the next value, which must be an array or null, and calls read
// for each element. More than so many are an error.
func (d *decoder) items(most int, read func(n int)) {
	if !d.enter('[', "an array") {
		return
	}
	for n := 0; d.in.more(); n++ {
		switch {
		case n < most:
			d.path = append(d.path, step{n: n})
			read(n)
			d.path = d.path[:len(d.path)-1]
		case d.lenient:
			d.in.skip()
		case d.aside != nil:
			if pos := d.here(); n == most {
				d.fault(pos, "%s: more than %d elements", d.where(), most)
			}
			d.in.skip()
		default:
			d.in.fail(diag.Errorf(d.here(), "%s: more than %d elements", d.where(), most))
		}
	}
}

// fields goes into the next value, which must be an object or null, and calls
// read for each field, whose value comes next.
func (d *decoder) fields(read func(name []byte)) {
	if !d.enter('{', "an object") {
		return
	}
	for d.in.more() {
		read(d.in.name())
	}
}

// enter goes into the next value if it begins with open.
func (d *decoder) enter(open byte, want string) bool {
	if d.in.kind() != open {
		d.wrong(want)
		return false
	}
	d.in.enter()
	return true
}

func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "no JSON"
	}
}
