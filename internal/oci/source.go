package oci

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// Kind is the kind of place that an image comes from.
type Kind string

// The kinds of places. The values are the prefixes of references.
const (
	Remote        Kind = "image"
	Layout        Kind = "oci"
	LayoutArchive Kind = "oci-archive"
	DockerArchive Kind = "docker-archive"
)

const maxReference = 4096

// Reference is a parsed reference to an image.
type Reference struct {
	Kind   Kind
	Name   string // repository with its registry, or path of a layout or archive
	Tag    string // tag in a registry, or name in a layout or archive; may be empty
	Digest string // "sha256:…"; may be empty
}

// ParseReference parses one of
//
//	image:quay.io/org/name:tag           a registry, by tag (default: latest);
//	image:quay.io/org/name@sha256:…      a registry, by digest; a tag before the digest has no effect;
//	quay.io/org/name@sha256:…            the same;
//	oci://quay.io/org/name:tag           a registry, in the syntax of Flux and Helm;
//	oci:path[:tag | @sha256:…]           an OCI layout directory;
//	oci-archive:path[:tag | @sha256:…]   an OCI layout in a tar file;
//	docker-archive:path[:name:tag]       an archive written by docker save.
//
// A layout or archive with a single image needs no tag.
func ParseReference(s string) (Reference, error) {
	if len(s) > maxReference {
		return Reference{}, fmt.Errorf("image reference of %d bytes exceeds the limit of %d", len(s), maxReference)
	}
	kind, rest, ok := strings.Cut(s, ":")
	switch k := Kind(kind); {
	case ok && k == Layout && strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///"):
		return parseRemote(s, rest[len("//"):])
	case ok && (k == Layout || k == LayoutArchive):
		return parsePath(s, k, rest)
	case ok && k == DockerArchive:
		path, tag, _ := strings.Cut(rest, ":")
		if path == "" {
			return Reference{}, fmt.Errorf("image reference %q: no path", s)
		}
		return Reference{Kind: k, Name: path, Tag: tag}, nil
	case ok && k == Remote:
		return parseRemote(s, strings.TrimPrefix(rest, "//"))
	default:
		return parseRemote(s, strings.TrimPrefix(s, "docker://"))
	}
}

func parsePath(s string, kind Kind, rest string) (Reference, error) {
	src := Reference{Kind: kind, Name: rest}
	if path, digest, ok := strings.Cut(rest, "@sha256:"); ok {
		src.Name, src.Digest = path, "sha256:"+digest
		if !imageref.IsDigest(src.Digest) {
			return Reference{}, fmt.Errorf("image reference %q: %w", s, imageref.ErrDigest)
		}
	} else if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.ContainsAny(rest[i:], `/\`) {
		src.Name, src.Tag = rest[:i], rest[i+1:]
	}
	if src.Name == "" {
		return Reference{}, fmt.Errorf("image reference %q: no path", s)
	}
	return src, nil
}

func parseRemote(s, rest string) (Reference, error) {
	if strings.Contains(rest, "://") {
		return Reference{}, fmt.Errorf("image reference %q: write it without a scheme", s)
	}
	ref, err := imageref.Parse(rest)
	switch {
	case errors.Is(err, imageref.ErrDigest):
		return Reference{}, fmt.Errorf("image reference %q: %w", s, err)
	case err != nil:
		return Reference{}, fmt.Errorf("image reference %q: must be registry/name:tag or registry/name@sha256:…, in lower case, with 2 to 255 characters", s)
	}
	return Reference{Kind: Remote, Name: ref.Name(), Tag: ref.Tag, Digest: ref.Digest}, nil
}

// CutRemote removes the scheme "image:" from a reference. It returns false for a reference
// without this scheme.
func CutRemote(ref string) (name string, ok bool) { return strings.CutPrefix(ref, string(Remote)+":") }

// String returns the reference in the syntax of [ParseReference]. A reference to a registry has no
// scheme, and the default tag is included.
func (s Reference) String() string {
	text := s.Name
	if s.Kind != Remote {
		text = string(s.Kind) + ":" + text
	}
	if s.Tag != "" {
		text += ":" + s.Tag
	}
	if s.Digest != "" {
		text += "@" + s.Digest
	}
	return text
}

// Registry returns the host of a reference to a registry, such as "quay.io" or "127.0.0.1:5000". It
// returns "" for other references.
func (s Reference) Registry() string {
	host, _, _ := strings.Cut(s.Name, "/")
	return host
}

// ByDigest replaces the tag of a reference by a digest.
func ByDigest(ref, digest string) string {
	src, err := ParseReference(ref)
	if err != nil {
		return ref + "@" + digest
	}
	return Reference{Kind: src.Kind, Name: src.Name, Digest: digest}.String()
}
