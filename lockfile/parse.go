package lockfile

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse parses a lock. It rejects other schemas than [Schema], blocks that do not match their checksums, and
// conflict markers of Git. The error is a diag.List of all faults with their positions.
func Parse(file string, data []byte) (*File, error) {
	return parse(parser{file: file}, data)
}

// Edit is a version of a pin that a user or a bot changed in the file.
type Edit struct {
	Namespace, Package string
	Version            string // requested version
	Pos                diag.Pos
}

// ParseEdited parses a lock in which the versions of pins may have been edited. It returns the lock
// with the original versions, and the edits in the order of the file. Any other edit is an error,
// as in Parse.
func ParseEdited(file string, data []byte) (*File, []Edit, error) {
	var edits []Edit
	f, err := parse(parser{file: file, edits: &edits}, data)
	if err != nil {
		return nil, nil, err
	}
	return f, edits, nil
}

func parse(p parser, data []byte) (*File, error) {
	file := p.file
	if err := conflictError(file, data); err != nil {
		return nil, err
	}
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: 32 << 20, Depth: 200, Nodes: 1_000_000})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "expected one YAML document, got %d: restore the lock, or delete it and run 'quayside resolve'", len(docs))}
	}
	if err := p.checkSchema(docs[0]); err != nil {
		return nil, err
	}
	var w document[*yamlnode.Node, *yamlnode.Node, *yamlnode.Node]
	if err := yamlnode.Decode(file, docs[0], &w); err != nil {
		return nil, err
	}
	f := &File{Namespaces: parseBlocks[Namespace](&p, "Namespace", w.Namespaces), Pins: parseBlocks[Pin](&p, "pin", w.Pins), Leaving: parseBlocks[Leaving](&p, "leaving", w.Leaving)}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	f = f.With(f.Pins)
	checkUnique(f, &p.errs)
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// conflictError returns an error if the file contains conflict markers of Git.
func conflictError(file string, data []byte) error {
	mark := conflictMarker(data)
	if mark == nil {
		return nil
	}
	pos := diag.Pos{File: file, Line: bytes.Count(data[:mark[0]], []byte("\n")) + 1, Col: 1}
	return diag.List{diag.Errorf(pos, "unfinished merge: run 'quayside resolve', which takes the pins of both sides")}
}

// HasConflict reports whether the text of a lock contains conflict markers of Git.
func HasConflict(data []byte) bool { return conflictMarker(data) != nil }

// conflictMarker returns the start and the end of the first conflict marker in data, or nil.
func conflictMarker(data []byte) []int {
	return regexp.MustCompile(`(?m)^(<<<<<<<|\|\|\|\|\|\|\||>>>>>>>)( |\r?$)`).FindIndex(data)
}

// checkSchema returns an error if a document is not a lock, or if its schema is not supported.
func (p *parser) checkSchema(n *yamlnode.Node) error {
	var errs diag.List
	if yamlnode.CheckHeader(p.file, n, APIVersion, Kind, &errs); errs != nil {
		return errs
	}
	key, v := yamlnode.Field(n, "schema")
	if key == nil {
		return diag.List{diag.Errorf(yamlnode.At(p.file, n), "no schema (expected %d): restore the lock from Git, or delete it and run 'quayside resolve'", Schema)}
	}
	var schema int
	if err := yamlnode.Decode(p.file, v, &schema); err != nil {
		return err
	}
	switch {
	case schema > Schema:
		return diag.List{diag.Errorf(yamlnode.At(p.file, v), "written by a newer quayside (schema %d; this version supports %d)", schema, Schema)}
	case schema < Schema:
		return diag.List{diag.Errorf(yamlnode.At(p.file, v), "unknown schema %d (expected %d)", schema, Schema)}
	}
	return nil
}

type parser struct {
	file  string
	errs  diag.List
	edits *[]Edit // receives edited versions; nil: an edited version is a fault
}

