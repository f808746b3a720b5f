// Package build makes images: of a bundle's directory, and of a catalog out of
// bundles and file-based catalogs.
//
// The same sources give the same image, byte for byte. What is not valid is
// refused, with its faults in the terms of whoever named the sources; nothing is
// written or pushed, and no program is run.
//
// Start from [Bundle] and [Catalog].
package build

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/render"
)

// labelConfigs is the label that says where a catalog's image has its files.
const labelConfigs = "operators.operatorframework.io.index.configs.v1"

// BundleImage is a bundle's image.
type BundleImage struct {
	Bundle *bundle.Bundle
	Ref    string // "registry.example.com/ops/etcd@sha256:…"; empty where nobody said where it is to be
	Packed *registry.Packed
}

// Check reads a bundle, validates it, and renders it in every install mode that
// it supports. Faults and warnings name its files below prefix. A bundle that could be read comes with its faults.
func Check(fsys fs.FS, prefix string) (*bundle.Bundle, []diag.Warning, error) {
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, nil, diag.Below(prefix, err)
	}
	warnings, err := bundle.Validate(b)
	warnings = append(warnings, bundle.Conventions(b)...)
	if err == nil {
		var more []diag.Warning
		more, err = render.Validate(b)
		warnings = append(warnings, more...)
	}
	return b, diag.SortWarnings(diag.WarningsBelow(prefix, warnings)), diag.Below(prefix, err)
}

// Bundle makes an image of a bundle's directory, which must be valid: see
// [Check].
func Bundle(fsys fs.FS, prefix string) (*BundleImage, []diag.Warning, error) {
	b, warnings, err := Check(fsys, prefix)
	if err != nil {
		return nil, nil, err
	}
	packed, err := pack(fsys)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", prefix, err)
	}
	return &BundleImage{Bundle: b, Packed: packed}, warnings, nil
}

// pack makes an image of the bundle in fsys.
func pack(fsys fs.FS) (*registry.Packed, error) {
	files, labels, err := bundle.Image(fsys)
	if err != nil {
		return nil, err
	}
	return registry.Pack(files, registry.PackOptions{Labels: labels})
}

// CatalogImage is a catalog's image, and the bundles that it names and that were
// made here.
type CatalogImage struct {
	Packed   *registry.Packed
	Packages int
	Bundles  []BundleImage
	Warnings []diag.Warning
}

// Source is what a catalog is made of: a file-based catalog, directories of
// bundles or the image of either.
type Source struct {
	Text string // as the user calls it
	Ref  source.Ref
}

// Options says how a catalog is made.
type Options struct {
	Client     *registry.Client // for images
	Place      source.Place     // of directories
	Repository string           // where the images of bundles are, {package} standing for the package; empty: directories are embedded
}

// Catalog makes a catalog's image of sources. With an error there are the
// warnings of what was read before it.
func Catalog(ctx context.Context, sources []Source, opt Options) (*CatalogImage, error) {
	asm := &assembly{Options: opt, bundles: map[string]fs.FS{}, names: map[string]string{}, images: map[string]string{}, files: map[string]string{}, out: filetree.New()}
	defer func() {
		for _, f := range asm.closers {
			f()
		}
	}()
	for _, src := range sources {
		if err := asm.source(ctx, src); err != nil {
			return &asm.built, err
		}
	}
	if err := asm.encode(); err != nil {
		return &asm.built, err
	}
	content, err := fbc.LoadFS(asm.out.FS())
	if err == nil {
		err = strict(content)
	}
	if err != nil {
		return &asm.built, diag.Moved(err, asm.original)
	}
	asm.built.Packages = len(content.Packages)
	asm.built.Packed, err = registry.Pack(asm.out.FS(), registry.PackOptions{Prefix: "configs", Labels: map[string]string{labelConfigs: "/configs"}})
	return &asm.built, err
}

// strict returns what anybody who reads the catalog might refuse.
func strict(content catalog.Content) error {
	cat, err := catalog.New(content)
	if err != nil {
		return err
	}
	return cat.Strict()
}

// assembly collects the files of a catalog.
type assembly struct {
	Options
	bundles  map[string]fs.FS  // what bundles are looked for in
	names    map[string]string // what the keys of bundles were called by the user
	images   map[string]string // those of the keys that are an image, by digest
	out      *filetree.Tree    // the catalog's files
	files    map[string]string // what the user called those that are taken as they are
	catalogs int               // file-based ones
	built    CatalogImage
	closers  []func()
}

// source takes up one source.
func (m *assembly) source(ctx context.Context, src Source) error {
	if kind, _ := src.Ref.Kind(); kind == source.Image {
		return m.image(ctx, src)
	}
	c, err := source.Open(ctx, m.Place, src.Ref)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, c.Close)
	switch {
	case c.IsFileBased():
		return m.addCatalog(src.Ref.Prefix(), c.FS)
	case c.IsBundles():
		m.addBundles(src.Ref.Prefix(), c.FS)
		return nil
	default:
		return fmt.Errorf("%q is neither a file-based catalog nor a directory of bundles", src.Text)
	}
}

