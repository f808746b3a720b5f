package snapshot

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/quayside/quayside/internal/k8s"
)

// fieldFilter selects the fields of an object to keep. For a list, the filter applies to each element.
type fieldFilter struct {
	fields map[string]*fieldFilter // filters for the values of fields; nil: drop the field
	only   bool                    // whether to also drop fields that are not in the map
}

func dropFields(names ...string) *fieldFilter {
	c := &fieldFilter{fields: map[string]*fieldFilter{}}
	for _, n := range names {
		c.fields[n] = nil
	}
	return c
}

func onlyFields(names ...string) *fieldFilter {
	c := &fieldFilter{only: true, fields: map[string]*fieldFilter{}}
	for _, n := range names {
		c.fields[n] = dropFields()
	}
	return c
}

// with sets the filter for the value of a field, and returns c.
func (c *fieldFilter) with(field string, inner *fieldFilter) *fieldFilter {
	c.fields[field] = inner
	return c
}

// field returns the filter for the value of a field, and whether c keeps the field.
func (c *fieldFilter) field(name string) (inner *fieldFilter, kept bool) {
	inner, named := c.fields[name]
	if !named {
		return nil, !c.only
	}
	return inner, inner != nil
}

// keepsAll reports whether the filter drops nothing.
func (c *fieldFilter) keepsAll() bool { return c == nil || len(c.fields) == 0 && !c.only }

// CopiedFrom is the label of ClusterServiceVersions that OLM copied from another namespace. Its value is the
// other namespace.
const CopiedFrom = "olm.copiedFrom"

// unusedFields returns the filter that drops the unused fields of an object.
func (b *builder) unusedFields(o *LiveObject) *fieldFilter {
	meta := dropFields().with("annotations", dropFields("kubectl.kubernetes.io/last-applied-configuration"))
	if !b.opt.ManagedFields {
		meta.fields["managedFields"] = nil
	}
	c := dropFields().with("metadata", meta)
	switch o.Group + "/" + o.Kind {
	case "/Secret":
		if b.opt.manifest {
			return c
		}
		public := onlyFields("tls.crt", "ca.crt", "olmCAKey")
		if b.opt.holdsRelease(o) {
			public = onlyFields("release")
		}
		c.fields["stringData"] = nil
		return c.with("data", public)
	case "/ConfigMap":
		c.fields["binaryData"] = nil
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return c.with("status", onlyFields("storedVersions"))
	case "operators.coreos.com/ClusterServiceVersion":
		if _, copied := o.Labels[CopiedFrom]; copied {
			meta.with("annotations", onlyFields("olm.operatorGroup", "olm.operatorNamespace"))
			c.fields["spec"] = nil
		} else {
			c.with("spec", dropFields("icon", "description"))
		}
		return c.with("status", onlyFields("phase", "reason", "message"))
	case k8s.OLMv1Group + "/ClusterExtensionRevision", k8s.OLMv1Group + "/ClusterObjectSet":
		return c.with("spec", dropFields("phases")) // the phases contain the manifests of all objects
	case "operators.coreos.com/InstallPlan":
		step := dropFields().with("resource", dropFields("manifest"))
		return c.with("status", dropFields().with("plan", step).with("bundleLookups", dropFields("properties", "conditions")))
	case "operators.coreos.com/Operator":
		return c.with("status", dropFields().with("components", dropFields().with("refs", dropFields("conditions"))))
	}
	return c
}

// errTooDeep is returned for a value that is nested too deeply.
var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// prune writes an object to scratch as compact JSON, without the fields that c drops. It always writes the
// apiVersion and kind of o, because an item of a list may lack them.
func (b *builder) prune(raw []byte, c *fieldFilter, o *LiveObject) error {
	c.fields["apiVersion"], c.fields["kind"] = nil, nil
	p := pruner{dec: newDecoder(raw), out: b.scratch[:0]}
	p.out = append(p.out, '{')
	for _, kv := range [][2]string{{"apiVersion", o.APIVersion}, {"kind", o.Kind}} {
		p.writeName(kv[0])
		p.quote(kv[1])
	}
	err := forEachMember(p.dec, func(key string) error { return p.pruneMember(key, c) })
	p.out = append(p.out, '}')
	b.scratch = p.out
	return err
}

// newDecoder returns a decoder for valid JSON.
func newDecoder(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// pruner copies JSON from dec to out.
type pruner struct {
	dec *jsontext.Decoder
	out []byte
}

func (p *pruner) writeName(key string) {
	p.writeComma()
	p.quote(key)
	p.out = append(p.out, ':')
}

func (p *pruner) quote(s string) {
	p.out, _ = jsontext.AppendQuote(p.out, s) // the input was valid
}

// writeComma writes a comma unless the next value is the first of its object or list.
func (p *pruner) writeComma() {
	switch p.out[len(p.out)-1] {
	case '{', '[':
	default:
		p.out = append(p.out, ',')
	}
}

// pruneMember copies an object member if c keeps it. The name of the member was already read.
func (p *pruner) pruneMember(key string, c *fieldFilter) error {
	inner, kept := c.field(key)
	if !kept {
		return p.dec.SkipValue()
	}
	p.writeName(key)
	return p.pruneValue(inner)
}

func (p *pruner) pruneValue(c *fieldFilter) error {
	switch kind := p.dec.PeekKind(); {
	case c.keepsAll() || kind != '{' && kind != '[':
		return p.copyValue()
	case kind == '[':
		p.out = append(p.out, '[')
		err := forEachElement(p.dec, func() error {
			p.writeComma()
			return p.pruneValue(c)
		})
		p.out = append(p.out, ']')
		return err
	default:
		p.out = append(p.out, '{')
		err := forEachMember(p.dec, func(key string) error { return p.pruneMember(key, c) })
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
		return errTooDeep
	}
	if bytes.IndexByte(value, '\n') >= 0 { // a line break can only be indentation, because JSON strings contain none
		value = bytes.Clone(value) // the decoder reuses its buffer
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
