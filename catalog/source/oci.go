package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/registry"
)

// layout is "oci:path[:tag]": an OCI layout directory.
type layout struct{ anImage }

func (layout) Name() string { return string(registry.Layout) }

func (layout) Claims(fsys fs.FS) (bool, error) { return IsLayout(fsys), nil }

// IsLayout reports whether a directory is an OCI layout.
func IsLayout(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, "oci-layout")
	return err == nil
}

func (s layout) Find(ctx context.Context, at Place, rest string) (*Source, error) {
	return findImage(ctx, at, s.Name()+":"+rest)
}
