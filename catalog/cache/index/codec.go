package index

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/internal/diag"
)

// codec writes one segment or section, or reads one: values, and strings in a
// table of their own. What it is told of a type holds both ways. After the first
// fault it reads zero values; the caller asks once, at the end, whether there
// was one.
type codec struct {
	raw   []byte            // the values; when reading, all bytes
	ids   map[string]uint64 // when writing: the numbers of the strings,
	table []byte            // and the strings

	reading bool
	all     string // the same bytes as raw, which strings are cut from
	at      int
	strings []span
	bad     bool
}

// span is where one string stands.
type span struct{ from, to int }

func newEncoder() *codec { return &codec{ids: map[string]uint64{}} }

func (c *codec) reset() {
	c.raw, c.table = c.raw[:0], c.table[:0]
	clear(c.ids)
}

// appendTo appends what was written: the number of strings, the strings, the
// values.
func (c *codec) appendTo(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(c.ids)))
	out = append(out, c.table...)
	return append(out, c.raw...)
}

// newDecoder returns a codec that reads data, which must not change as long as
// anything that was read from it lives.
func newDecoder(data []byte) *codec {
	c := &codec{reading: true, all: string(data), raw: data}
	c.strings = make([]span, c.count(c.next()))
	for i := range c.strings {
		size := c.count(c.next())
		c.strings[i] = span{c.at, c.at + size}
		c.at += size
	}
	return c
}

// next reads a number.
func (c *codec) next() uint64 {
	n, size := binary.Uvarint(c.raw[c.at:])
	if size <= 0 {
		c.fail()
		return 0
	}
	c.at += size
	return n
}

// count returns n as the number of things that follow, of at least a byte each.
func (c *codec) count(n uint64) int {
	if n > uint64(len(c.raw)-c.at) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *codec) fail() {
	c.bad = true
	c.at = len(c.raw) // nothing more can be read
}

// number writes or reads a number that is not negative.
func number[T int | int64 | uint32](c *codec, n *T) {
	if !c.reading {
		c.raw = binary.AppendUvarint(c.raw, uint64(*n))
		return
	}
	read := c.next()
	if *n = T(read); *n < 0 || uint64(*n) != read {
		*n = 0
		c.fail()
	}
}

func (c *codec) bool(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	number(c, &n)
	if c.reading {
		*b = n != 0
	}
}

func (c *codec) text(s *string) {
	if c.reading {
		at := c.span()
		*s = c.all[at.from:at.to]
		return
	}
	id, ok := c.ids[*s]
	if !ok {
		id = uint64(len(c.ids))
		c.ids[*s] = id
		c.table = binary.AppendUvarint(c.table, uint64(len(*s)))
		c.table = append(c.table, *s...)
	}
	c.raw = binary.AppendUvarint(c.raw, id)
}

// json is text as bytes, which the reader shares and must not modify.
func (c *codec) json(v *json.RawMessage) {
	if c.reading {
		at := c.span()
		*v = c.raw[at.from:at.to:at.to]
		return
	}
	s := string(*v)
	c.text(&s)
}

// span reads where a string stands.
func (c *codec) span() span {
	id := c.next()
	if id >= uint64(len(c.strings)) {
		c.fail()
		return span{}
	}
	return c.strings[id]
}

// list writes or reads a list. A nil list stays nil.
func list[T any](c *codec, l *[]T, each func(*T)) {
	if c.reading {
		if n := c.next(); n > 0 {
			read(c, l, n-1, each)
		}
		return
	}
	n := 0
	if *l != nil {
		n = len(*l) + 1
	}
	number(c, &n)
	for i := range *l {
		each(&(*l)[i])
	}
}

func read[T any](c *codec, l *[]T, size uint64, each func(*T)) {
	n := c.count(size)
	out := make([]T, 0, min(n, 1<<16))
	for i := range n {
		if c.bad {
			break
		}
		out = slices.Grow(out, 1)[:i+1]
		each(&out[i])
	}
	*l = out
}

func (c *codec) texts(l *[]string) { list(c, l, c.text) }

func (c *codec) pos(p *diag.Pos) {
	c.text(&p.File)
	number(c, &p.Line)
	number(c, &p.Col)
}

func (c *codec) pkg(p *catalog.PackageData) {
	c.text(&p.Name)
	c.text(&p.DefaultChannel)
	c.text(&p.Description)
	c.pos(&p.Pos)
	list(c, &p.Channels, c.channel)
	list(c, &p.Bundles, c.bundle)
	list(c, &p.Deprecations, c.deprecation)
	if c.reading && c.at < len(c.raw) || len(p.Lifecycles) > 0 { // most packages have none, and no byte for them
		list(c, &p.Lifecycles, c.lifecycle)
	}
}

