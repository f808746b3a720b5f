// Package imageref reads references to container images: it takes them apart,
// fills in what may be left out, compares them, and says where a prefix ends.
//
// There are three degrees of strictness, for there are three readers of a
// reference. [Split] takes apart whatever it gets, as what runs containers
// does: text that stands in a manifest is not ours to refuse. [Valid] says
// whether a container runtime would take it. [Parse] says whether a registry
// can be asked for it; this is what quayside itself fetches.
//
// The package opens nothing and knows no schemes ("oci:", "docker://"): those
// are for package registry. It is the one place that knows what Docker's own
// registry is called.
//
// Start from [Ref], [Parse] and [Normal].
package imageref

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Docker's registry is the one that a reference without a registry means.
const (
	dockerHub   = "docker.io"
	dockerAlias = name.DefaultRegistry // its other name, under which it is asked
	official    = "library/"           // where the images without a path lie there
)

// dockerNames are the registry's other names: the one that its users were told
// first, the machine that answers, and the site, which answers too.
func dockerNames() []string {
	return []string{dockerAlias, "registry-1.docker.io", "registry.hub.docker.com"}
}

// pathPart is what may stand between the slashes of a repository's path.
const pathPart = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`

// Ref is a reference, taken apart and filled up.
type Ref struct {
	Registry   string // "quay.io", "127.0.0.1:5000"; "docker.io" where none is given
	Repository string // "org/name", "library/busybox"
	Tag        string // may be empty
	Digest     string // "sha256:…"; may be empty
}

// Split takes a reference apart as container runtimes do. It does not check
// the parts.
func Split(s string) Ref {
	rest, digest, _ := strings.Cut(s, "@")
	r := Ref{Digest: digest}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, r.Tag = rest[:colon], rest[colon+1:]
	}
	host, under, found := strings.Cut(rest, "/")
	if !found || !isHost(host) {
		host, under = dockerHub, rest
	}
	r.Registry, r.Repository = Host(host), under
	if r.Registry == dockerHub && !strings.Contains(under, "/") {
		r.Repository = official + under
	}
	return r
}

// isHost reports whether what stands before the first slash is a registry.
func isHost(s string) bool { return strings.ContainsAny(s, ".:") || s == "localhost" }

// Parse takes a reference apart that a registry is to be asked for. A digest
// decides alone: a tag before it is dropped. Without either, the tag is latest.
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

// ErrDigest is what [Parse] says of a digest that is not of the form of
// [IsDigest].
var ErrDigest = errors.New("want sha256: and 64 hexadecimal digits after the @")

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

// Plausible reports whether the parts look like those of a reference. It is
// for telling images from other text, not for checking.
func (r Ref) Plausible() bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-/"
	p := r.Repository
	return p != "" && strings.Trim(p, allowed) == "" && !strings.Contains(p, "//") &&
		!strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/") && !strings.ContainsAny(r.Tag+r.Registry, " \t/") &&
		(r.Digest == "" || strings.HasPrefix(r.Digest, "sha256:") || strings.HasPrefix(r.Digest, "sha512:"))
}

// Ends reports whether r ends a reference that stands in a text: a blank, a quote,
// a comma, a sign of equality or a bracket.
func Ends(r rune) bool { return strings.ContainsRune(" \t\n\"',=;()[]{}", r) }

// Valid reports whether a container runtime can read s as a reference: a pod
// with another one never starts.
func Valid(s string) bool { return len(s) <= 512 && valid().MatchString(s) }

var valid = pattern(`^(?:` + host + `)?` + pathPart + `(?:/` + pathPart + `)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?$`) //nolint:gochecknoglobals // compiled once

const host = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/`

// IsDigest reports whether s is "sha256:" and 64 hexadecimal digits in lower
// case, the only digests that are verified.
func IsDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 64 || strings.ToLower(digits) != digits {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// DigestIn returns the digest of a reference by digest, else "".
func DigestIn(ref string) string {
	if digest := Split(ref).Digest; strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return ""
}

// Host returns a registry's name as users write it: Docker's goes by two.
func Host(registry string) string {
	if registry == dockerAlias {
		return dockerHub
	}
	return registry
}

// IsPlace reports whether s is a registry, or a registry and a path, without a
// scheme, a tag and a digest: "quay.io", "quay.io/org".
func IsPlace(s string) bool {
	host, under, _ := strings.Cut(s, "/")
	_, err := name.NewRegistry(host, name.StrictValidation)
	return err == nil && !strings.ContainsAny(s, "*@ ") && !strings.Contains(s, "//") && !strings.HasSuffix(s, "/") && !strings.Contains(under, ":")
}

// Below returns what follows a prefix in a reference in full, or in a
// repository, and reports whether it lies there: the prefix is a registry, or a
// registry and a path ("quay.io", "quay.io/org"), and "*.example.com" is every
// host of that domain, "*" every host. Registries are compared as [Normal] has
// them, and of Docker's the path with library/ is the one that counts.
func Below(ref, prefix string) (rest string, ok bool) {
	host, under, _ := strings.Cut(ref, "/")
	wanted, path, deeper := strings.Cut(prefix, "/")
	host, wanted = hostOrText(host), hostOrText(wanted)
	suffix, wild := strings.CutPrefix(wanted, "*")
	if prefix == "" || host != wanted && !(wild && strings.HasSuffix(host, suffix)) {
		return "", false
	}
	if host == dockerHub && under != "" && !strings.Contains(under, "/") {
		under = official + under
	}
	if !deeper {
		if under != "" {
			under = "/" + under
		}
		return under, true
	}
	rest, ok = strings.CutPrefix(under, path)
	if !ok || rest != "" && !strings.ContainsRune("/:@", rune(rest[0])) {
		return "", false
	}
	return rest, true
}
