// Package imageref parses references to container images, adds their default parts, compares them,
// and matches prefixes.
//
// There are three degrees of strictness. [Split] accepts any text, as container runtimes do, because
// references in manifests must not be rejected. [Valid] reports whether a container runtime accepts a
// reference. [Parse] accepts references that can be requested from a registry. quayside uses Parse for its
// own requests.
//
// The package opens no files or connections. It does not support schemes such as "oci:"; see internal/oci. Only
// this package contains the names of Docker's own registry.
//
// Start from [Ref], [Parse] and [Normal].
package imageref

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Names of Docker's registry, the default registry of references.
const (
	dockerHub      = "docker.io"
	dockerAlias    = name.DefaultRegistry // other name, used for requests
	officialPrefix = "library/"           // path of images that are written without a path
)

// dockerNames returns other names of Docker's registry: its first public name, the host of its API, and its
// website, which also serves the API.
func dockerNames() []string {
	return []string{dockerAlias, "registry-1.docker.io", "registry.hub.docker.com"}
}

// segmentPattern matches one segment of the path of a repository.
const segmentPattern = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`

// Ref is a parsed reference. Missing parts are replaced by their defaults.
type Ref struct {
	Registry   string // "quay.io", "127.0.0.1:5000"; default "docker.io"
	Repository string // "org/name", "library/busybox"
	Tag        string // may be empty
	Digest     string // "sha256:…"; may be empty
}

// Split splits a reference into its parts, as container runtimes do, without validating them.
func Split(s string) Ref {
	rest, digest, _ := strings.Cut(s, "@")
	r := Ref{Digest: digest}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, r.Tag = rest[:colon], rest[colon+1:]
	}
	host, repository, found := strings.Cut(rest, "/")
	if !found || !isHost(host) {
		host, repository = dockerHub, rest
	}
	r.Registry, r.Repository = Host(host), repository
	if r.Registry == dockerHub && !strings.Contains(repository, "/") {
		r.Repository = officialPrefix + repository
	}
	return r
}

// isHost reports whether s, the text before the first slash of a reference, is a registry. Otherwise, it is
// part of a path.
func isHost(s string) bool { return strings.ContainsAny(s, ".:") || s == "localhost" }

// Parse parses a reference for a request to a registry. If there is a digest, Parse drops the tag. If there is
// neither a digest nor a tag, the tag is "latest".
func Parse(s string) (Ref, error) {
	ref, err := name.ParseReference(s)
	if err != nil {
		return Ref{}, err
	}
	r := Ref{Registry: Host(ref.Context().RegistryStr()), Repository: ref.Context().RepositoryStr()}
	if d, ok := ref.(name.Digest); !ok {
		r.Tag = ref.Identifier()
	} else if r.Digest = d.DigestStr(); !IsDigest(r.Digest) {
		return Ref{}, ErrDigest
	}
	return r, nil
}

// ErrDigest is the error of [Parse] for a digest that [IsDigest] rejects.
var ErrDigest = errors.New("must have sha256: and 64 hexadecimal digits after the @")

// Name returns the registry and repository, such as "quay.io/org/name".
func (r Ref) Name() string { return r.Registry + "/" + r.Repository }

// String returns the full reference.
func (r Ref) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// Plausible reports whether the parts look like parts of an image reference, without validating them. Use it to
// find references in other text.
func (r Ref) Plausible() bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-/"
	p := r.Repository
	return p != "" && strings.Trim(p, allowed) == "" && !strings.Contains(p, "//") &&
		!strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/") && !strings.ContainsAny(r.Tag+r.Registry, " \t/") &&
		(r.Digest == "" || strings.HasPrefix(r.Digest, "sha256:") || strings.HasPrefix(r.Digest, "sha512:"))
}

// IsDelimiter reports whether r ends a reference in a text: white space, a quote, a comma, a
// semicolon, an equals sign or a bracket.
func IsDelimiter(r rune) bool { return strings.ContainsRune(" \t\n\"',=;()[]{}", r) }

// Valid reports whether a container runtime accepts s as an image reference. A pod with an invalid reference
// never starts.
func Valid(s string) bool { return len(s) <= 512 && referencePattern().MatchString(s) }

var referencePattern = compilePattern(`^(?:` + hostPattern + `)?` + segmentPattern + `(?:/` + segmentPattern + `)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?$`) //nolint:gochecknoglobals // compiled once

const hostPattern = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/`

// IsDigest reports whether s is "sha256:" and 64 hexadecimal digits in lower case. quayside
// verifies only this form of digest.
func IsDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 64 || strings.ToLower(digits) != digits {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// DigestIn returns the sha256 digest in a reference, or "" if it has none.
func DigestIn(ref string) string {
	if digest := Split(ref).Digest; strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return ""
}

// Host returns the usual name of a registry: "docker.io" for all names of Docker's registry.
func Host(registry string) string {
	if registry == dockerAlias {
		return dockerHub
	}
	return registry
}

// IsRepositoryPrefix reports whether s is a registry, optionally with a path: "quay.io", "quay.io/org". It
// returns false for text with a scheme, a tag or a digest.
func IsRepositoryPrefix(s string) bool {
	host, remainder, _ := strings.Cut(s, "/")
	_, err := name.NewRegistry(host, name.StrictValidation)
	return err == nil && !strings.ContainsAny(s, "*@ ") && !strings.Contains(s, "//") && !strings.HasSuffix(s, "/") && !strings.Contains(remainder, ":")
}

// CutPrefix returns the part of ref after prefix, and whether prefix matches. ref is a full reference or a
// repository. prefix is a registry with or without a path ("quay.io", "quay.io/org"). "*.example.com" matches
// every host below that domain, and "*" every host. CutPrefix compares the normal forms of registries, and adds
// "library/" to images of Docker's registry.
func CutPrefix(ref, prefix string) (rest string, ok bool) {
	host, remainder, _ := strings.Cut(ref, "/")
	wanted, path, deeper := strings.Cut(prefix, "/")
	host, wanted = hostOrText(host), hostOrText(wanted)
	suffix, wildcard := strings.CutPrefix(wanted, "*")
	if prefix == "" || host != wanted && !(wildcard && strings.HasSuffix(host, suffix)) {
		return "", false
	}
	if host == dockerHub && remainder != "" && !strings.Contains(remainder, "/") {
		remainder = officialPrefix + remainder
	}
	if !deeper {
		if remainder != "" {
			remainder = "/" + remainder
		}
		return remainder, true
	}
	rest, ok = strings.CutPrefix(remainder, path)
	if !ok || rest != "" && !strings.ContainsRune("/:@", rune(rest[0])) {
		return "", false
	}
	return rest, true
}
