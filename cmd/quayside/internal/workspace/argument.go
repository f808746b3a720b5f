package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
)

// Argument is a directory or an image that the user named.
type Argument struct {
	Text  string // text of the argument
	Files fs.FS  // files of the directory; nil: the argument is an image
	Image string // such as "oci:dist" or "image:quay.io/org/name:v1"; empty: the argument is a directory
}

// ParseArgument parses an argument that names a directory or an image. If the argument has no scheme
// such as "oci:", it names a directory if that directory exists, and otherwise an image in a registry.
func (r Root) ParseArgument(text string) (Argument, error) {
	switch dir, image := source.Ref(text).Argument(); {
	case dir != "":
		f, err := r.lookup(dir)
		if err == nil && f.Name != "" {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		return Argument{Text: text, Files: f.FS}, err
	case image != "":
		return Argument{Text: text, Image: image}, nil
	}
	f, err := r.lookup(text)
	switch {
	case err == nil && f.Name != "":
		return Argument{}, fmt.Errorf("%s is not a directory", text)
	case err == nil && source.IsLayout(f.FS):
		return Argument{Text: text, Image: string(oci.Layout) + ":" + text}, nil
	case err == nil:
		return Argument{Text: text, Files: f.FS}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return Argument{}, err
	}
	if src, err := oci.ParseReference(text); err == nil && strings.Contains(text, "/") && strings.ContainsAny(src.Registry(), ".:") && !strings.HasPrefix(text, ".") {
		return Argument{Text: text, Image: string(source.ImageRef(text))}, nil
	}
	return Argument{}, fmt.Errorf("%q is neither an existing directory nor an image (registry/name:tag, oci:path)", text)
}

// CatalogRef returns the reference for a catalog source that the user gave, with or without a
// scheme.
func (r Root) CatalogRef(text string) (source.Ref, error) {
	if _, _, ok := source.Ref(text).Scheme(); ok {
		return source.Ref(text), nil
	}
	arg, err := r.ParseArgument(text)
	if err != nil || arg.Image != "" {
		return source.Ref(arg.Image), err
	}
	return source.DirRef(arg.Files, text)
}

// CheckedCatalog is the result of CheckCatalog.
type CheckedCatalog struct {
	Content  catalog.Content  // content as far as it is readable
	Catalog  *catalog.Catalog // nil if it is invalid
	Warnings []diag.Warning
}

// CheckCatalog reads and validates a whole catalog. text is the name of a catalog of the workspace,
// a source as in spec.catalogs, a directory with a catalog or bundles, or an image. Paths are
// relative to the project here. If the catalog is invalid, the error is a diag.List of all faults.
func CheckCatalog(ctx context.Context, p, here *Project, text string) (CheckedCatalog, error) {
	base, ref, known := p, workspaceCatalog(p, text), true
	if ref == "" {
		if _, err := p.policy(); err != nil {
			return CheckedCatalog{}, err
		}
		var err error
		if ref, err = here.CatalogRef(text); err != nil {
			return CheckedCatalog{}, err
		}
		base, known = here, false
	}
	prefix := ref.Prefix()
	if known {
		prefix = ""
	}
	c, err := source.Open(ctx, base.Resolver(), ref)
	if err != nil {
		return CheckedCatalog{}, err
	}
	defer c.Close()
	content, err := c.Content(ctx)
	out := CheckedCatalog{Content: content, Warnings: p.Waive(diag.PrefixWarnings(prefix, content.Warnings))}
	if err == nil {
		out.Catalog, err = catalog.New(content)
	}
	if err == nil {
		err = out.Catalog.StrictFaults()
	}
	if err != nil {
		err = diag.PrefixPositions(prefix, err)
	}
	return out, err
}

// workspaceCatalog returns the source of the workspace's catalog whose ID is text, or "" if there
// is no such catalog.
func workspaceCatalog(p *Project, text string) source.Ref {
	set, err := p.Declarations()
	if err != nil {
		return "" // code that needs the declarations reports the error
	}
	all := p.Catalogs(set)
	i := slices.IndexFunc(all, func(c cache.CatalogSpec) bool { return c.ID.String() == text })
	if i < 0 {
		return ""
	}
	return all[i].Source
}

// BundleFiles opens the bundle that arg names. If err is nil, the caller must call done after use. prefix is
// the prefix for file names in positions.
func (p *Registries) BundleFiles(ctx context.Context, arg Argument) (fsys fs.FS, prefix string, done func(), err error) {
	if arg.Files != nil {
		return arg.Files, arg.Text, func() {}, nil
	}
	im, err := p.argImage(ctx, arg)
	if err != nil {
		return nil, "", nil, err
	}
	done = func() { _ = im.Close() } // a close error is irrelevant after reading
	if im.Kind() != image.Bundle {
		done()
		return nil, "", nil, fmt.Errorf("image %q is a catalog, not a bundle", im.Name())
	}
	if fsys, err = im.FS(ctx); err != nil {
		done()
	}
	return fsys, "", done, err
}

// argImage opens the image that an argument names. It does not verify the signatures that
// spec.trust requires: the user chose this image.
func (p *Registries) argImage(ctx context.Context, arg Argument) (*image.Image, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	return image.Open(ctx, client, arg.Image, image.OpenOptions{})
}

// CopyImage pushes an existing image of a bundle or a catalog, and returns its digest.
func (p *Registries) CopyImage(ctx context.Context, arg Argument, to string) (string, error) {
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
	uploaded, err := client.Upload(ctx, arg.Image, to)
	return uploaded.Digest, err
}

// ChooseCatalogs returns the catalogs to search. all contains the catalogs of the workspace, and is the
// result if name is empty. Otherwise name is one of these catalogs, a well-known catalog, or a source
// with a path relative to here. Paths of the returned catalogs are relative to the returned project.
func (p *Project) ChooseCatalogs(name string, all []cache.CatalogSpec, here Root) (*Project, []cache.CatalogSpec, error) {
	if name == "" {
		if len(all) == 0 {
			return nil, nil, fmt.Errorf("no catalog: choose one with --catalog (%s, or a source), or create a workspace with 'quayside init'", strings.Join(source.KnownNames(), ", "))
		}
		return p, all, nil
	}
	var some []cache.CatalogSpec
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
		return p, []cache.CatalogSpec{{ID: k.ID, Source: ref}}, nil
	}
	from := p.WithRoot(here)
	arg, err := from.CatalogRef(name)
	// A name such as "olm/hub" is a misspelled catalog, not an image on Docker Hub.
	if host, _, _ := strings.Cut(name, "/"); err != nil || arg.IsRemote() && !strings.ContainsAny(host, ".:") {
		names = append(names, source.KnownNames()...)
		return nil, nil, fmt.Errorf("catalog %q is neither declared in spec.catalogs nor well-known: choose one of %s%s", name, strings.Join(names, ", "), diag.DidYouMean(name, names))
	}
	return from, []cache.CatalogSpec{{ID: catalog.ID{Name: arg.SuggestedName()}, Source: arg}}, nil
}
