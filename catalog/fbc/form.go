package fbc

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// form is a kind of value: how it is read and written, and what of it is looked
// at.
type form[T any] struct {
	read  func(d *decoder, into *T)
	write func(e *encoder, from *T)
	empty func(from *T) bool
	shape *shape // nil where all of it is looked at
}

// shape is what is looked at in a value, and what the value is to the rewriter.
type shape struct {
	role   role
	fields func(name []byte) (*shape, bool) // what a field is, and whether it is looked at; nil where all are
	items  *shape
}

// role is what a value is to the rewriter.
type role int

const (
	plainValue    role = iota
	aSchema            // an object's
	anEntry            // of a channel, or of a package's deprecations
	aProperty          // of a bundle
	aPropertyType      // its type
	someMetadata       // its value, if it is an olm.csv.metadata
	longText           // of which the beginning is enough
)

// is returns the role of a value.
func (s *shape) is() role {
	if s == nil {
		return plainValue
	}
	return s.role
}

// field returns what a field is, and whether it is looked at.
func (s *shape) field(name []byte) (*shape, bool) {
	if s == nil || s.fields == nil {
		return nil, true
	}
	return s.fields(name)
}

// item returns what the items of an array are.
func (s *shape) item() *shape {
	if s == nil {
		return nil
	}
	return s.items
}

// text is a string of at most limit bytes.
func text(limit int) form[string] {
	return form[string]{
		read:  func(d *decoder, into *string) { *into = d.text(limit) },
		write: func(e *encoder, from *string) { e.token(jsontext.String(*from)) },
		empty: func(from *string) bool { return *from == "" },
	}
}

// list is an array of at most so many elements.
func list[T any](most int, each form[T]) form[[]T] {
	return form[[]T]{
		read: func(d *decoder, into *[]T) {
			d.items(most, func(n int) {
				var none T
				*into = append(*into, none)
				each.read(d, &(*into)[n])
			})
		},
		write: func(e *encoder, from *[]T) {
			e.token(jsontext.BeginArray)
			for i := range *from {
				each.write(e, &(*from)[i])
			}
			e.token(jsontext.EndArray)
		},
		empty: func(from *[]T) bool { return len(*from) == 0 },
		shape: &shape{items: each.shape},
	}
}

// member is a field of a T.
type member[T any] struct {
	form[T]
	name string
	omit func(from *T) bool // not to write it; nil: it always is
}

// at is a field that is kept in a place of T.
func at[T, F any](name string, place func(*T) *F, f form[F]) member[T] {
	return member[T]{name: name, form: form[T]{
		read:  func(d *decoder, into *T) { f.read(d, place(into)) },
		write: func(e *encoder, from *T) { f.write(e, place(from)) },
		empty: func(from *T) bool { return f.empty(place(from)) },
		shape: f.shape,
	}}
}

// optional is a field that is only written where it says something.
func optional[T, F any](name string, place func(*T) *F, f form[F]) member[T] {
	m := at(name, place, f)
	m.omit = m.empty
	return m
}

// readOnly is a field that is never written.
func readOnly[T, F any](name string, place func(*T) *F, f form[F]) member[T] {
	m := at(name, place, f)
	m.omit = func(*T) bool { return true }
	return m
}

// itself is the place of a field that is kept in several ones.
func itself[T any](t *T) *T { return t }

// members is a table of fields, in the order in which they are written.
type members[T any] []member[T]

// others are all fields that have no member of their own. There are to be none.
func others[T any]() member[T] {
	return readOnly("", itself[T], form[T]{
		read: func(d *decoder, _ *T) {
			d.fault(d.at(d.in.begun()), "unknown field %q", d.where())
			d.in.skip()
		},
		empty: func(*T) bool { return true },
	})
}

// field reads the value of a field. That of an unknown one is skipped, or what
// others at the end of ms are for.
func (ms members[T]) field(d *decoder, into *T, name []byte) {
	for i := range ms {
		if string(name) == ms[i].name || ms[i].name == "" {
			at := step{name: ms[i].name}
			if at.name == "" {
				at.name = string(clip(name, maxName))
			}
			d.path = append(d.path, at)
			ms[i].read(d, into)
			d.path = d.path[:len(d.path)-1]
			return
		}
	}
	d.in.skip()
}

// form returns the form of an object that has these fields.
func (ms members[T]) form() form[T] {
	return form[T]{
		read: func(d *decoder, into *T) {
			d.fields(func(name []byte) { ms.field(d, into, name) })
		},
		write: func(e *encoder, from *T) {
			e.token(jsontext.BeginObject)
			for i := range ms {
				if m := &ms[i]; m.omit == nil || !m.omit(from) {
					e.token(jsontext.String(m.name))
					m.write(e, from)
				}
			}
			e.token(jsontext.EndObject)
		},
		empty: func(from *T) bool {
			return !slices.ContainsFunc(ms, func(m member[T]) bool { return !m.empty(from) })
		},
		shape: &shape{fields: ms.shape},
	}
}

// shape returns what a field is, and whether there is one of that name.
func (ms members[T]) shape(name []byte) (*shape, bool) {
	for i := range ms {
		if string(name) == ms[i].name {
			return ms[i].shape, true
		}
	}
	return nil, false
}
