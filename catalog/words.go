package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Version is a bundle's version, as blang/semver reads it: build metadata does
// not order, prereleases are ordinary versions (resolution.md section 2.5).
type Version = semver.Version

// ParseVersion reads a strict semantic version.
func ParseVersion(s string) (Version, error) {
	v, err := semver.Parse(s)
	if err != nil {
		return Version{}, fmt.Errorf("version %q: %w", s, err)
	}
	return v, nil
}

// CompareVersions orders texts by the semantic version that they are; what is
// none comes first.
func CompareVersions(a, b string) int {
	v, errV := ParseVersion(a)
	w, errW := ParseVersion(b)
	switch {
	case errV == nil && errW == nil:
		return v.Compare(w)
	case errV == nil:
		return 1
	case errW == nil:
		return -1
	default:
		return strings.Compare(a, b)
	}
}

// Range is a set of versions in the syntax that skipRange and
// olm.package.required were defined by. The zero value holds no version.
type Range struct {
	text string
	in   semver.Range
}

// maxRange is the longest range that is read, in bytes. The library keeps a
// function for every comparison.
const maxRange = 64 << 10

// ParseRange reads a blang range: ">=1.0.0 <1.2.0 || 2.x".
func ParseRange(s string) (Range, error) {
	if len(s) > maxRange {
		return Range{}, fmt.Errorf("version range of %d bytes: want at most %d", len(s), maxRange)
	}
	in, err := semver.ParseRange(s)
	if err != nil {
		return Range{}, fmt.Errorf("version range %q: %w", s, err)
	}
	return Range{text: s, in: in}, nil
}

// Contains reports whether v lies in r.
func (r Range) Contains(v Version) bool { return r.in != nil && r.in(v) }

// String returns the text that was parsed.
func (r Range) String() string { return r.text }

// Digest is "sha256:" and 64 hexadecimal digits, or empty.
type Digest string

// ParseDigest checks the form of s.
func ParseDigest(s string) (Digest, error) {
	rest, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(rest) != 2*sha256.Size || strings.ToLower(rest) != rest {
		return "", fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits", s)
	}
	if _, err := hex.DecodeString(rest); err != nil {
		return "", fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits", s)
	}
	return Digest(s), nil
}

// DigestOf returns the sha256 digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// Hex returns the digits alone.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), "sha256:") }

// GVK names an API: group, version and kind.
type GVK struct {
	Group, Version, Kind string
}

// String returns "group/version Kind".
func (g GVK) String() string { return g.Group + "/" + g.Version + " " + g.Kind }

// Compare orders by group, version, kind.
func (g GVK) Compare(h GVK) int {
	return cmp.Or(strings.Compare(g.Group, h.Group), strings.Compare(g.Version, h.Version), strings.Compare(g.Kind, h.Kind))
}

// InstallMode is a set of namespaces that a bundle can watch.
type InstallMode string

// The four install modes of a ClusterServiceVersion.
const (
	AllNamespaces   InstallMode = "AllNamespaces"
	OwnNamespace    InstallMode = "OwnNamespace"
	SingleNamespace InstallMode = "SingleNamespace"
	MultiNamespace  InstallMode = "MultiNamespace"
)

// InstallModes returns the four modes, widest first.
func InstallModes() []InstallMode {
	return []InstallMode{AllNamespaces, MultiNamespace, SingleNamespace, OwnNamespace}
}

// ParseInstallMode reads one of the four names.
func ParseInstallMode(s string) (InstallMode, error) {
	if m := InstallMode(s); slices.Contains(InstallModes(), m) {
		return m, nil
	}
	return "", fmt.Errorf("install mode %q: want one of AllNamespaces, MultiNamespace, SingleNamespace, OwnNamespace", s)
}

// ModeFor returns the install mode that watching these namespaces from the
// install namespace asks for. An empty watch means all namespaces.
func ModeFor(install string, watch []string) InstallMode {
	switch {
	case len(watch) == 0 || slices.Contains(watch, ""):
		return AllNamespaces
	case len(watch) > 1:
		return MultiNamespace
	case watch[0] == install:
		return OwnNamespace
	default:
		return SingleNamespace
	}
}

// Supports reports whether a bundle that supports modes can watch these
// namespaces from the install namespace. Several namespaces that include its
// own need OwnNamespace as well (operator-lifecycle-manager,
// InstallModeSet.Supports). Nil modes mean unknown, which supports everything.
func Supports(modes []InstallMode, install string, watch []string) bool {
	if modes == nil {
		return true
	}
	mode := ModeFor(install, watch)
	if !slices.Contains(modes, mode) {
		return false
	}
	return mode != MultiNamespace || !slices.Contains(watch, install) || slices.Contains(modes, OwnNamespace)
}
