package cli

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/registry"
)

// argCatalog opens a catalog that was given as an argument: a source as
// quayside.yaml has them, a directory of either kind, an image, or the name of
// a catalog of the workspace. Positions are relative to prefix.
func (a *app) argCatalog(ctx context.Context, client *registry.Client, text string) (t *tree, prefix string, err error) {
	s, err := a.open()
	if err != nil {
		return nil, "", err
	}
	if src, ok := s.named(text); ok {
		t, err := s.tree(ctx, client, src.ref)
		return t, "", err
	}
	if _, err := s.trusted(); err != nil { // its files are relative to the workspace
		return nil, "", err
	}
	here := &space{app: a, dir: a.argPath("."), ws: s.ws, signatures: s.signatures}
	if scheme, rest, ok := strings.Cut(text, ":"); ok && slices.Contains(schemes(), scheme) {
		t, err := here.tree(ctx, client, text)
		switch scheme {
		case "dir", "bundles", "package-manifests":
			return t, rest, err
		case "sqlite":
			return t, filepath.Dir(rest), err
		default:
			return t, "", err
		}
	}
	arg, err := a.argument(text)
	if err != nil {
		return nil, "", err
	}
	if arg.image != "" {
		t, err := here.tree(ctx, client, arg.image)
		return t, "", err
	}
	scheme, err := dirScheme(os.DirFS(arg.dir))
	if err != nil {
		return nil, "", err
	}
	t, err = here.tree(ctx, client, scheme+":"+text)
	return t, text, err
}

// named returns the catalog of the workspace that goes by that name.
func (s *space) named(text string) (source, bool) {
	set, err := s.declarations()
	if err != nil {
		return source{}, false // whoever needs the declarations says what is wrong with them
	}
	sources := s.sources(set)
	i := slices.IndexFunc(sources, func(src source) bool { return src.id.String() == text && src.ref != "" })
	if i < 0 {
		return source{}, false
	}
	return sources[i], true
}

// dirScheme says which kind of catalog a directory is: one of bundle
// directories where there is any, one of package manifests where there is a
// *.package.yaml, else a file-based one.
func dirScheme(fsys fs.FS) (string, error) {
	scheme := "dir"
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() {
			if strings.HasSuffix(name, ".package.yaml") {
				scheme = "package-manifests"
			}
			return nil
		}
		if _, err := fs.Stat(fsys, path.Join(name, "metadata/annotations.yaml")); err == nil {
			scheme = "bundles"
			return fs.SkipAll
		}
		return nil
	})
	return scheme, err
}

// checked reads a catalog whole. The error lists every fault.
func (t *tree) checked(ctx context.Context, prefix string) (catalog.Content, *catalog.Catalog, error) {
	content, err := t.content(ctx)
	if err != nil {
		return content, nil, below(prefix, err)
	}
	cat, err := catalog.New(content)
	if err != nil {
		return content, nil, below(prefix, err)
	}
	return content, cat, nil
}

// readArg reads a catalog that was given as an argument.
func (a *app) readArg(ctx context.Context, client *registry.Client, text string) (*catalog.Catalog, error) {
	t, prefix, err := a.argCatalog(ctx, client, text)
	if err != nil {
		return nil, err
	}
	defer t.close()
	content, cat, err := t.checked(ctx, prefix)
	if err != nil {
		return nil, err
	}
	a.talk.warn(warningsBelow(prefix, content.Warnings))
	return cat, nil
}
