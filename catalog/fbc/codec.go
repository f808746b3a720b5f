package fbc

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/internal/yamlnode"
)

// codec decodes and encodes values of type T. For YAML input, a filter selects the parts of a value that the
// codec needs.
type codec[T any] struct {
	read  func(d *decoder, into *T)
	write func(e *encoder, from *T)
	empty func(from *T) bool
	shape *yamlnode.Filter // filter for YAML input; nil: the whole value is needed
}

// textCodec returns the codec of a string with at most limit bytes.
func textCodec(limit int) codec[string] {
	return codec[string]{
		read:  func(d *decoder, into *string) { *into = d.text(limit) },
		write: func(e *encoder, from *string) { e.writeToken(jsontext.String(*from)) },
		empty: func(from *string) bool { return *from == "" },
	}
}

// listCodec returns the codec of an array. most is the maximum number of elements.
func listCodec[T any](most int, each codec[T]) codec[[]T] {
	return codec[[]T]{
		read: func(d *decoder, into *[]T) {
			d.items(most, func(n int) {
				var none T
				*into = append(*into, none)
				each.read(d, &(*into)[n])
			})
		},
		write: func(e *encoder, from *[]T) {
			e.writeToken(jsontext.BeginArray)
			for i := range *from {
				each.write(e, &(*from)[i])
			}
			e.writeToken(jsontext.EndArray)
		},
		empty: func(from *[]T) bool { return len(*from) == 0 },
		shape: &yamlnode.Filter{Items: each.shape},
	}
}

// member is a named field of a T with its codec.
type member[T any] struct {
	codec[T]
	name string
	omit func(from *T) bool // reports whether encoding omits the field; nil: it is always encoded
}

// fieldAt returns a field of T with codec f. place returns the location of the field's value in a T.
func fieldAt[T, F any](name string, place func(*T) *F, f codec[F]) member[T] {
	return member[T]{name: name, codec: codec[T]{
		read:  func(d *decoder, into *T) { f.read(d, place(into)) },
		write: func(e *encoder, from *T) { f.write(e, place(from)) },
		empty: func(from *T) bool { return f.empty(place(from)) },
		shape: f.shape,
	}}
}

// optionalField returns a field that is encoded only if it is not empty.
func optionalField[T, F any](name string, place func(*T) *F, f codec[F]) member[T] {
	m := fieldAt(name, place, f)
	m.omit = m.empty
	return m
}

// readOnlyField returns a field that is decoded but never encoded.
func readOnlyField[T, F any](name string, place func(*T) *F, f codec[F]) member[T] {
	m := fieldAt(name, place, f)
	m.omit = func(*T) bool { return true }
	return m
}

// sameValue returns t. It is the place argument of a field whose codec sets several fields of T.
func sameValue[T any](t *T) *T { return t }

// members is a list of fields, in the order of encoding.
type members[T any] []member[T]

// unknownFields returns a member that matches every field name and adds a fault. It must be the
// last member.
func unknownFields[T any]() member[T] {
	return readOnlyField("", sameValue[T], codec[T]{
		read: func(d *decoder, _ *T) {
			d.fault(d.posAt(d.in.lastOffset()), "unknown field %q", d.pathText())
			d.in.skip()
		},
		empty: func(*T) bool { return true },
	})
}

// decodeField decodes the value of the field with this name. A field that is not in ms is skipped,
// or passed to unknownFields if ms ends with it.
func (ms members[T]) decodeField(d *decoder, into *T, name []byte) {
	for i := range ms {
		if string(name) == ms[i].name || ms[i].name == "" {
			at := step{name: ms[i].name}
			if at.name == "" {
				at.name = string(truncateText(name, maxName))
			}
			d.path = append(d.path, at)
			ms[i].read(d, into)
			d.path = d.path[:len(d.path)-1]
			return
		}
	}
	d.in.skip()
}

// codec returns the codec of an object with these fields.
func (ms members[T]) codec() codec[T] {
	return codec[T]{
		read: func(d *decoder, into *T) {
			d.fields(func(name []byte) { ms.decodeField(d, into, name) })
		},
		write: func(e *encoder, from *T) {
			e.writeToken(jsontext.BeginObject)
			for i := range ms {
				if m := &ms[i]; m.omit == nil || !m.omit(from) {
					e.writeToken(jsontext.String(m.name))
					m.write(e, from)
				}
			}
			e.writeToken(jsontext.EndObject)
		},
		empty: func(from *T) bool {
			return !slices.ContainsFunc(ms, func(m member[T]) bool { return !m.empty(from) })
		},
		shape: &yamlnode.Filter{Field: ms.fieldFilter},
	}
}

// fieldFilter returns the YAML filter for the field with this name, and whether the field exists.
func (ms members[T]) fieldFilter(name []byte) (*yamlnode.Filter, bool) {
	for i := range ms {
		if string(name) == ms[i].name {
			return ms[i].shape, true
		}
	}
	return nil, false
}