func (m *assembly) addBundles(name string, fsys fs.FS) string {
	key := strconv.Itoa(len(m.bundles))
	m.bundles[key], m.names[key] = fsys, name
	return key
}

func (m *assembly) image(ctx context.Context, src Source) error {
	im, err := image.Open(ctx, m.Client, string(src.Ref), image.Options{})
	if err != nil {
		return err
	}
	m.closers = append(m.closers, func() { _ = im.Close() }) // only read from
	fsys, err := im.FS(ctx)
	if err != nil {
		return err
	}
	if im.Kind() == image.Catalog {
		return m.addCatalog("", fsys)
	}
	key := m.addBundles(src.Text, fsys)
	if _, remote := src.Ref.Remote(); remote {
		m.images[key] = registry.ByDigest(string(src.Ref), string(im.Digest()))
	}
	return nil
}

// addCatalog takes up the files of a file-based catalog as they are.
func (m *assembly) addCatalog(name string, fsys fs.FS) error {
	m.catalogs++
	if _, err := fbc.LoadFS(fsys); err != nil { // in the user's terms, and symbolic links are refused
		return diag.Below(name, err)
	}
	files, err := filetree.Read(fsys)
	if err != nil {
		return err
	}
	prefix := ""
	if m.catalogs > 1 {
		prefix = fmt.Sprintf("catalog-%d", m.catalogs)
	}
	for file, data := range files.All() {
		if err := m.out.Add(path.Join(prefix, file), data); err != nil {
			return err
		}
		m.files[path.Join(prefix, file)] = path.Join(name, file)
	}
	return nil
}

// encode writes the bundles as a file-based catalog, one file a package.
func (m *assembly) encode() error {
	if len(m.bundles) == 0 {
		return nil
	}
	all := filetree.Mount(m.bundles)
	content, err := bundledir.LoadFS(all)
	if err != nil {
		return diag.Moved(err, m.place)
	}
	for _, w := range content.Warnings {
		w.Pos = m.place(w.Pos) // in the user's terms
		m.built.Warnings = append(m.built.Warnings, w)
	}
	if err := strict(content); err != nil {
		return diag.Moved(err, m.place)
	}
	dirs, err := bundledir.Dirs(all)
	if err != nil {
		return diag.Moved(err, m.place)
	}
	for _, p := range content.Packages {
		if err := m.encodePackage(all, p, dirs); err != nil {
			return fmt.Errorf("package %q: %w", p.Name, err)
		}
	}
	return nil
}

func (m *assembly) encodePackage(all fs.FS, p catalog.PackageData, dirs map[bundledir.Ref]string) error {
	embedded := map[string]fs.FS{}
	for i := range p.Bundles {
		b := &p.Bundles[i]
		dir := dirs[bundledir.Ref{Package: p.Name, Bundle: b.Name}]
		fsys, err := fs.Sub(all, dir)
		if err != nil {
			return err
		}
		key, _, _ := strings.Cut(dir, "/")
		switch {
		case m.images[key] != "":
			b.Image = m.images[key]
		case m.Repository != "":
			if b.Image, err = m.pack(p.Name, fsys); err != nil {
				return fmt.Errorf("bundle %q: %w", b.Name, err)
			}
		default:
			embedded[b.Name] = fsys
			continue
		}
		b.Embedded = false
		b.RelatedImages = append([]catalog.RelatedImage{{Image: b.Image}}, b.RelatedImages...)
	}
	var file bytes.Buffer
	err := fbc.Encode(&file, catalog.Content{Packages: []catalog.PackageData{p}}, func(_, name string) ([][]byte, error) {
		if embedded[name] == nil {
			return nil, nil
		}
		ms, err := bundle.Manifests(embedded[name])
		objects := make([][]byte, len(ms))
		for i, f := range ms {
			objects[i] = f.Data
		}
		return objects, err
	})
	if err != nil {
		return err
	}
	return m.out.Add(p.Name+"/catalog.json", file.Bytes())
}

// pack makes the image of a bundle's directory and returns its reference.
func (m *assembly) pack(pkg string, fsys fs.FS) (string, error) {
	packed, err := pack(fsys)
	if err != nil {
		return "", err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return "", err
	}
	src, err := registry.ParseSource("image:" + strings.ReplaceAll(m.Repository, "{package}", pkg))
	if err != nil {
		return "", err
	}
	ref := registry.ByDigest(src.String(), packed.Digest())
	m.built.Bundles = append(m.built.Bundles, BundleImage{Bundle: b, Ref: ref, Packed: packed})
	return ref, nil
}

// place puts what the user called a source in the place of its key.
func (m *assembly) place(p diag.Pos) diag.Pos {
	key, rest, _ := strings.Cut(p.File, "/")
	if name, ok := m.names[key]; ok {
		p.File = path.Join(name, rest)
	}
	return p
}

// original puts what the user called a file in the place of what it is called
// in the catalog.
func (m *assembly) original(p diag.Pos) diag.Pos {
	p.File = cmp.Or(m.files[p.File], p.File)
	return p
}
