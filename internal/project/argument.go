package project

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/registry"
)

// Argument is what somebody calls a directory or an image.
type Argument struct {
	Text  string // as it was given
	Dir   string // where the directory lies; empty for an image
	Image string // "oci:dist", "image:quay.io/org/name:v1"
}

// Argument tells a directory from an image: what has a scheme is as it says, a
// directory that exists is one, and anything else is an image in a registry.
func (p *Project) Argument(text string) (Argument, error) {
	switch kind, rest := source.Ref(text).Kind(); kind {
	case source.Directory:
		return Argument{Text: text, Dir: p.Path(rest)}, nil
	case source.Image:
		return Argument{Text: text, Image: text}, nil
	case source.Other:
	}
	dir := p.Path(text)
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return Argument{}, fmt.Errorf("%s is not a directory", text)
	case err == nil && source.IsLayout(os.DirFS(dir)):
		return Argument{Text: text, Image: string(registry.Layout) + ":" + text}, nil
	case err == nil:
		return Argument{Text: text, Dir: dir}, nil
	}
	if src, err := registry.ParseSource(text); err == nil && strings.Contains(text, "/") && strings.ContainsAny(src.Registry(), ".:") && !strings.HasPrefix(text, ".") {
		return Argument{Text: text, Image: string(source.OfImage(text))}, nil
	}
	return Argument{}, fmt.Errorf("%q is neither a directory that exists nor an image (registry/name:tag, oci:path)", text)
}

// Ref returns the reference of what somebody calls a catalog, with or without
// a scheme.
func (p *Project) Ref(text string) (source.Ref, error) {
	if _, _, ok := source.Ref(text).Scheme(); ok {
		return source.Ref(text), nil
	}
	arg, err := p.Argument(text)
	if err != nil || arg.Image != "" {
		return source.Ref(arg.Image), err
	}
	return source.OfDir(os.DirFS(arg.Dir), text)
}

// Checked is a catalog that was read whole.
type Checked struct {
	Content  catalog.Content  // as far as it could be read
	Catalog  *catalog.Catalog // nil where it is not valid
	Warnings []diag.Warning
}

// CheckCatalog reads what somebody calls a catalog: a source as quayside.yaml
// has them, a directory of either kind, an image, or the name of a catalog of
// the workspace. Paths are relative to here. The error is a diag.List of every
// fault of the catalog.
func (p *Project) CheckCatalog(ctx context.Context, here *Project, text string) (Checked, error) {
	at, ref, ok := p, p.named(text), true
	if ref == "" {
		if _, err := p.trusted(); err != nil {
			return Checked{}, err
		}
		var err error
		if ref, err = here.Ref(text); err != nil {
			return Checked{}, err
		}
		at, ok = here, false
	}
	prefix := ref.Prefix()
	if ok {
		prefix = ""
	}
	c, err := source.Open(ctx, at.Place(), ref)
	if err != nil {
		return Checked{}, err
	}
	defer c.Close()
	content, err := c.Content(ctx)
	out := Checked{Content: content, Warnings: p.Waive(diag.WarningsBelow(prefix, content.Warnings))}
	if err == nil {
		out.Catalog, err = catalog.New(content)
	}
	if err == nil {
		err = out.Catalog.Strict()
	}
	if err != nil {
		err = diag.Below(prefix, err)
	}
	return out, err
}

// named returns the reference of the workspace's catalog that goes by that
// name, "" where there is none.
func (p *Project) named(text string) source.Ref {
	set, err := p.Declarations()
	if err != nil {
		return "" // whoever needs the declarations says what is wrong with them
	}
	all := p.Catalogs(set)
	i := slices.IndexFunc(all, func(c cache.Catalog) bool { return c.ID.String() == text })
	if i < 0 {
		return ""
	}
	return all[i].Source
}

// BundleFiles opens what an argument names as a bundle. Faults of a bundle's
// files are to be named below prefix.
func (p *Project) BundleFiles(ctx context.Context, arg Argument) (fsys fs.FS, prefix string, done func(), err error) {
	if arg.Dir != "" {
		return os.DirFS(arg.Dir), arg.Text, func() {}, nil
	}
	im, err := p.argImage(ctx, arg)
	if err != nil {
		return nil, "", nil, err
	}
	done = func() { _ = im.Close() } // only read from
	if im.Kind() != image.Bundle {
		done()
		return nil, "", nil, fmt.Errorf("image %q holds a catalog, not a bundle", im.Name())
	}
	if fsys, err = im.FS(ctx); err != nil {
		done()
	}
	return fsys, "", done, err
}

// argImage opens the image that an argument names. What a user names is not
// held against what quayside.yaml demands.
func (p *Project) argImage(ctx context.Context, arg Argument) (*image.Image, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	return image.Open(ctx, client, arg.Image, image.Options{})
}

// CopyImage pushes the image of a bundle or of a catalog that is built already, and
// returns its digest.
func (p *Project) CopyImage(ctx context.Context, arg Argument, to string) (string, error) {
	im, err := p.argImage(ctx, arg)
	if err != nil {
		return "", err
	}
	if err := im.Close(); err != nil {
		return "", err
	}
	client, err := p.Client()
	if err != nil {
		return "", err
	}
	done, err := client.Upload(ctx, arg.Image, to)
	return done.Digest, err
}

// Choose returns the catalogs to look in: all of the workspace, the one of them that
// --catalog names, or what --catalog says, as it is seen from here, with or without a
// workspace; and where they are named from.
func (p *Project) Choose(name string, all []cache.Catalog, here Root) (*Project, []cache.Catalog, error) {
	if name == "" {
		if len(all) == 0 {
			return nil, nil, fmt.Errorf("no catalog: name one with --catalog (%s, or where it is), or make a workspace with 'quayside init'", strings.Join(source.KnownNames(), ", "))
		}
		return p, all, nil
	}
	var some []cache.Catalog
	var names []string
	for _, s := range all {
		names = append(names, s.ID.String())
		if name == s.ID.String() || name == s.ID.Name {
			some = append(some, s)
		}
	}
	if len(some) > 0 {
		return p, some, nil
	}
	k, ref, known, err := source.FindKnown(name, p.Settings.OpenShiftVersion)
	switch {
	case err != nil:
		return nil, nil, err
	case known:
		return p, []cache.Catalog{{ID: k.ID, Source: ref}}, nil
	}
	from := p.At(here)
	arg, err := from.Ref(name)
	_, remote := arg.Remote()
	// A name and a slash is a catalog's here, before it is an image of Docker Hub.
	if host, _, _ := strings.Cut(name, "/"); err != nil || remote && !strings.ContainsAny(host, ".:") {
		names = append(names, source.KnownNames()...)
		return nil, nil, fmt.Errorf("no catalog %q (have %s)%s", name, strings.Join(names, ", "), diag.DidYouMean(name, names))
	}
	return from, []cache.Catalog{{ID: catalog.ID{Name: arg.Suggested()}, Source: arg}}, nil
}
