package fbc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
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
	w := b.window
	w.reset(file, r)
	first, err := w.peek()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case first == '{':
		b.json.Reset(w)
		d := &decoder{file: file, win: w, dec: b.json, b: b, sel: sel}
		return d.stream()
	default:
		ahead := bytes.NewReader(w.buf[w.handed-w.base:])
		return b.readYAML(file, io.MultiReader(ahead, w.r), w.handed, sel)
	}
}

// peek returns the first byte that is not blank, without giving it out. A byte
// order mark before it is passed over.
func (w *window) peek() (byte, error) {
	for i := 0; ; {
		if mark := []byte("\uFEFF"); i == 0 && bytes.HasPrefix(w.buf, mark) {
			i = len(mark)
			w.handed, w.mark = int64(i), int64(i)
		}
		for ; i < len(w.buf); i++ {
			if bytes.IndexByte([]byte(" \t\r\n"), w.buf[i]) < 0 {
				return w.buf[i], nil
			}
		}
		if len(w.buf) == cap(w.buf) {
			return ' ', nil // a window of blanks: no JSON that anyone wrote
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// decoder turns the objects of one file into what b collects.
type decoder struct {
	file string
	win  *window  // nil where the tokens were made from YAML
	base diag.Pos // the object's position where win is nil
	from int64    // offset of the object
	dec  *jsontext.Decoder
	b    *builder
	sel  *selector
}

// text returns a decoder of one JSON value in memory, all of which is at base.
func (b *builder) text(file string, base diag.Pos, value []byte, sel *selector) *decoder {
	return &decoder{file: file, base: base, dec: jsontext.NewDecoder(bytes.NewBuffer(value)), b: b, sel: sel}
}

// stream decodes objects until the input ends. What stops it early is returned
// as a fault with its position.
func (d *decoder) stream() error {
	for {
		pos := d.pos()
		d.from = d.dec.InputOffset()
		d.win.budget = d.from + maxObject
		switch kind := d.dec.PeekKind(); kind {
		case '{':
		case jsontext.KindInvalid:
			_, err := d.dec.ReadToken()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return d.syntax(err)
		default:
			d.b.faults.Addf(pos, "want a JSON object, have %s", kindName(kind))
			if err := d.dec.SkipValue(); err != nil {
				return d.syntax(err)
			}
			continue
		}
		if err := d.object(pos, ""); err != nil {
			return d.syntax(err)
		}
		if d.sel.done() || d.b.full() {
			return nil
		}
	}
}

// pos returns where the next value or name begins.
func (d *decoder) pos() diag.Pos {
	if d.win == nil {
		return d.base
	}
	d.dec.PeekKind() // so that it is in the buffer
	rest := d.dec.UnreadBuffer()
	blank := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:"))
	return d.win.pos(d.dec.InputOffset() + int64(blank))
}

// syntax gives an error of the JSON decoder its position.
func (d *decoder) syntax(err error) error {
	var fault *diag.Error
	if errors.As(err, &fault) {
		return err
	}
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return diag.Errorf(d.here(), "reading: %w", err)
	}
	if errors.Is(syn.Err, io.ErrUnexpectedEOF) {
		return diag.Errorf(d.at(syn.ByteOffset), "malformed JSON: the file ends inside an object")
	}
	if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
		return diag.Errorf(d.at(syn.ByteOffset), "malformed JSON: name %q stands twice in one object", syn.JSONPointer.LastToken())
	}
	return diag.Errorf(d.at(syn.ByteOffset), "malformed JSON: %w", syn.Err)
}

func (d *decoder) here() diag.Pos { return d.at(d.dec.InputOffset()) }

func (d *decoder) at(offset int64) diag.Pos {
	if d.win == nil {
		return d.base
	}
	return d.win.pos(offset)
}

// member is one field of an object that came before the schema.
type member struct {
	name string
	raw  jsontext.Value
}

// object decodes one object at pos. schema is given where it is known already.
func (d *decoder) object(pos diag.Pos, schema string) error {
	o := &object{pos: pos, schema: schema}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	var early []member
	for d.dec.PeekKind() != '}' {
		name, err := d.quoted()
		if err != nil {
			return err
		}
		switch {
		case name == "schema":
			if o.schema, err = d.text("schema", maxName); err != nil {
				return err
			}
		case o.schema == "":
			raw, err := d.dec.ReadValue()
			if err != nil {
				return err
			}
			early = append(early, member{name, bytes.Clone(raw)})
		default:
			if err := d.member(o, name); err != nil {
				return err
			}
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	o.span = d.span()
	if err := d.early(o, early); err != nil {
		return err
	}
	d.b.add(o, d.sel)
	return nil
}

// span returns where the object that was just read lies, and blanks before it.
func (d *decoder) span() catalog.Span {
	if d.win == nil {
		return d.b.document
	}
	return catalog.Span{Offset: d.win.mark + d.from, Size: d.dec.InputOffset() - d.from}
}

// early decodes the fields that came before the schema.
func (d *decoder) early(o *object, members []member) error {
	if o.schema == "" {
		return nil
	}
	for _, m := range members {
		if err := d.b.text(d.file, o.pos, m.raw, d.sel).member(o, m.name); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string of at most limit bytes. Null is "". Anything else is a
// fault, and "".
func (d *decoder) text(field string, limit int) (string, error) {
	switch d.dec.PeekKind() {
	case '"':
		pos := d.pos()
		s, err := d.quoted()
		if len(s) > limit {
			d.b.faults.Addf(pos, "%s of %d bytes: want at most %d", field, len(s), limit)
			return "", nil
		}
		return s, err
	case 'n':
		_, err := d.dec.ReadToken()
		return "", err
	default:
		return "", d.wrong(field, "a string")
	}
}

// quoted reads a string, or an object's next name.
func (d *decoder) quoted() (string, error) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return "", err
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		if d.b.unquoted, err = jsontext.AppendUnquote(d.b.unquoted[:0], raw); err != nil {
			return "", err
		}
		text = d.b.unquoted
	}
	return d.b.intern(text), nil
}

// skip passes over the next value. Inside a property, where values are small,
// it is faster to have it whole than to go through its tokens.
func (d *decoder) skip() error {
	_, err := d.dec.ReadValue()
	return err
}

// wrong reports the next value and skips it.
func (d *decoder) wrong(field, want string) error {
	pos := d.pos()
	kind := d.dec.PeekKind()
	if err := d.dec.SkipValue(); err != nil {
		return err
	}
	d.b.faults.Addf(pos, "%s: want %s, have %s", field, want, kindName(kind))
	return nil
}

// list calls each for every element of the next value, which must be an array
// or null, of at most limit elements.
func (d *decoder) list(field string, limit int, each func() error) error {
	return d.nested(field, '[', "an array", func() error {
		for n := 0; d.dec.PeekKind() != ']'; n++ {
			if n == limit {
				return diag.Errorf(d.pos(), "%s: more than %d elements", field, limit)
			}
			if err := each(); err != nil {
				return err
			}
		}
		return nil
	})
}

// fields calls each for every field of the next value, which must be an object
// or null. each must read or skip the field's value.
func (d *decoder) fields(field string, each func(name string) error) error {
	return d.nested(field, '{', "an object", func() error {
		for d.dec.PeekKind() != '}' {
			name, err := d.quoted()
			if err != nil {
				return err
			}
			if err := each(name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *decoder) nested(field string, open jsontext.Kind, want string, inside func() error) error {
	switch d.dec.PeekKind() {
	case open:
	case 'n':
		_, err := d.dec.ReadToken()
		return err
	default:
		return d.wrong(field, want)
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	if err := inside(); err != nil {
		return err
	}
	_, err := d.dec.ReadToken()
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
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
