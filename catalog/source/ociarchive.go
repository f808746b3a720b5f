package source

import (
	"context"

	"github.com/quayside/quayside/registry"
)

// layoutArchive is "oci-archive:path[:tag]": a tar file of an OCI layout.
type layoutArchive struct{ anImage }

func (layoutArchive) Name() string { return string(registry.LayoutArchive) }

func (s layoutArchive) Find(_ context.Context, at Place, rest string) (*Source, error) {
	return findArchive(at, s.Name()+":"+rest)
}
