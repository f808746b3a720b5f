package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/sqlite"
)

// database is "sqlite:path": an index database, the format before file-based
// catalogs.
const database = "sqlite"

func findDatabase(_ context.Context, at Place, _ Ref, rest string) (*Source, error) {
	f, err := at.Lookup(rest)
	if err != nil {
		return nil, err
	}
	return f.source(database+":"+f.Path, func(context.Context) (*Catalog, error) {
		return &Catalog{FS: f.FS, Form: inDatabase{f.FS, f.Name}, Digest: func() (catalog.Digest, error) { return digestOf(f.FS, f.Name) }}, nil
	}), nil
}

// digestOf returns the digest of a file's bytes.
func digestOf(fsys fs.FS, name string) (catalog.Digest, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return catalog.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), err
}

// inDatabase is the form of index databases: the file of that name.
type inDatabase struct {
	fsys fs.FS
	file string
}

func (d inDatabase) Content(ctx context.Context) (catalog.Content, error) {
	return sqlite.LoadFS(ctx, d.fsys, d.file)
}

func (d inDatabase) Bundle(ctx context.Context, pkg, name string, _ *catalog.Bundle) (fs.FS, error) {
	return embedded(pkg)(sqlite.Objects(ctx, d.fsys, d.file, pkg, name))
}
