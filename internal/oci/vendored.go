package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// vendored is the vendored layout of a client. Each request opens the layout anew, because other
// processes may change it. If there is no layout, requests return fs.ErrNotExist.
type vendored struct {
	dir    string
	find   Lookup
	limits Limits
}

func (c *Client) vendored() vendored {
	return vendored{dir: c.Vendored, find: c.Lookup, limits: c.Limits.withDefaults()}
}

// open opens the layout. The caller must close the files of the layout.
func (v vendored) open() (*layout, error) {
	if v.dir == "" {
		return nil, fs.ErrNotExist
	}
	dir, err := v.find.openDir(v.dir)
	if err != nil {
		return nil, err
	}
	return &layout{files: dir, limit: v.limits.Manifest}, nil
}

// manifest returns the manifest with this digest from the layout.
func (v vendored) manifest(ctx context.Context, digest string) ([]byte, error) {
	l, err := v.open()
	if err != nil {
		return nil, err
	}
	defer l.files.Close()
	return l.manifest(ctx, digest)
}

// blob opens the blob with this digest in the layout.
func (v vendored) blob(ctx context.Context, digest string, size int64) (*store.Verifier, error) {
	l, err := v.open()
	if err != nil {
		return nil, err
	}
	defer l.files.Close() // an opened blob remains readable
	b, err := l.blob(ctx, digest, size)
	if err != nil {
		return nil, err
	}
	return b.OnMismatch(func(m *store.MismatchError) error {
		return fmt.Errorf("vendored copy in %s is damaged: %w", v.dir, m)
	}), nil
}

// index returns the content of index.json.
func (v vendored) index() (*layoutIndex, error) {
	l, err := v.open()
	if err != nil {
		return nil, err
	}
	defer l.files.Close()
	return l.index()
}

// tag returns the digest that the layout has for a reference by tag, or "".
func (v vendored) tag(src Reference) string {
	index, err := v.index()
	if err != nil {
		return ""
	}
	for _, e := range index.Manifests {
		if e.Annotations[refName] == src.String() && imageref.IsDigest(e.Digest) {
			return e.Digest
		}
	}
	return ""
}

// signatures returns the locations of the signatures of an image: the manifest under the signature tag, and
// the manifests in the repository of the image that refer to the image.
func (v vendored) signatures(ctx context.Context, src Reference) []VendoredImage {
	var out []VendoredImage
	tagged := Reference{Kind: Remote, Name: src.Name, Tag: strings.Replace(src.Digest, ":", "-", 1) + ".sig"}
	if digest := v.tag(tagged); digest != "" {
		out = append(out, VendoredImage{Name: tagged.String(), Digest: digest})
	}
	index, err := v.index()
	if err != nil {
		return out
	}
	for _, e := range index.Manifests {
		name := e.Annotations[refName]
		if name != src.Name+"@"+e.Digest || len(out) == maxSignatures {
			continue
		}
		data, err := v.manifest(ctx, e.Digest)
		if err != nil {
			continue
		}
		if m, err := v1.ParseManifest(bytes.NewReader(data)); err == nil && m.Subject != nil && m.Subject.Digest.String() == src.Digest {
			out = append(out, VendoredImage{Name: name, Digest: e.Digest})
		}
	}
	return out
}

// index returns the content of index.json.
func (l *layout) index() (*layoutIndex, error) {
	data, err := l.read("index.json")
	if err != nil {
		return nil, err
	}
	var index layoutIndex
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	return &index, nil
}
