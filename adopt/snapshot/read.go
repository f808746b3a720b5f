package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/s2"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

// stream reads the objects of one file: JSON values one after the other, or YAML
// documents.
func (b *builder) stream(file string, r io.Reader) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if mark, _ := buffered.Peek(3); string(mark) == "\uFEFF" {
		_, _ = buffered.Discard(len(mark)) // they are in the buffer
	}
	begin, _ := buffered.Peek(4 << 10)
	if first := bytes.TrimLeft(begin, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		b.streamJSON(file, buffered)
		return
	}
	data, err := io.ReadAll(io.LimitReader(buffered, maxDocument+1))
	switch {
	case err != nil:
		b.errs.Add(diag.Pos{File: file}, err)
	case len(data) > maxDocument:
		b.errs.Addf(diag.Pos{File: file}, "more than the %d bytes of YAML allowed: get it as JSON", maxDocument)
	default:
		b.readYAML(file, data)
	}
}

// streamJSON reads one object after the other, without holding the file.
func (b *builder) streamJSON(file string, r io.Reader) {
	src := &source{r: r, limit: maxObject}
	dec := jsontext.NewDecoder(src)
	src.dec = dec
	for !b.full() {
		if dec.PeekKind() == jsontext.KindInvalid {
			if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
				b.fault(file, src, err)
			}
			return
		}
		if err := b.topLevel(file, dec, src); err != nil && !errors.Is(err, errFull) {
			b.fault(file, src, err)
			return
		}
	}
}

// fault adds what ends the reading of a file.
func (b *builder) fault(file string, src *source, err error) {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		b.errs.Add(src.pos(file, src.dec.InputOffset()), cmp.Or(errors.Unwrap(err), err)) // without the decoder's own words
		return
	}
	pos := src.pos(file, syntax.ByteOffset)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.errs.Addf(pos, "malformed JSON: the file ends inside an object")
	case errors.Is(err, jsontext.ErrDuplicateName):
		b.errs.Addf(pos, "malformed JSON: name %q appears twice in one object", syntax.JSONPointer.LastToken())
	default:
		b.errs.Addf(pos, "malformed JSON: %w", syntax.Err)
	}
}

// topLevel reads an object, or a list of objects one by one: what kubectl prints
// names the kind of a list behind its items.
func (b *builder) topLevel(file string, dec *jsontext.Decoder, src *source) error {
	at := src.next(file)
	if dec.PeekKind() != '{' {
		b.errs.Addf(at, "want an object")
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	l := list{builder: b, pos: at}
	rest := pruner{out: append(b.one[:0], '{')}
	for dec.PeekKind() != '}' {
		src.limit = dec.InputOffset() + maxObject
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if key == "items" && dec.PeekKind() == '[' {
			if err := l.stream(file, dec, src); err != nil {
				return err
			}
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		l.head(key, value)
		if len(rest.out)+len(value) > maxObject {
			return errLarge
		}
		rest.name(key)
		rest.out = append(rest.out, value...)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	b.one = append(rest.out, '}')
	src.limit = dec.InputOffset() + maxObject
	if l.seen {
		l.end()
	} else {
		b.single(b.one, at)
	}
	return nil
}

// list is an object that may hold others.
type list struct {
	*builder
	pos              diag.Pos
	apiVersion, kind string
	seen             bool // there are items
	bare             int  // items without a kind that came before the list's own
}

func (l *list) head(key string, value []byte) {
	switch key {
	case "apiVersion":
		_ = json.Unmarshal(value, &l.apiVersion) // what is no string is said of the object
	case "kind":
		_ = json.Unmarshal(value, &l.kind) // likewise
	}
}

// isList reports whether lists are of a kind.
func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// stream reads the items.
func (l *list) stream(file string, dec *jsontext.Decoder, src *source) error {
	l.seen = true
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		src.limit = dec.InputOffset() + maxObject
		at := src.next(file)
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if l.item(value, at); l.full() {
			return errFull
		}
	}
	_, err := dec.ReadToken()
	return err
}

// item adds one item. The API server leaves the kind of items out, and names that
// of the list first.
func (l *list) item(raw []byte, at diag.Pos) {
	h, ok := l.headOf(raw, at)
	switch {
	case !ok:
	case h.Kind != "":
		l.add(h, raw, at)
	case isList(l.kind):
		h.Kind, h.APIVersion = strings.TrimSuffix(l.kind, "List"), l.apiVersion
		l.add(h, raw, at)
	default:
		l.bare++
	}
}

// end says what was wrong with the list.
func (l *list) end() {
	switch {
	case !isList(l.kind):
		l.errs.Addf(l.pos, "%q with items is no list of objects", inert.Clip(l.kind, 100))
	case l.bare > 0:
		l.errs.Addf(l.pos, "%s of the list have no kind", diag.Count(l.bare, "item"))
	}
}

// single adds what has no items: one object, or none where it is an empty list.
func (b *builder) single(raw []byte, at diag.Pos) {
	h, ok := b.headOf(raw, at)
	if ok && !(isList(h.Kind) && h.Metadata.Name == "") {
		b.add(h, raw, at)
	}
}

// head is what is looked at of every object.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		OwnerReferences []Owner           `json:"ownerReferences"`
	} `json:"metadata"`
}

