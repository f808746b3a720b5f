package lockfile

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse reads a lock. Every fault is found, with its place; the error is a
// diag.List. A newer schema is refused, naming both versions, and so is a
// block that does not match its checksum, or a file with the marks of an
// unfinished merge.
func Parse(file string, data []byte) (*File, error) {
	return parse(parser{file: file}, data)
}

// Edit is a version that was written over the one of a pin.
type Edit struct {
	Namespace, Package string
	Version            string // that is asked for
	Pos                diag.Pos
}

// ParseEdited reads a lock as it was before versions of its pins were written
// over, by hand or by a bot, and returns these in the order of the file. Every
// other edit is the fault that it is to Parse.
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
	if err := unmerged(file, data); err != nil {
		return nil, err
	}
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: 32 << 20, Depth: 200, Nodes: 1_000_000})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "want one document, got %d: restore the lock, or delete it and run quayside resolve", len(docs))}
	}
	if err := version(file, docs[0]); err != nil {
		return nil, err
	}
	var w document[*yaml.Node, *yaml.Node, *yaml.Node, *yaml.Node]
	if err := yamlnode.Decode(file, docs[0], &w); err != nil {
		return nil, err
	}
	f := &File{
		Catalogs: blocks[Catalog](&p, "catalog", w.Catalogs), Namespaces: blocks[Namespace](&p, "Namespace", w.Namespaces),
		Pins: blocks[Pin](&p, "pin", w.Pins), Leaving: blocks[Leaving](&p, "leaving", w.Leaving),
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	f = f.With(f.Catalogs, f.Pins)
	unique(f, &p.errs)
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// unmerged finds the marks that git leaves in a file it could not merge.
func unmerged(file string, data []byte) error {
	mark := regexp.MustCompile(`(?m)^(<<<<<<<|\|\|\|\|\|\|\||>>>>>>>)( |\r?$)`).FindIndex(data)
	if mark == nil {
		return nil
	}
	pos := diag.Pos{File: file, Line: bytes.Count(data[:mark[0]], []byte("\n")) + 1, Col: 1}
	return diag.List{diag.Errorf(pos, "unfinished merge: take one side, with git checkout --theirs or --ours, and run quayside resolve: it brings that in step with the declarations")}
}

// version refuses what this package cannot read before looking any further.
func version(file string, n *yaml.Node) error {
	for _, want := range [][2]string{{"apiVersion", APIVersion}, {"kind", Kind}} {
		key, v := yamlnode.Field(n, want[0])
		if key == nil {
			return diag.List{diag.Errorf(yamlnode.At(file, n), "no %s (want %s)", want[0], want[1])}
		}
		got, _ := yamlnode.Text(v)
		if got == want[1] {
			continue
		}
		if want[0] == "apiVersion" && strings.HasPrefix(got, "quayside.dev/v") {
			return diag.List{diag.Errorf(yamlnode.At(file, v), "schema %q is newer than %q, which this quayside reads: use a newer quayside", got, APIVersion)}
		}
		return diag.List{diag.Errorf(yamlnode.At(file, v), "%s %q is not %s: not a lock", want[0], got, want[1])}
	}
	return nil
}

type parser struct {
	file  string
	errs  diag.List
	edits *[]Edit // where versions that were written over are taken, these
}

// blocks reads each block by itself, so that a fault in one hides none in
// another. The checksum of a block is looked at where it could be read as it
// stands.
func blocks[T block](p *parser, what string, nodes []*yaml.Node) []T {
	var out []T
	for _, n := range nodes {
		q := parser{file: p.file, edits: p.edits}
		var w written[T]
		q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
		v := reflect.ValueOf(&w.Block).Elem()
		v.FieldByName("Pos").Set(reflect.ValueOf(yamlnode.At(p.file, n)))
		if at := v.FieldByName("Fields"); at.IsValid() {
			at.Set(reflect.ValueOf(q.fields(n)))
		}
		for _, f := range yamlnode.Fields(v.Type()) {
			q.check(n, what, f, v.FieldByIndex(f.Index))
		}
		if pin, ok := any(&w.Block).(*Pin); ok && q.errs == nil && p.edits != nil {
			*pin = q.restored(n, *pin, w.Checksum)
		}
		if q.errs == nil {
			q.sum(n, w.Block, w.Checksum)
		}
		p.errs = append(p.errs, q.errs...)
		out = append(out, w.Block)
	}
	return out
}

// fields returns where the names of a block's fields stand.
func (p *parser) fields(n *yaml.Node) diag.Fields {
	out := diag.Fields{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = yamlnode.At(p.file, n.Content[i])
	}
	return out
}

// check looks at one field of a block.
func (p *parser) check(n *yaml.Node, what string, f reflect.StructField, value reflect.Value) {
	at := yamlnode.At(p.file, n)
	if _, said := yamlnode.Field(n, f.Name); said != nil {
		at = yamlnode.At(p.file, said)
	}
	if value.IsZero() {
		if yamlnode.Required(f) {
			p.errs.Addf(at, "%s: no %s", what, f.Name)
		}
		return
	}
	var err error
	switch value := value.Interface().(type) {
	case catalog.Digest:
		_, err = catalog.ParseDigest(string(value))
	case catalog.InstallMode:
		_, err = catalog.ParseInstallMode(string(value))
	case *Adopted:
		if value.Condition == "" {
			err = fmt.Errorf("%s: adopted: no condition", what)
		}
	case *Storage:
		if err = value.fault(); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	case *lifecycle.Version:
		if err = value.Check(); err != nil {
			err = fmt.Errorf("%s: lifecycle: %w", what, err)
		}
	case string:
		if digest := imageref.Split(value).Digest; f.Name == "image" && digest != "" {
			_, err = catalog.ParseDigest(digest)
		}
	}
	p.errs.Add(at, err)
}

// sum compares a block with the checksum it carries.
func (p *parser) sum(n *yaml.Node, b block, checksum string) {
	if checksum == string(catalog.DigestOf(lines(b))) {
		return
	}
	remedy := "undo the edit, or delete the block and run quayside resolve"
	switch b := b.(type) {
	case Pin:
		if _, ok := unedited(b, checksum); ok {
			remedy = "undo the edit, or run quayside resolve --edited, which moves it to " + strconv.Quote(b.Version)
		}
	}
	if checksum == "" {
		p.errs.Addf(yamlnode.At(p.file, n), "%s has no checksum: %s", b.title(), remedy)
		return
	}
	_, said := yamlnode.Field(n, "checksum")
	p.errs.Addf(yamlnode.At(p.file, n), "%s was edited by hand: it does not match its checksum on line %d: %s", b.title(), said.Line, remedy)
}

// restored returns a pin as it was before another version was written over its
// own, and notes that one.
func (p *parser) restored(n *yaml.Node, pin Pin, checksum string) Pin {
	before, ok := unedited(pin, checksum)
	if !ok {
		return pin
	}
	at := yamlnode.At(p.file, n)
	if _, said := yamlnode.Field(n, "version"); said != nil {
		at = yamlnode.At(p.file, said)
	}
	*p.edits = append(*p.edits, Edit{pin.Namespace, pin.Package, pin.Version, at})
	return before
}

// unedited returns what a pin with this checksum was if nothing but its version
// was written over: its properties say that once more.
func unedited(pin Pin, checksum string) (before Pin, ok bool) {
	before = pin
	before.Version = olm.Read(pin.Properties).Version
	return before, before.Version != pin.Version && checksum == string(catalog.DigestOf(lines(before)))
}
