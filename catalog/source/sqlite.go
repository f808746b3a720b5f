package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/sqlite"
)

// sqliteScheme is the scheme of "sqlite:path", an SQLite index database, the format before
// file-based catalogs.
const sqliteScheme = "sqlite"

func findDatabase(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	f, err := at.Lookup(rest)
	if err != nil {
		return nil, err
	}
	return f.source(sqliteScheme+":"+f.Path, func(context.Context) (*OpenedCatalog, error) {
		return &OpenedCatalog{FS: f.FS, Format: sqliteFormat{f.FS, f.Name}, Digest: func() (catalog.Digest, error) { return fileDigest(f.FS, f.Name) }}, nil
	}), nil
}

// sqliteFormat is the format of index databases.
type sqliteFormat struct {
	fsys fs.FS
	file string
}

func (d sqliteFormat) Content(ctx context.Context) (catalog.Content, error) {
	return sqlite.LoadFS(ctx, d.fsys, d.file)
}

func (d sqliteFormat) Bundle(ctx context.Context, pkg, name string, _ *catalog.Bundle) (fs.FS, error) {
	return newEmbeddedBundle(pkg)(sqlite.Objects(ctx, d.fsys, d.file, pkg, name))
}