func (b *builder) headOf(raw []byte, at diag.Pos) (head, bool) {
	h, err := readHead(raw)
	if err != nil {
		b.errs.Addf(at, "no object of a cluster: %w", err)
	}
	return h, err == nil
}

// add keeps an object, unless its kind is passed over.
func (b *builder) add(h head, raw []byte, at diag.Pos) {
	o := &Object{
		Key:        kobj.Key{Group: kobj.Group(h.APIVersion), Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name},
		APIVersion: h.APIVersion, UID: h.Metadata.UID, Labels: h.Metadata.Labels, Owners: h.Metadata.OwnerReferences,
		Pos: at, version: h.Metadata.ResourceVersion,
	}
	switch {
	case o.Kind == "":
		b.errs.Addf(at, "the object has no kind: want what \"kubectl get -o json\" or \"-o yaml\" prints")
		return
	case o.Name == "":
		b.errs.Addf(at, "%s without metadata.name", inert.Clip(o.Kind, 100))
		return
	case o.APIVersion == "":
		b.errs.Addf(at, "%s without apiVersion", inert.Clip(o.Kind, 100))
		return
	case b.passes(o.Group, o.Kind):
		kind := o.Kind
		if o.Group != "" {
			kind += "." + o.Group
		}
		b.passed[kind]++
		return
	}
	if err := b.prune(raw, b.cutsOf(o), o); err != nil {
		b.errs.Addf(at, "%s: %w", o.Key, err)
		return
	}
	b.packing = s2.Encode(b.packing[:cap(b.packing)], b.scratch)
	o.packed = bytes.Clone(b.packing)
	b.put(o)
}

// passes reports whether objects of a kind are passed over.
func (b *builder) passes(group, kind string) bool {
	if b.opt.Keep != nil {
		return !b.opt.Keep(group, kind)
	}
	switch group {
	case "":
		return kind == "Event" || kind == "Endpoints" || kind == "Node" || kind == "Pod"
	case "apps":
		return kind == "ControllerRevision"
	case "events.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "metrics.k8s.io", "packages.operators.coreos.com":
		return true
	}
	return false
}

// errLarge is an object of more bytes than are read.
var errLarge = fmt.Errorf("an object of more than the %d bytes allowed", maxObject)

// errFull says that nothing more is worth reading.
var errFull = errors.New("full")

// source is a file that a decoder reads. It knows the lines of what the decoder
// has not passed yet, and bounds how much that can be.
type source struct {
	r     io.Reader
	dec   *jsontext.Decoder
	limit int64 // up to where the decoder may read

	read   int64
	breaks []int64 // where the line breaks are that no position passed
	line   int     // how many line breaks were passed
	start  int64   // where the line begins
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.read > s.limit+int64(len(p)) {
		return 0, errLarge
	}
	if s.read > maxFile {
		return 0, fmt.Errorf("more than the %d bytes of a file allowed", int64(maxFile))
	}
	n, err := s.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			s.breaks = append(s.breaks, s.read+int64(i))
		}
	}
	s.read += int64(n)
	s.pass(s.dec.InputOffset())
	return n, err
}

// pass forgets the lines before an offset.
func (s *source) pass(offset int64) {
	n := 0
	for n < len(s.breaks) && s.breaks[n] < offset {
		s.start = s.breaks[n] + 1
		n++
	}
	s.line += n
	s.breaks = append(s.breaks[:0], s.breaks[n:]...)
}

// pos returns the position of an offset that the decoder has not passed by much.
func (s *source) pos(file string, offset int64) diag.Pos {
	s.pass(offset)
	return diag.Pos{File: file, Line: s.line + 1, Col: int(max(0, offset-s.start)) + 1}
}

// next returns where the next value begins, once its kind was asked for.
func (s *source) next(file string) diag.Pos {
	unread := s.dec.UnreadBuffer()
	blank := len(unread) - len(bytes.TrimLeft(unread, " \t\r\n,:"))
	return s.pos(file, s.dec.InputOffset()+int64(blank))
}

// Declares reports whether objects of a kind say what is installed, and in which
// namespaces: for a Keep that leaves out what was installed.
func Declares(group, kind string) bool {
	switch group {
	case "":
		return kind == "Namespace"
	case OLM, OLMv1:
		return kind != "Operator" && kind != "OperatorCondition"
	}
	return false
}