// parseBlocks parses each block separately, so that a fault in one block does not hide the faults
// of others. The checksum of a block is verified only if the block has no fault and no edited
// version.
func parseBlocks[T block](p *parser, what string, nodes []*yamlnode.Node) []T {
	var out []T
	for _, n := range nodes {
		q := parser{file: p.file, edits: p.edits}
		var w blockWithChecksum[T]
		q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
		v := reflect.ValueOf(&w.Block).Elem()
		v.FieldByName("Pos").Set(reflect.ValueOf(yamlnode.At(p.file, n)))
		if at := v.FieldByName("Fields"); at.IsValid() {
			at.Set(reflect.ValueOf(q.fieldPositions(n)))
		}
		for _, f := range yamlnode.Fields(v.Type()) {
			q.checkField(n, what, f, v.FieldByIndex(f.Index))
		}
		restored := false
		if pin, ok := any(&w.Block).(*Pin); ok && q.errs == nil && p.edits != nil {
			restored = q.recordEdit(n, pin, w.Checksum)
		}
		if q.errs == nil && !restored {
			q.verifyChecksum(n, w.Block, w.Checksum)
		}
		p.errs = append(p.errs, q.errs...)
		out = append(out, w.Block)
	}
	return out
}

// fieldPositions returns the positions of the fields of a block.
func (p *parser) fieldPositions(n *yamlnode.Node) diag.Fields {
	out := diag.Fields{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = yamlnode.At(p.file, n.Content[i])
	}
	return out
}

// checkField validates the value of one field of a block.
func (p *parser) checkField(n *yamlnode.Node, what string, f reflect.StructField, value reflect.Value) {
	at := yamlnode.At(p.file, n)
	if _, node := yamlnode.Field(n, f.Name); node != nil {
		at = yamlnode.At(p.file, node)
	}
	if value.IsZero() {
		if yamlnode.Required(f) {
			p.errs.Addf(at, "%s: no %s", what, f.Name)
		}
		return
	}
	var err error
	switch value := value.Interface().(type) {
	case Digest:
		_, err = catalog.ParseDigest(string(value))
	case InstallMode:
		_, err = catalog.ParseInstallMode(string(value))
	case *Adopted:
		if value.Condition == "" {
			err = fmt.Errorf("%s: adopted requires operatorCondition", what)
		}
	case *Storage:
		if err = value.fault(); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	case Catalog:
		if value.ID == (ID{}) {
			err = fmt.Errorf("%s: catalog: no name", what)
		} else if value.Digest != "" {
			_, err = catalog.ParseDigest(string(value.Digest))
		}
	case string:
		if digest := imageref.Split(value).Digest; f.Name == "image" && digest != "" {
			_, err = catalog.ParseDigest(digest)
		}
	}
	p.errs.Add(at, err)
}

// verifyChecksum adds a fault if a block does not match its checksum. The checksum covers the values of the
// block, and not quotes, line breaks and the order of keys.
func (p *parser) verifyChecksum(n *yamlnode.Node, b block, checksum string) {
	got, err := checksumOf(n)
	if err != nil {
		p.errs.Add(yamlnode.At(p.file, n), err)
	}
	if err != nil || checksum == got {
		return
	}
	remedy := "undo the edit, or delete the block and run 'quayside resolve'"
	if pin, ok := b.(Pin); ok {
		if _, ok := undoVersionEdit(pin, checksum); ok {
			remedy = "undo the edit, or run 'quayside resolve --edited', which upgrades it to " + strconv.Quote(pin.Version)
		}
	}
	if checksum == "" {
		p.errs.Addf(yamlnode.At(p.file, n), "%s has no checksum: %s", b.title(), remedy)
		return
	}
	_, node := yamlnode.Field(n, "checksum")
	p.errs.Addf(yamlnode.At(p.file, n), "%s does not match its checksum on line %d: %s", b.title(), node.Line, remedy)
}

// recordEdit reports whether the version of a pin was edited. If so, it restores the original version and adds
// the edit to p.edits.
func (p *parser) recordEdit(n *yamlnode.Node, pin *Pin, checksum string) bool {
	before, ok := undoVersionEdit(*pin, checksum)
	if !ok {
		return false
	}
	at := yamlnode.At(p.file, n)
	if _, node := yamlnode.Field(n, "version"); node != nil {
		at = yamlnode.At(p.file, node)
	}
	*p.edits = append(*p.edits, Edit{pin.Namespace, pin.Package, pin.Version, at})
	*pin = before
	return true
}

// undoVersionEdit returns the pin with its original version, which the properties of the pin contain. ok is
// false if the version was not edited. It is also false if the restored pin does not match the checksum sum:
// then something else was edited, too.
func undoVersionEdit(pin Pin, sum string) (before Pin, ok bool) {
	before = pin
	before.Version = catalog.Read(pin.Properties).Version
	return before, before.Version != pin.Version && sum == string(before.Checksum())
}
