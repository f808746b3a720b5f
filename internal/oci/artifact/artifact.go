// Package artifact packs a tree of files as an OCI artifact for Flux's OCIRepository and Argo CD's
// OCI source, and reads such artifacts.
//
// The same tree gives the same bytes. Artifacts are untrusted input. Their content is verified by digest. It
// may contain only regular files, and is limited in size, number of files and depth.
//
// Start from [Pack] and [Open].
package artifact

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/quayside/quayside/internal/oci"
)

// Media types of the manifest, configuration and layer of an artifact, as used by Flux.
const (
	ConfigType  = "application/vnd.cncf.flux.config.v1+json"
	ContentType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

const (
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
	annotationCreated  = "org.opencontainers.image.created"
)

// Meta describes where the files of an artifact are from. Unknown fields are empty.
type Meta struct {
	Source   string    // URL of the Git repository
	Revision string    // branch and commit in the format of Flux: "main@sha1:…"
	Created  time.Time // time of the commit
}

// When returns Created in RFC 3339 format.
func (m Meta) When() string { return m.Created.UTC().Format(time.RFC3339) }

// Pack builds an artifact from the files of fsys. Symbolic links and special files are an error.
func Pack(fsys fs.FS, m Meta) (*oci.Packed, error) {
	layer, diff, err := oci.PackLayer(fsys)
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
	return oci.Artifact{
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

// metaOf decodes the annotations of an artifact. An invalid time becomes the zero time.
func metaOf(annotations map[string]string) Meta {
	created, _ := time.Parse(time.RFC3339, annotations[annotationCreated])
	return Meta{Source: annotations[annotationSource], Revision: annotations[annotationRevision], Created: created.UTC()}
}
