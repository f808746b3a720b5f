package snapshot

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// cuts selects the parts of a value to drop: fields by name, also in the elements of a list. A nil
// entry drops the field.
type cuts struct {
	fields map[string]*cuts
	only   bool // drop unnamed fields; an empty entry keeps its field
}

func dropFields(names ...string) *cuts {
	c := &cuts{fields: map[string]*cuts{}}
	for _, n := range names {
		c.fields[n] = nil
	}
	return c
}

func onlyFields(names ...string) *cuts {
	c := &cuts{only: true, fields: map[string]*cuts{}}
	for _, n := range names {
		c.fields[n] = dropFields()
	}
	return c
}

// in sets the cuts of a field and returns c.
func (c *cuts) in(field string, inner *cuts) *cuts {
	c.fields[field] = inner
	return c
}

// field returns the cuts of a field and whether the field is kept.
func (c *cuts) field(name string) (inner *cuts, kept bool) {
	inner, named := c.fields[name]
	if !named {
		return nil, !c.only
	}
	return inner, inner != nil
}

// all reports whether nothing is dropped.
func (c *cuts) all() bool { return c == nil || len(c.fields) == 0 && !c.only }

// CopiedFrom is the label that OLM sets on copies. Its value is the namespace of the
// original. It identifies a copied ClusterServiceVersion.
const CopiedFrom = "olm.copiedFrom"

// cutsOf returns the unused parts of an object.
func (b *builder) cutsOf(o *Object) *cuts {
	meta := dropFields().in("annotations", dropFields("kubectl.kubernetes.io/last-applied-configuration"))
	if !b.opt.ManagedFields {
		meta.fields["managedFields"] = nil
	}
	c := dropFields().in("metadata", meta)
	switch o.Group + "/" + o.Kind {
	case "/Secret":
		public := onlyFields("tls.crt", "ca.crt", "olmCAKey")
		c.fields["stringData"] = nil
		return c.in("data", public)
	case "/ConfigMap":
		c.fields["binaryData"] = nil
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return c.in("status", onlyFields("storedVersions"))
	case "operators.coreos.com/ClusterServiceVersion":
		if _, copied := o.Labels[CopiedFrom]; copied {
			meta.in("annotations", onlyFields("olm.operatorGroup", "olm.operatorNamespace"))
			c.fields["spec"] = nil
		} else {
			c.in("spec", dropFields("icon", "description"))
		}
		return c.in("status", onlyFields("phase", "reason", "message"))
	case "operators.coreos.com/InstallPlan":
		step := dropFields().in("resource", dropFields("manifest"))
		return c.in("status", dropFields().in("plan", step).in("bundleLookups", dropFields("properties", "conditions")))
	case "operators.coreos.com/Operator":
		return c.in("status", dropFields().in("components", dropFields().in("refs", dropFields("conditions"))))
	}
	return c
}

// errDeep reports a value nested too deeply.
var errDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// prune writes an object to scratch as compact JSON without the parts dropped by c. It
// always includes the apiVersion and kind, which list items may lack.
func (b *builder) prune(raw []byte, c *cuts, o *Object) error {
	c.fields["apiVersion"], c.fields["kind"] = nil, nil
	p := pruner{dec: newDecoder(raw), out: b.scratch[:0]}
	p.out = append(p.out, '{')
	for _, kv := range [][2]string{{"apiVersion", o.APIVersion}, {"kind", o.Kind}} {
		p.name(kv[0])
		p.quote(kv[1])
	}
	err := forEachMember(p.dec, func(key string) error { return p.member(key, c) })
	p.out = append(p.out, '}')
	b.scratch = p.out
	return err
}

// newDecoder returns a decoder of JSON that was validated before.
func newDecoder(raw []byte) *jsontext.Decoder {
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
	p.out, _ = jsontext.AppendQuote(p.out, s) // it was valid in the input
}

// comma writes a comma unless the next value is the first of its object or list.
func (p *pruner) comma() {
	switch p.out[len(p.out)-1] {
	case '{', '[':
	default:
		p.out = append(p.out, ',')
	}
}

// member copies the member with a name that was already read.
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
		return p.copyValue()
	case kind == '[':
		p.out = append(p.out, '[')
		err := forEachElement(p.dec, func() error {
			p.comma()
			return p.value(c)
		})
		p.out = append(p.out, ']')
		return err
	default:
		p.out = append(p.out, '{')
		err := forEachMember(p.dec, func(key string) error { return p.member(key, c) })
		p.out = append(p.out, '}')
		return err
	}
}

// copyValue copies the next value.
func (p *pruner) copyValue() error {
	value, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	if jsonDepth(value) > maxDepth {
		return errDeep
	}
	if bytes.IndexByte(value, '\n') >= 0 { // indented: a string contains no raw line break
		value = bytes.Clone(value) // owned by the decoder
		if err := value.Compact(jsontext.AllowDuplicateNames(true)); err != nil {
			return err
		}
	}
	p.out = append(p.out, value...)
	return nil
}

// jsonDepth returns the nesting depth of a JSON value.
func jsonDepth(value []byte) int {
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
