// Package artifact makes an OCI artifact of a tree of files, as Flux's
// OCIRepository and Argo CD's OCI source take it, and reads one.
//
// The same files and the same [Meta] give the same bytes, on every machine. What
// is read may be anybody's: it is verified by its digests, holds regular files
// alone, and is bounded in size, number and depth.
//
// Start from [Pack] and [Open].
package artifact

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/quayside/quayside/registry"
)

// Types of an artifact's parts, as Flux has them.
const (
	ConfigType  = "application/vnd.cncf.flux.config.v1+json"
	ContentType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

const (
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
	annotationCreated  = "org.opencontainers.image.created"
)

// Meta is what an artifact says of where its files come from. What is not known
// is empty.
type Meta struct {
	Source   string    // URL of the repository
	Revision string    // "main@sha1:…", as Flux writes it
	Created  time.Time // when the revision was committed
}

// When returns the time of the revision as text.
func (m Meta) When() string { return m.Created.UTC().Format(time.RFC3339) }

// Pack makes an artifact of the files of fsys. Symbolic links and special files
// are an error.
func Pack(fsys fs.FS, m Meta) (*registry.Packed, error) {
	layer, diff, err := registry.PackLayer(fsys)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "", "os": "", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diff}},
	})
	if err != nil {
		return nil, fmt.Errorf("packing the artifact: %w", err)
	}
	return registry.Artifact{
		ConfigType: ConfigType, Config: config, LayerType: ContentType, Layer: layer, Annotations: m.annotations(),
	}.Pack()
}

func (m Meta) annotations() map[string]string {
	out := map[string]string{}
	for name, value := range map[string]string{annotationSource: m.Source, annotationRevision: m.Revision} {
		if value != "" {
			out[name] = value
		}
	}
	if !m.Created.IsZero() {
		out[annotationCreated] = m.When()
	}
	return out
}

// metaOf reads annotations; a time that is none is not known.
func metaOf(annotations map[string]string) Meta {
	created, _ := time.Parse(time.RFC3339, annotations[annotationCreated])
	return Meta{Source: annotations[annotationSource], Revision: annotations[annotationRevision], Created: created.UTC()}
}
