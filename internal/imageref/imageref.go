// Package imageref parses references to container images, adds their default parts, compares
// them, and matches prefixes.
//
// It has three degrees of strictness. [Split] accepts any text, as container runtimes do:
// references in manifests are not rejected. [Valid] reports whether a container runtime
// accepts a reference. [Parse] accepts references that can be fetched from a registry;
// quayside uses it for its own fetches.
//
// The package opens no files or connections and supports no schemes ("oci:", "docker://"):
// see package registry. Only this package contains the names of Docker's own registry.
//
// Start from [Ref], [Parse] and [Normal].
package imageref

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Docker's registry is the default of a reference without a registry.
const (
	dockerHub      = "docker.io"
	dockerAlias    = name.DefaultRegistry // alias, used for requests
	officialPrefix = "library/"           // path of images without a path
)

// dockerNames returns the other names of Docker's registry: its first public name, the host
// of its API, and the web site, which also serves the API.
func dockerNames() []string {
	return []string{dockerAlias, "registry-1.docker.io", "registry.hub.docker.com"}
}

// segmentPattern is the pattern of one segment of a repository's path.
const segmentPattern = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`

// Ref is a parsed reference, with default parts added.
type Ref struct {
	Registry   string // "quay.io", "127.0.0.1:5000"; by default "docker.io"
	Repository string // "org/name", "library/busybox"
	Tag        string // may be empty
	Digest     string // "sha256:…"; may be empty
}

// Split splits a reference into its parts as container runtimes do. It does not check the
// parts.
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

// isHost reports whether s, the text before the first slash, is a registry.
func isHost(s string) bool { return strings.ContainsAny(s, ".:") || s == "localhost" }

// Parse parses a reference for a request to a registry. It drops the tag before a digest.
// Without tag and digest, the tag is latest.
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

// Name returns the repository with its registry: "quay.io/org/name".
func (r Ref) Name() string { return r.Registry + "/" + r.Repository }

// String returns the reference in full.
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

// Plausible reports whether the parts look like those of a reference. It distinguishes images from
// other text, but does not validate them.
func (r Ref) Plausible() bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-/"
	p := r.Repository
	return p != "" && strings.Trim(p, allowed) == "" && !strings.Contains(p, "//") &&
		!strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/") && !strings.ContainsAny(r.Tag+r.Registry, " \t/") &&
		(r.Digest == "" || strings.HasPrefix(r.Digest, "sha256:") || strings.HasPrefix(r.Digest, "sha512:"))
}

// IsDelimiter reports whether r ends a reference within a text: white space, a quote, a comma, a
// semicolon, an equals sign or a bracket.
func IsDelimiter(r rune) bool { return strings.ContainsRune(" \t\n\"',=;()[]{}", r) }

// Valid reports whether a container runtime accepts s as a reference. A pod with any other
// reference never starts.
func Valid(s string) bool { return len(s) <= 512 && referencePattern().MatchString(s) }

var referencePattern = compilePattern(`^(?:` + hostPattern + `)?` + segmentPattern + `(?:/` + segmentPattern + `)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?$`) //nolint:gochecknoglobals // compiled once

const hostPattern = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/`

// IsDigest reports whether s is "sha256:" and 64 hexadecimal digits in lower
// case, the only form of digest that quayside verifies.
func IsDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 64 || strings.ToLower(digits) != digits {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// DigestIn returns the sha256 digest of a reference, or "".
func DigestIn(ref string) string {
	if digest := Split(ref).Digest; strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return ""
}

// Host returns a registry's usual name: "docker.io" for Docker's alias.
func Host(registry string) string {
	if registry == dockerAlias {
		return dockerHub
	}
	return registry
}

// IsRepositoryPrefix reports whether s is a registry, or a registry and a path, without scheme, tag or
// digest: "quay.io", "quay.io/org".
func IsRepositoryPrefix(s string) bool {
	host, remainder, _ := strings.Cut(s, "/")
	_, err := name.NewRegistry(host, name.StrictValidation)
	return err == nil && !strings.ContainsAny(s, "*@ ") && !strings.Contains(s, "//") && !strings.HasSuffix(s, "/") && !strings.Contains(remainder, ":")
}

// CutPrefix returns the rest of a full reference or a repository after a prefix, and reports
// whether the prefix matches. The prefix is a registry, or a registry and a path ("quay.io",
// "quay.io/org"); "*.example.com" matches every host below that domain, "*" every host.
// Registries are compared in normal form, and images of Docker's registry with library/.
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
