package snapshot

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// readHead reads the head of an object, whose values of the wrong type are empty.
func readHead(raw []byte) (head, error) {
	var h head
	dec := again(raw)
	err := members(dec, func(key string) error {
		switch key {
		case "apiVersion":
			return text(dec, &h.APIVersion)
		case "kind":
			return text(dec, &h.Kind)
		case "metadata":
			return members(dec, func(key string) error { return h.metadata(dec, key) })
		default:
			return dec.SkipValue()
		}
	})
	return h, err
}

func (h *head) metadata(dec *jsontext.Decoder, key string) error {
	m := &h.Metadata
	switch key {
	case "name":
		return text(dec, &m.Name)
	case "namespace":
		return text(dec, &m.Namespace)
	case "uid":
		return text(dec, &m.UID)
	case "resourceVersion":
		return text(dec, &m.ResourceVersion)
	case "labels":
		m.Labels = map[string]string{}
		return members(dec, func(key string) error {
			var value string
			err := text(dec, &value)
			m.Labels[key] = value
			return err
		})
	case "ownerReferences":
		return elements(dec, func() error {
			var o Owner
			err := members(dec, func(key string) error { return o.field(dec, key) })
			m.OwnerReferences = append(m.OwnerReferences, o)
			return err
		})
	default:
		return dec.SkipValue()
	}
}

func (o *Owner) field(dec *jsontext.Decoder, key string) error {
	switch key {
	case "apiVersion":
		return text(dec, &o.APIVersion)
	case "kind":
		return text(dec, &o.Kind)
	case "name":
		return text(dec, &o.Name)
	case "uid":
		return text(dec, &o.UID)
	case "controller":
		o.Controller = dec.PeekKind() == 't'
	}
	return dec.SkipValue()
}

// errNoObject is a value where an object should be.
var errNoObject = errors.New("want an object")

// members calls do with the name of each member of the object that comes next; do
// reads its value. null has none.
func members(dec *jsontext.Decoder, do func(key string) error) error {
	switch dec.PeekKind() {
	case '{':
	case 'n':
		return dec.SkipValue()
	default:
		return errNoObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		if dec.StackDepth() > maxDepth {
			return errDeep
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

// elements calls do for each element of the list that comes next; do reads it.
func elements(dec *jsontext.Decoder, do func() error) error {
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

// text reads the value that comes next, which stays empty where it is no string.
func text(dec *jsontext.Decoder, into *string) error {
	if dec.PeekKind() != '"' {
		return dec.SkipValue()
	}
	tok, err := dec.ReadToken()
	if err == nil {
		*into = tok.String()
	}
	return err
}
