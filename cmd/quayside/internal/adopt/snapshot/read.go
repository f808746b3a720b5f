package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/s2"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readStream reads the objects of one file: consecutive JSON values or YAML documents.
func (b *builder) readStream(file string, r io.Reader) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if mark, _ := buffered.Peek(3); string(mark) == "\uFEFF" {
		_, _ = buffered.Discard(len(mark)) // the data is already in the buffer
	}
	begin, _ := buffered.Peek(4 << 10)
	if first := bytes.TrimLeft(begin, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		b.streamJSON(file, buffered)
		return
	}
	b.streamYAML(file, buffered)
}

// streamYAML reads the YAML documents of a file one by one, converted to JSON.
func (b *builder) streamYAML(file string, r io.Reader) {
	var docs yamlnode.Stream
	var reader yamlnode.Reader
	docs.Reset(r, 0, maxDocument)
	for !b.isFull() {
		text, line, err := docs.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				b.errs.Add(diag.Pos{File: file, Line: line}, err)
			}
			return
		}
		read, err := reader.Read(file, line, text, yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth}, nil)
		b.errs.Add(diag.Pos{File: file, Line: line}, err)
		for i := range read {
			src := &source{yaml: &read[i], dec: newDecoder(read[i].JSON)}
			src.dec.PeekKind()
			if err := b.readTopLevel(file, src.dec, src); err != nil && !errors.Is(err, errLimitReached) {
				b.fault(file, src, err)
			}
		}
	}
}

// streamJSON reads the JSON objects of a file one by one. It never holds the whole file in memory.
func (b *builder) streamJSON(file string, r io.Reader) {
	src := &source{r: r, limit: maxObject}
	dec := jsontext.NewDecoder(src)
	src.dec = dec
	for !b.isFull() {
		if dec.PeekKind() == jsontext.KindInvalid {
			if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
				b.fault(file, src, err)
			}
			return
		}
		if err := b.readTopLevel(file, dec, src); err != nil && !errors.Is(err, errLimitReached) {
			b.fault(file, src, err)
			return
		}
	}
}

