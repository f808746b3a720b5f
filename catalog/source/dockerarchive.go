package source

import (
	"context"

	"github.com/quayside/quayside/registry"
)

// dockerArchive is "docker-archive:path[:name:tag]": what docker save writes.
type dockerArchive struct{ anImage }

func (dockerArchive) Name() string { return string(registry.DockerArchive) }

func (s dockerArchive) Find(_ context.Context, at Place, rest string) (*Source, error) {
	return findArchive(at, s.Name()+":"+rest)
}
