package lockfile

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse reads a lock. Every fault is found, with its place; the error is a
// diag.List. A newer schema is refused, naming both versions, and so is a
// block that does not match its checksum, or a file with the marks of an
// unfinished merge.
func Parse(file string, data []byte) (*File, error) {
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
	var w wireFile
	if err := yamlnode.Decode(file, docs[0], &w); err != nil {
		return nil, err
	}
	p := parser{file: file}
	f := &File{}
	for _, n := range w.Catalogs {
		f.Catalogs = append(f.Catalogs, p.catalog(n))
	}
	for _, n := range w.Namespaces {
		f.Namespaces = append(f.Namespaces, p.namespace(n))
	}
	for _, n := range w.Pins {
		f.Pins = append(f.Pins, p.pin(n))
	}
	for _, n := range w.Accepted {
		f.Accepted = append(f.Accepted, p.accepted(n))
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	f = f.canonical()
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
	file string
	errs diag.List
}

// digest returns s where it is empty or well-formed.
func (p *parser) digest(n *yaml.Node, field, s string) catalog.Digest {
	if s == "" {
		return ""
	}
	d, err := catalog.ParseDigest(s)
	if err != nil {
		p.errs.Add(p.at(n, field), err)
	}
	return d
}

func (p *parser) at(n *yaml.Node, field string) diag.Pos {
	if _, v := yamlnode.Field(n, field); v != nil {
		return yamlnode.At(p.file, v)
	}
	return yamlnode.At(p.file, n)
}

// fields returns where the names of a block's fields stand.
func (p *parser) fields(n *yaml.Node) diag.Fields {
	out := diag.Fields{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = yamlnode.At(p.file, n.Content[i])
	}
	return out
}

func (p *parser) required(n *yaml.Node, what string, fields ...[2]string) {
	for _, f := range fields {
		if f[1] == "" {
			p.errs.Addf(p.at(n, f[0]), "%s: no %s", what, f[0])
		}
	}
}

// remedy is what to do about a block that is not as it was written.
const remedy = "undo the edit, or delete the block and run quayside resolve"

// sum compares a block with the checksum it carries.
func (p *parser) sum(n *yaml.Node, what, remedy, checksum string, block []byte) {
	if p.errs != nil { // the block could not be read as it stands
		return
	}
	if checksum == string(catalog.DigestOf(block)) {
		return
	}
	if checksum == "" {
		p.errs.Addf(yamlnode.At(p.file, n), "%s has no checksum: %s", what, remedy)
		return
	}
	p.errs.Addf(yamlnode.At(p.file, n), "%s was edited by hand: it does not match its checksum on line %d: %s", what, p.at(n, "checksum").Line, remedy)
}

func (p *parser) catalog(n *yaml.Node) Catalog {
	q := parser{file: p.file}
	var w wireCatalog
	q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
	id := catalog.ID{Namespace: w.Namespace, Name: w.Name}
	q.required(n, "catalog", [2]string{"name", w.Name}, [2]string{"source", w.Source})
	c := Catalog{ID: id, Source: w.Source, Digest: q.digest(n, "digest", w.Digest), Identity: w.Identity, Pos: yamlnode.At(p.file, n), Fields: p.fields(n)}
	q.sum(n, "catalog "+strconv.Quote(id.String()), remedy, w.Checksum, catalogBlock(c))
	p.errs = append(p.errs, q.errs...)
	return c
}

func (p *parser) namespace(n *yaml.Node) Namespace {
	q := parser{file: p.file}
	var w wireNamespace
	q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
	q.required(n, "Namespace", [2]string{"name", w.Name})
	ns := Namespace{Name: w.Name, Labels: w.Labels, Annotations: w.Annotations, Pos: yamlnode.At(p.file, n), Fields: p.fields(n)}
	q.sum(n, "Namespace "+strconv.Quote(ns.Name), remedy, w.Checksum, namespaceBlock(ns))
	p.errs = append(p.errs, q.errs...)
	return ns
}

func (p *parser) pin(n *yaml.Node) Pin {
	q := parser{file: p.file}
	var w wirePin
	q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
	q.required(n, "pin", [2]string{"namespace", w.Namespace}, [2]string{"package", w.Package}, [2]string{"version", w.Version}, [2]string{"bundle", w.Bundle})
	pin := q.convert(n, &w)
	if q.errs == nil { // a block of broken JSON cannot be written
		q.sum(n, "pin "+strconv.Quote(pin.Key()), remedy, w.Checksum, pinBlock(pin))
	}
	p.errs = append(p.errs, q.errs...)
	return pin
}

func (p *parser) convert(n *yaml.Node, w *wirePin) Pin {
	pin := Pin{
		Namespace: w.Namespace, Package: w.Package, Version: w.Version, Channel: w.Channel, Bundle: w.Bundle, Image: w.Image, Identity: w.Identity,
		ContentDigest: p.digest(n, "contentDigest", w.ContentDigest), Catalog: parseID(w.Catalog),
		Subscription: w.Subscription, Generated: w.Generated, Approval: w.Approval, Hold: w.Hold,
		WatchNamespaces: w.WatchNamespaces, OperatorGroup: w.OperatorGroup,
		Replaces: w.Replaces, Skipped: w.Skipped, RemainingHops: w.RemainingHops, Config: w.Config,
		Declaration: p.digest(n, "declaration", w.Declaration), Pos: yamlnode.At(p.file, n), Fields: p.fields(n),
	}
	if w.InstallMode != "" {
		mode, err := catalog.ParseInstallMode(w.InstallMode)
		if err != nil {
			p.errs.Add(p.at(n, "installMode"), err)
		}
		pin.InstallMode = mode
	}
	if digest := imageref.Split(w.Image).Digest; digest != "" {
		p.digest(n, "image", digest)
	}
	for _, r := range w.RequestedBy {
		pin.RequestedBy = append(pin.RequestedBy, Request(r))
	}
	for _, i := range w.RelatedImages {
		pin.RelatedImages = append(pin.RelatedImages, catalog.RelatedImage(i))
	}
	for _, prop := range w.Properties {
		if len(prop.Value) == 0 {
			prop.Value = json.RawMessage("null")
		}
		pin.Properties = append(pin.Properties, catalog.Property(prop))
	}
	return pin
}

// parseID reads "namespace/name" or "name".
func parseID(s string) catalog.ID {
	if ns, name, found := strings.Cut(s, "/"); found {
		return catalog.ID{Namespace: ns, Name: name}
	}
	return catalog.ID{Name: s}
}
