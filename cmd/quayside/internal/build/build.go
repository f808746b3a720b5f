// Package build validates bundles and catalogs, and builds bundle images from directories,
// and catalog images from bundles and file-based catalogs.
//
// Builds are reproducible: the same sources result in the same image, byte for byte. Errors have positions in
// the user's sources. The package pushes nothing, writes nothing to disk, and runs no programs.
//
// Start from [Bundle], [Catalog] and [ValidateBundle].
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
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

// labelConfigs is the image label with the path of the file-based catalog in the image.
const labelConfigs = "operators.operatorframework.io.index.configs.v1"

// BundleImage is the image of a bundle.
type BundleImage struct {
	Bundle *bundle.Bundle
	Ref    string // "registry.example.com/ops/etcd@sha256:…"; empty without a repository
	Packed *oci.Packed
}

// Check validates a bundle and renders it in every install mode that it supports. Faults and warnings have
// positions below the path prefix. If the bundle can be parsed, Check returns it even if it has faults.
func Check(fsys fs.FS, prefix string) (*bundle.Bundle, []diag.Warning, error) {
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, nil, diag.PrefixPositions(prefix, err)
	}
	warnings, err := bundle.Validate(b)
	warnings = append(warnings, bundle.Conventions(b)...)
	var faults diag.List
	faults.Add(diag.Pos{}, err)
	faults.Add(diag.Pos{}, bundle.CheckServed(b))
	faults.Add(diag.Pos{}, bundledir.CheckProperties(b, resolve.CheckRule))
	if err = faults.Err(); err == nil {
		var more []diag.Warning
		more, err = render.Validate(b)
		warnings = append(warnings, more...)
	}
	return b, diag.SortWarnings(diag.PrefixWarnings(prefix, warnings)), diag.PrefixPositions(prefix, err)
}

// Bundle builds an image of a valid bundle directory; see [Check].
func Bundle(fsys fs.FS, prefix string) (*BundleImage, []diag.Warning, error) {
	b, warnings, err := Check(fsys, prefix)
	if err != nil {
		return nil, nil, err
	}
	packed, err := packBundle(fsys)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", prefix, err)
	}
	return &BundleImage{Bundle: b, Packed: packed}, warnings, nil
}

// packBundle builds the image of the bundle in fsys.
func packBundle(fsys fs.FS) (*oci.Packed, error) {
	files, labels, err := bundle.Image(fsys)
	if err != nil {
		return nil, err
	}
	return oci.Pack(files, oci.PackOptions{Labels: labels})
}

// CatalogImage is a catalog image, together with those images of its bundles that were also built.
type CatalogImage struct {
	Packed   *oci.Packed
	Packages int
	Bundles  []BundleImage
	Warnings []diag.Warning
}

// CatalogInput is a source of a catalog: a file-based catalog, a directory of bundles, or an image.
type CatalogInput struct {
	Text string // as given by the user
	Ref  source.Ref
}

// CatalogOptions are the options for building a catalog.
type CatalogOptions struct {
	Client     *oci.Client     // opens images
	Resolver   source.Resolver // opens directories
	Repository string          // repository of bundle images, with {package} as placeholder; empty: embed bundles
}

// Catalog builds a catalog image from sources. If it returns an error, the CatalogImage has only the warnings
// found so far.
func Catalog(ctx context.Context, sources []CatalogInput, opt CatalogOptions) (*CatalogImage, error) {
	asm := &assembly{CatalogOptions: opt, bundles: map[string]fs.FS{}, names: map[string]string{}, images: map[string]string{}, files: map[string]string{}, out: filetree.New()}
	defer func() {
		for _, f := range asm.closers {
			f()
		}
	}()
	for _, src := range sources {
		if err := asm.addSource(ctx, src); err != nil {
			return &asm.built, err
		}
	}
	if err := asm.encode(); err != nil {
		return &asm.built, err
	}
	content, err := fbc.LoadFS(asm.out.FS())
	if err == nil {
		err = checkUnambiguous(content)
	}
	if err != nil {
		return &asm.built, diag.MapPositions(err, asm.filePos)
	}
	asm.built.Packages = len(content.Packages)
	asm.built.Packed, err = oci.Pack(asm.out.FS(), oci.PackOptions{Prefix: "configs", Labels: map[string]string{labelConfigs: "/configs"}})
	return &asm.built, err
}

