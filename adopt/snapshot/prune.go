package snapshot

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// cuts says what to leave out of a value: fields by name, also of the elements of
// a list. A nil entry drops the field.
type cuts struct {
	fields map[string]*cuts
	only   bool // what fields does not name is dropped, and an entry without fields keeps all
}

func drop(names ...string) *cuts {
	c := &cuts{fields: map[string]*cuts{}}
	for _, n := range names {
		c.fields[n] = nil
	}
	return c
}

func only(names ...string) *cuts {
	c := &cuts{only: true, fields: map[string]*cuts{}}
	for _, n := range names {
		c.fields[n] = drop()
	}
	return c
}

// in returns c with cuts of its own for a field.
func (c *cuts) in(field string, inner *cuts) *cuts {
	c.fields[field] = inner
	return c
}

// field says what becomes of a field.
func (c *cuts) field(name string) (inner *cuts, kept bool) {
	inner, named := c.fields[name]
	if !named {
		return nil, !c.only
	}
	return inner, inner != nil
}

// all reports whether nothing is left out.
func (c *cuts) all() bool { return c == nil || len(c.fields) == 0 && !c.only }

// CopiedFrom is the label that OLM puts on what it copies: the Namespace of the
// original. It is the sure sign of a ClusterServiceVersion that is a copy.
const CopiedFrom = "olm.copiedFrom"

// cutsOf returns what nobody looks at of an object.
func (b *builder) cutsOf(o *Object) *cuts {
	meta := drop().in("annotations", drop("kubectl.kubernetes.io/last-applied-configuration"))
	if !b.opt.ManagedFields {
		meta.fields["managedFields"] = nil
	}
	c := drop().in("metadata", meta)
	switch o.Group + "/" + o.Kind {
	case "/Secret":
		public := only("tls.crt", "ca.crt", "olmCAKey")
		c.fields["stringData"] = nil
		return c.in("data", public)
	case "/ConfigMap":
		c.fields["binaryData"] = nil
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return c.in("status", only("storedVersions"))
	case "operators.coreos.com/ClusterServiceVersion":
		if _, copied := o.Labels[CopiedFrom]; copied {
			meta.in("annotations", only("olm.operatorGroup", "olm.operatorNamespace"))
			c.fields["spec"] = nil
		} else {
			c.in("spec", drop("icon", "description"))
		}
		return c.in("status", only("phase", "reason", "message"))
	case "operators.coreos.com/InstallPlan":
		step := drop().in("resource", drop("manifest"))
		return c.in("status", drop().in("plan", step).in("bundleLookups", drop("properties", "conditions")))
	case "operators.coreos.com/Operator":
		return c.in("status", drop().in("components", drop().in("refs", drop("conditions"))))
	}
	return c
}

// errDeep is a value that is nested deeper than is read.
var errDeep = fmt.Errorf("nested deeper than the %d levels allowed", maxDepth)

// prune puts an object as compact JSON without what c leaves out into scratch. Of an
// item whose list alone says its kind, that is put in.
func (b *builder) prune(raw []byte, c *cuts, o *Object) error {
	c.fields["apiVersion"], c.fields["kind"] = nil, nil
	p := pruner{dec: again(raw), out: b.scratch[:0]}
	p.out = append(p.out, '{')
	for _, kv := range [][2]string{{"apiVersion", o.APIVersion}, {"kind", o.Kind}} {
		p.name(kv[0])
		p.quote(kv[1])
	}
	err := members(p.dec, func(key string) error { return p.member(key, c) })
	p.out = append(p.out, '}')
	b.scratch = p.out
	return err
}

// again returns a decoder of JSON that was read before.
func again(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// pruner copies JSON.
type pruner struct {
	dec *jsontext.Decoder
	out []byte
}

// name writes the name of a member.
func (p *pruner) name(key string) {
	p.comma()
	p.quote(key)
	p.out = append(p.out, ':')
}

func (p *pruner) quote(s string) {
	p.out, _ = jsontext.AppendQuote(p.out, s) // it was valid where it came from
}

// comma sets off what comes next from what stands before it.
func (p *pruner) comma() {
	switch p.out[len(p.out)-1] {
	case '{', '[':
	default:
		p.out = append(p.out, ',')
	}
}

// member copies one member whose name was read.
func (p *pruner) member(key string, c *cuts) error {
	inner, kept := c.field(key)
	if !kept {
		return p.dec.SkipValue()
	}
	p.name(key)
	return p.value(inner)
}

func (p *pruner) value(c *cuts) error {
	switch kind := p.dec.PeekKind(); {
	case c.all() || kind != '{' && kind != '[':
		return p.whole()
	case kind == '[':
		p.out = append(p.out, '[')
		err := elements(p.dec, func() error {
			p.comma()
			return p.value(c)
		})
		p.out = append(p.out, ']')
		return err
	default:
		p.out = append(p.out, '{')
		err := members(p.dec, func(key string) error { return p.member(key, c) })
		p.out = append(p.out, '}')
		return err
	}
}

// whole copies the value that comes next.
func (p *pruner) whole() error {
	value, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	if depth(value) > maxDepth {
		return errDeep
	}
	if bytes.IndexByte(value, '\n') >= 0 { // which no string holds: it is indented
		value = bytes.Clone(value) // it is the decoder's
		if err := value.Compact(jsontext.AllowDuplicateNames(true)); err != nil {
			return err
		}
	}
	p.out = append(p.out, value...)
	return nil
}

// depth returns how deep a JSON value is nested.
func depth(value []byte) int {
	now, most, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
