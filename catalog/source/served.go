package source

import (
	"bytes"
	"context"
	"fmt"
	"net/url"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
)

// Schemes of a file-based catalog that is one JSON file on a server, for example on catalogd of OLM v1. The reference
// is the URL.
// https://operator-framework.github.io/operator-controller/tutorials/explore-available-content/
const (
	fileHTTPS = "https" // "https://catalogs.example.com/catalogs/operatorhubio/api/v1/all"
	fileHTTP  = "http"  // the same on a loopback address or an insecure host
)

// maxServed is the maximum size in bytes of a catalog that a server provides as one file.
const maxServed = 512 << 20

// findServed returns the source of a catalog at a URL. The Name of the source contains the digest of the file.
func findServed(ctx context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	if u, err := url.Parse(string(r)); err != nil || u.Host == "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a catalog", r)
	}
	file, err := at.Download(ctx, string(r), "", maxServed)
	if err != nil {
		return nil, err
	}
	return &Source{
		Name: "file " + file.Digest,
		Open: func(context.Context) (*OpenedCatalog, error) {
			files := filetree.Lazy(map[string]func() (filetree.Content, error){"catalog.json": func() (filetree.Content, error) {
				data, err := file.Read()
				return bytes.NewReader(data), err
			}})
			return &OpenedCatalog{FS: files, Format: fileBased{files}, Digest: func() (catalog.Digest, error) { return catalog.Digest(file.Digest), nil }}, nil
		},
	}, nil
}