// checkUnambiguous returns an error for content that quayside accepts but that other tools may reject.
func checkUnambiguous(content catalog.Content) error {
	cat, err := catalog.New(content)
	if err != nil {
		return err
	}
	return cat.StrictFaults()
}

// assembly collects the files of a catalog image. The key of a bundle source is a number.
type assembly struct {
	CatalogOptions
	bundles  map[string]fs.FS  // file system of each bundle source, by key
	names    map[string]string // name of each bundle source as given by the user, by key
	images   map[string]string // references by digest of sources that are bundle images, by key
	out      *filetree.Tree    // files of the catalog image
	files    map[string]string // name of each copied file as given by the user, by path in out
	catalogs int               // number of file-based catalogs
	built    CatalogImage
	closers  []func()
}

// addSource adds the content of a source to the assembly.
func (m *assembly) addSource(ctx context.Context, src CatalogInput) error {
	if _, image := src.Ref.Argument(); image != "" {
		return m.addImage(ctx, src)
	}
	c, err := source.Open(ctx, m.Resolver, src.Ref)
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

func (m *assembly) addImage(ctx context.Context, src CatalogInput) error {
	im, err := image.Open(ctx, m.Client, string(src.Ref), image.OpenOptions{})
	if err != nil {
		return err
	}
	m.closers = append(m.closers, func() { _ = im.Close() }) // a close error is irrelevant after reading
	fsys, err := im.FS(ctx)
	if err != nil {
		return err
	}
	if im.Kind() == image.Catalog {
		return m.addCatalog("", fsys)
	}
	key := m.addBundles(src.Text, fsys)
	if src.Ref.IsRemote() {
		m.images[key] = oci.ByDigest(string(src.Ref), string(im.Digest()))
	}
	return nil
}

// addCatalog adds the files of a file-based catalog unchanged.
func (m *assembly) addCatalog(name string, fsys fs.FS) error {
	m.catalogs++
	if _, err := fbc.LoadFS(fsys); err != nil { // report faults now, with the positions in the user's files; symbolic links are rejected
		return diag.PrefixPositions(name, err)
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

// encode writes all bundles to m.out as a file-based catalog, one file per package.
func (m *assembly) encode() error {
	if len(m.bundles) == 0 {
		return nil
	}
	all := filetree.Mount(m.bundles)
	content, err := bundledir.LoadFS(all)
	if err != nil {
		return diag.MapPositions(err, m.bundlePos)
	}
	for _, w := range content.Warnings {
		w.Pos = m.bundlePos(w.Pos)
		m.built.Warnings = append(m.built.Warnings, w)
	}
	if err := checkUnambiguous(content); err != nil {
		return diag.MapPositions(err, m.bundlePos)
	}
	dirs, err := bundledir.Dirs(all)
	if err != nil {
		return diag.MapPositions(err, m.bundlePos)
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
			if b.Image, err = m.packBundle(p.Name, fsys); err != nil {
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

// packBundle builds the image of a bundle directory, adds it to m.built.Bundles, and returns its
// reference.
func (m *assembly) packBundle(pkg string, fsys fs.FS) (string, error) {
	packed, err := packBundle(fsys)
	if err != nil {
		return "", err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return "", err
	}
	src, err := oci.ParseReference("image:" + strings.ReplaceAll(m.Repository, "{package}", pkg))
	if err != nil {
		return "", err
	}
	ref := oci.ByDigest(src.String(), packed.Digest())
	m.built.Bundles = append(m.built.Bundles, BundleImage{Bundle: b, Ref: ref, Packed: packed})
	return ref, nil
}

// bundlePos returns p with a path that the user knows: it replaces the key of the bundle source by the name
// that the user gave.
func (m *assembly) bundlePos(p diag.Pos) diag.Pos {
	key, rest, _ := strings.Cut(p.File, "/")
	if name, ok := m.names[key]; ok {
		p.File = path.Join(name, rest)
	}
	return p
}

// filePos returns p, a position in m.out, with the name of the user's file.
func (m *assembly) filePos(p diag.Pos) diag.Pos {
	p.File = cmp.Or(m.files[p.File], p.File)
	return p
}