// fault records an error. The rest of the file cannot be read after it.
func (b *builder) fault(file string, src *source, err error) {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		b.errs.Add(src.pos(file, src.dec.InputOffset()), cmp.Or(errors.Unwrap(err), err)) // without the prefix of the decoder
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

// readTopLevel reads an object, or the items of a list. It reads items one by one, because a list may be too
// large for memory. It cannot decide by the list's kind, which kubectl writes after the items.
func (b *builder) readTopLevel(file string, dec *jsontext.Decoder, src *source) error {
	at := src.nextPos(file)
	if dec.PeekKind() != '{' {
		b.errs.Addf(at, "not an object")
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	l := listReader{builder: b, pos: at}
	if src.yaml != nil { // the fields are sorted by the conversion from YAML, so the kind follows the items
		h, _ := readHead(src.yaml.JSON)
		l.apiVersion, l.kind = h.APIVersion, h.Kind
	}
	rest := pruner{out: append(b.outer[:0], '{')}
	for dec.PeekKind() != '}' {
		src.limit = dec.InputOffset() + maxObject
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if key == "items" && dec.PeekKind() == '[' {
			if err := l.readItems(file, dec, src); err != nil {
				return err
			}
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		l.readHeadField(key, value)
		if len(rest.out)+len(value) > maxObject {
			return errTooLarge
		}
		rest.writeName(key)
		rest.out = append(rest.out, value...)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	b.outer = append(rest.out, '}')
	src.limit = dec.InputOffset() + maxObject
	if l.hasItems {
		l.end()
	} else {
		b.addSingle(b.outer, at)
	}
	return nil
}

// listReader reads an object that may be a list. It is a list if it has a field items.
type listReader struct {
	*builder
	pos              diag.Pos
	apiVersion, kind string
	hasItems         bool // whether it has items, so that it is a list
	withoutKind      int  // number of items without a kind that came before the kind of the list
}

func (l *listReader) readHeadField(key string, value []byte) {
	switch key {
	case "apiVersion":
		_ = json.Unmarshal(value, &l.apiVersion) // a value of the wrong type is reported later, for the object
	case "kind":
		_ = json.Unmarshal(value, &l.kind) // see above
	}
}

// isList reports whether a kind is a list kind.
func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// readItems adds the items of a list.
func (l *listReader) readItems(file string, dec *jsontext.Decoder, src *source) error {
	l.hasItems = true
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		src.limit = dec.InputOffset() + maxObject
		at := src.nextPos(file)
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if l.readItem(value, at); l.isFull() {
			return errLimitReached
		}
	}
	_, err := dec.ReadToken()
	return err
}

// readItem adds one item of a list. The API server omits the kind of items, but writes the kind of the list
// before them. An item without a kind is therefore an error if the list's kind is not yet known.
func (l *listReader) readItem(raw []byte, at diag.Pos) {
	h, ok := l.headOf(raw, at)
	switch {
	case !ok:
	case h.Kind != "":
		l.add(h, raw, at)
	case isList(l.kind):
		h.Kind, h.APIVersion = strings.TrimSuffix(l.kind, "List"), l.apiVersion
		l.add(h, raw, at)
	default:
		l.withoutKind++
	}
}

// end records faults that can only be detected at the end of a list.
func (l *listReader) end() {
	switch {
	case !isList(l.kind):
		l.errs.Addf(l.pos, "%q with items is not a list of objects", sanitize.TruncateLine(l.kind, 100))
	case l.withoutKind > 0:
		l.errs.Addf(l.pos, "the list has %s without a kind", diag.Count(l.withoutKind, "item"))
	}
}

// addSingle adds an object that is not a list. It ignores an empty list.
func (b *builder) addSingle(raw []byte, at diag.Pos) {
	h, ok := b.headOf(raw, at)
	if ok && !(isList(h.Kind) && h.Metadata.Name == "") {
		b.add(h, raw, at)
	}
}

// head contains the fields that every object has.
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
		b.errs.Addf(at, "cannot decode the Kubernetes object: %w", err)
	}
	return h, err == nil
}

// add adds an object unless its kind is ignored.
func (b *builder) add(h head, raw []byte, at diag.Pos) {
	o := &LiveObject{
		Key:        k8s.Key{Group: k8s.Group(h.APIVersion), Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name},
		APIVersion: h.APIVersion, UID: h.Metadata.UID, Labels: h.Metadata.Labels, Owners: h.Metadata.OwnerReferences,
		Pos: at, version: h.Metadata.ResourceVersion,
	}
	switch {
	case ListedKind{o.Group, o.Kind}.IsConfidential() && len(b.opt.Namespaces) > 0 && !slices.Contains(b.opt.Namespaces, o.Namespace):
		return
	case o.Kind == "":
		b.errs.Addf(at, "the object has no kind: expected the output of 'kubectl get -o json' or '-o yaml'")
		return
	case o.Name == "":
		b.errs.Addf(at, "%s without metadata.name", sanitize.TruncateLine(o.Kind, 100))
		return
	case o.APIVersion == "":
		b.errs.Addf(at, "%s without apiVersion", sanitize.TruncateLine(o.Kind, 100))
		return
	case b.isIgnored(o.Group, o.Kind):
		return
	}
	if err := b.prune(raw, b.unusedFields(o), o); err != nil {
		b.errs.Addf(at, "%s: %w", o.Key, err)
		return
	}
	b.packing = s2.Encode(b.packing[:cap(b.packing)], b.scratch)
	o.packed = bytes.Clone(b.packing)
	b.put(o)
}

func (b *builder) isIgnored(group, kind string) bool {
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

// errTooLarge is returned for an object above the size limit.
var errTooLarge = fmt.Errorf("object exceeds the limit of %d bytes", maxObject)

// errLimitReached stops the reader when a limit is reached.
var errLimitReached = errors.New("full")

// source is the input file of a decoder. It limits the data that the decoder reads. It also converts offsets to
// positions. For this purpose, it records line breaks.
type source struct {
	yaml *yamlnode.Document // document that was converted to JSON; nil: the file is JSON

	r     io.Reader
	dec   *jsontext.Decoder
	limit int64 // maximum offset for the decoder

	read   int64
	breaks []int64 // offsets of the line breaks after the last offset of skipTo
	line   int     // number of line breaks before the last offset of skipTo
	start  int64   // start of the line with the last offset of skipTo
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.read > s.limit+int64(len(p)) {
		return 0, errTooLarge
	}
	if s.read > maxFile {
		return 0, fmt.Errorf("file exceeds the limit of %d bytes", int64(maxFile))
	}
	n, err := s.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			s.breaks = append(s.breaks, s.read+int64(i))
		}
	}
	s.read += int64(n)
	s.skipTo(s.dec.InputOffset())
	return n, err
}

// skipTo counts the line breaks before an offset, and forgets their positions.
func (s *source) skipTo(offset int64) {
	n := 0
	for n < len(s.breaks) && s.breaks[n] < offset {
		s.start = s.breaks[n] + 1
		n++
	}
	s.line += n
	s.breaks = append(s.breaks[:0], s.breaks[n:]...)
}

// pos returns the position of an offset. The offset must not be before the last offset passed to skipTo.
func (s *source) pos(file string, offset int64) diag.Pos {
	if s.yaml != nil {
		return s.yaml.Pos(int(offset))
	}
	s.skipTo(offset)
	return diag.Pos{File: file, Line: s.line + 1, Col: int(max(0, offset-s.start)) + 1}
}

// nextPos returns the position of the next value. The caller must have called PeekKind.
func (s *source) nextPos(file string) diag.Pos {
	unread := s.dec.UnreadBuffer()
	blank := len(unread) - len(bytes.TrimLeft(unread, " \t\r\n,:"))
	return s.pos(file, s.dec.InputOffset()+int64(blank))
}

// IsDeclaration reports whether a kind declares operators or their namespaces. Use it as
// Selection.Keep to drop the objects that OLM installed.
func IsDeclaration(group, kind string) bool {
	switch group {
	case "":
		return kind == "Namespace" || kind == "ConfigMap"
	case FluxGroup, FluxSources, ArgoGroup:
		return kind == "HelmRelease" || kind == "HelmRepository" || kind == "OCIRepository" || kind == "Application"
	case k8s.OLMGroup, k8s.OLMv1Group:
		return kind != "Operator" && kind != "OperatorCondition"
	}
	return false
}
