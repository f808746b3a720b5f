package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/registry"
)

// labelConfigs is the label that says where a catalog's image has its files.
const labelConfigs = "operators.operatorframework.io.index.configs.v1"

// assembleCatalog makes a catalog's image of sources.
func (a *app) assembleCatalog(ctx context.Context, sources []string, repository string, offline bool) (*builtCatalog, error) {
	asm := &assembly{app: a, repository: repository, bundles: map[string]fs.FS{}, names: map[string]string{}, images: map[string]string{}, out: filetree.New()}
	defer asm.close()
	var err error
	if asm.client, err = a.argClient(offline); err != nil {
		return nil, err
	}
	for _, text := range sources {
		if err := asm.source(ctx, text); err != nil {
			return nil, err
		}
	}
	if err := asm.encode(); err != nil {
		return nil, err
	}
	content, err := fbc.LoadFS(asm.out.FS())
	if err == nil {
		_, err = catalog.New(content)
	}
	if err != nil {
		return nil, err
	}
	asm.built.packages = len(content.Packages)
	asm.built.packed, err = registry.Pack(asm.out.FS(), registry.PackOptions{Prefix: "configs", Labels: map[string]string{labelConfigs: "/configs"}})
	return &asm.built, err
}

// assembly collects the files of a catalog.
type assembly struct {
	*app
	client     *registry.Client
	repository string
	bundles    map[string]fs.FS  // what bundles are looked for in
	names      map[string]string // what the keys of bundles were called by the user
	images     map[string]string // those of the keys that are an image, by digest
	out        *filetree.Tree    // the catalog's files
	catalogs   int               // file-based ones
	built      builtCatalog
	closers    []func() error
}

func (m *assembly) close() {
	for _, f := range m.closers {
		_ = f() // only read from
	}
}

// source takes up one source.
func (m *assembly) source(ctx context.Context, text string) error {
	if scheme, rest, ok := strings.Cut(text, ":"); ok && scheme == "bundles" {
		m.addBundles(rest, os.DirFS(m.argPath(rest)))
		return nil
	}
	arg, err := m.argument(text)
	if err != nil {
		return err
	}
	if arg.image != "" {
		return m.image(ctx, arg)
	}
	fsys := os.DirFS(arg.dir)
	scheme, err := dirScheme(fsys)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(text, "dir:"), scheme == "dir":
		return m.addCatalog(text, fsys)
	case scheme == "package-manifests":
		if fsys, err = bundledir.Packages(fsys); err != nil {
			return below(text, err)
		}
	}
	m.addBundles(text, fsys)
	return nil
}

func (m *assembly) addBundles(name string, fsys fs.FS) string {
	key := strconv.Itoa(len(m.bundles))
	m.bundles[key], m.names[key] = fsys, name
	return key
}

func (m *assembly) image(ctx context.Context, arg argument) error {
	im, err := image.Open(ctx, m.client, arg.image, image.Options{})
	if err != nil {
		return err
	}
	m.closers = append(m.closers, im.Close)
	fsys, err := im.FS(ctx)
	if err != nil {
		return err
	}
	if im.Kind() == image.Catalog {
		return m.addCatalog("", fsys)
	}
	key := m.addBundles(arg.text, fsys)
	if src, err := registry.ParseSource(arg.image); err == nil && src.Kind == registry.Remote {
		m.images[key] = byDigest(arg.image, string(im.Digest()))
	}
	return nil
}

// addCatalog takes up the files of a file-based catalog as they are.
func (m *assembly) addCatalog(name string, fsys fs.FS) error {
	m.catalogs++
	if _, err := fbc.LoadFS(fsys); err != nil { // in the user's terms, and symbolic links are refused
		return below(strings.TrimPrefix(name, "dir:"), err)
	}
	files, err := filetree.Read(fsys)
	if err != nil {
		return err
	}
	prefix := ""
	if m.catalogs > 1 {
		prefix = fmt.Sprintf("catalog-%d", m.catalogs)
	}
	for name, data := range files.All() {
		if err := m.out.Add(path.Join(prefix, name), data); err != nil {
			return err
		}
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
		return moved(err, m.place)
	}
	m.warn(content.Warnings)
	dirs, err := bundledir.Dirs(all)
	if err != nil {
		return moved(err, m.place)
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
		case m.repository != "":
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
	src, err := registry.ParseSource("image:" + strings.ReplaceAll(m.repository, "{package}", pkg))
	if err != nil {
		return "", err
	}
	ref := byDigest(src.String(), packed.Digest())
	m.built.bundles = append(m.built.bundles, builtBundle{image: ref, version: b.CSV.Version, packed: packed})
	return ref, nil
}

// warn warns in the user's terms.
func (m *assembly) warn(ws []diag.Warning) {
	for i := range ws {
		ws[i].Pos = m.place(ws[i].Pos)
	}
	m.talk.warn(ws)
}

// place puts what the user called a source in the place of its key.
func (m *assembly) place(p diag.Pos) diag.Pos {
	key, rest, _ := strings.Cut(p.File, "/")
	if name, ok := m.names[key]; ok {
		p.File = path.Join(name, rest)
	}
	return p
}