func (c *codec) lifecycle(l *catalog.LifecycleData) {
	c.pos(&l.Pos)
	list(c, &l.Faults, func(f *catalog.LifecycleFault) {
		c.pos(&f.Pos)
		c.text(&f.Msg)
	})
	list(c, &l.Versions, func(v *lifecycle.Version) {
		c.text(&v.Name)
		list(c, &v.Phases, func(p *lifecycle.Phase) {
			c.text(&p.Name)
			c.text(&p.Start)
			c.text(&p.End)
		})
		list(c, &v.Platforms, func(p *lifecycle.Platform) {
			c.text(&p.Name)
			c.text(&p.Version)
		})
	})
}

func (c *codec) channel(ch *catalog.ChannelData) {
	c.text(&ch.Name)
	c.pos(&ch.Pos)
	list(c, &ch.Entries, c.entry)
}

func (c *codec) entry(x *catalog.EntryData) {
	c.text(&x.Name)
	c.text(&x.Replaces)
	c.texts(&x.Skips)
	c.text(&x.SkipRange)
	c.pos(&x.Pos)
}

func (c *codec) deprecation(x *catalog.DeprecationData) {
	c.text(&x.Schema)
	c.text(&x.Name)
	c.text(&x.Message)
	c.pos(&x.Pos)
}

func (c *codec) bundle(b *catalog.BundleData) {
	c.text(&b.Name)
	c.text(&b.Image)
	c.bool(&b.Embedded)
	c.pos(&b.Pos)
	number(c, &b.Span.Offset)
	number(c, &b.Span.Size)
	list(c, &b.Properties, func(p *catalog.Property) {
		c.text(&p.Type)
		c.json(&p.Value)
	})
	list(c, &b.RelatedImages, func(im *catalog.RelatedImage) {
		c.text(&im.Name)
		c.text(&im.Image)
	})
	c.metadata(&b.Metadata)
}

func (c *codec) metadata(m *catalog.Metadata) {
	c.bool(&m.Known)
	c.text(&m.DisplayName)
	c.text(&m.Description)
	c.text(&m.Provider)
	c.text(&m.MinKubeVersion)
	list(c, &m.InstallModes, func(mode *catalog.InstallMode) { c.text((*string)(mode)) })
	c.texts(&m.Keywords)
	c.text(&m.Maturity)
	c.annotations(&m.Annotations)
	c.texts(&m.Owned)
}

func (c *codec) annotations(m *map[string]string) {
	var pairs [][2]string
	if *m != nil {
		pairs = [][2]string{}
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			pairs = append(pairs, [2]string{key, (*m)[key]})
		}
	}
	list(c, &pairs, func(p *[2]string) {
		c.text(&p[0])
		c.text(&p[1])
	})
	if c.reading && pairs != nil {
		*m = make(map[string]string, len(pairs))
		for _, p := range pairs {
			(*m)[p[0]] = p[1]
		}
	}
}

func (c *codec) gvk(g *catalog.GVK) {
	c.text(&g.Group)
	c.text(&g.Version)
	c.text(&g.Kind)
}

func (c *codec) needs(n *catalog.Needs) {
	c.bool(&n.Anything)
	c.texts(&n.Packages)
	list(c, &n.APIs, c.gvk)
	c.texts(&n.Labels)
}

func (c *codec) warning(w *diag.Warning) {
	c.pos(&w.Pos)
	c.text(&w.Code)
	c.text(&w.Msg)
}

func (c *codec) place(p *place) {
	number(c, &p.offset)
	number(c, &p.size)
	number(c, &p.sum)
}

// entry is what the directory says of a package.
type entry struct {
	segment place
	summary catalog.Summary
}

func (c *codec) directory(packages *[]entry) {
	list(c, packages, func(e *entry) {
		c.text(&e.summary.Name)
		c.place(&e.segment)
		c.text(&e.summary.DefaultChannel)
		c.text(&e.summary.Version)
		c.text(&e.summary.DisplayName)
		c.text(&e.summary.Description)
		c.text(&e.summary.Deprecation)
	})
}

// provider says which packages have a bundle with an API or a label, by their
// number in the directory.
type provider[T any] struct {
	what T
	by   []int
}

// providers writes or reads who provides what, among that many packages.
func (c *codec) providers(apis *[]provider[catalog.GVK], labels *[]provider[string], packages int) {
	by := func(n *int) {
		if number(c, n); *n >= packages {
			c.fail()
			*n = 0
		}
	}
	list(c, apis, func(p *provider[catalog.GVK]) {
		c.gvk(&p.what)
		list(c, &p.by, by)
	})
	list(c, labels, func(p *provider[string]) {
		c.text(&p.what)
		list(c, &p.by, by)
	})
}

// header is what is read first.
type header struct {
	key      string
	digest   catalog.Digest
	warnings []diag.Warning
	sections [4]place
}

// The numbers of the sections.
const (
	directory = iota
	needs
	providers
	search
)

func (c *codec) header(h *header) {
	c.text(&h.key)
	c.text((*string)(&h.digest))
	list(c, &h.warnings, c.warning)
	for i := range h.sections {
		c.place(&h.sections[i])
	}
}
