package snapshot

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// readHead decodes the fields that every object has. A field of the wrong type stays empty.
func readHead(raw []byte) (head, error) {
	var h head
	dec := newDecoder(raw)
	err := forEachMember(dec, func(key string) error {
		switch key {
		case "apiVersion":
			return decodeText(dec, &h.APIVersion)
		case "kind":
			return decodeText(dec, &h.Kind)
		case "metadata":
			return forEachMember(dec, func(key string) error { return h.readMetadata(dec, key) })
		default:
			return dec.SkipValue()
		}
	})
	return h, err
}

func (h *head) readMetadata(dec *jsontext.Decoder, key string) error {
	m := &h.Metadata
	switch key {
	case "name":
		return decodeText(dec, &m.Name)
	case "namespace":
		return decodeText(dec, &m.Namespace)
	case "uid":
		return decodeText(dec, &m.UID)
	case "resourceVersion":
		return decodeText(dec, &m.ResourceVersion)
	case "labels":
		m.Labels = map[string]string{}
		return forEachMember(dec, func(key string) error {
			var value string
			err := decodeText(dec, &value)
			m.Labels[key] = value
			return err
		})
	case "ownerReferences":
		return forEachElement(dec, func() error {
			var o Owner
			err := forEachMember(dec, func(key string) error { return o.readField(dec, key) })
			m.OwnerReferences = append(m.OwnerReferences, o)
			return err
		})
	default:
		return dec.SkipValue()
	}
}

func (o *Owner) readField(dec *jsontext.Decoder, key string) error {
	switch key {
	case "apiVersion":
		return decodeText(dec, &o.APIVersion)
	case "kind":
		return decodeText(dec, &o.Kind)
	case "name":
		return decodeText(dec, &o.Name)
	case "uid":
		return decodeText(dec, &o.UID)
	}
	return dec.SkipValue()
}

// errNotObject is returned for a JSON value that is not an object.
var errNotObject = errors.New("not an object")

// forEachMember calls do for each member of the next JSON object, with the member's name. do must read the
// member's value. null counts as an object without members.
func forEachMember(dec *jsontext.Decoder, do func(key string) error) error {
	switch dec.PeekKind() {
	case '{':
	case 'n':
		return dec.SkipValue()
	default:
		return errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		if dec.StackDepth() > maxDepth {
			return errTooDeep
		}
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := do(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// forEachElement calls do for each element of the next JSON array. do must read the element. If the next value
// is not an array, forEachElement skips it.
func forEachElement(dec *jsontext.Decoder, do func() error) error {
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := do(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// decodeText reads the next JSON value. If the value is a string, decodeText assigns it to *into.
func decodeText(dec *jsontext.Decoder, into *string) error {
	if dec.PeekKind() != '"' {
		return dec.SkipValue()
	}
	tok, err := dec.ReadToken()
	if err == nil {
		*into = tok.String()
	}
	return err
}
