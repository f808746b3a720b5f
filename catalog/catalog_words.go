package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// Digest is "sha256:" followed by 64 hexadecimal digits, or empty.
type Digest string

// Short returns the digest shortened to 12 hexadecimal digits, for display.
func (d Digest) Short() string {
	if rest, ok := strings.CutPrefix(string(d), "sha256:"); ok && len(rest) > 12 {
		return "sha256:" + rest[:12]
	}
	return string(d)
}

// ParseDigest returns s as a Digest. It returns an error if s is not a complete sha256 digest.
func ParseDigest(s string) (Digest, error) {
	if !imageref.IsDigest(s) {
		return "", fmt.Errorf("digest %q: must be sha256: and 64 hexadecimal digits", s)
	}
	return Digest(s), nil
}

// DigestOf returns the sha256 digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// Hex returns the digest without "sha256:".
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), "sha256:") }

// InstallMode is an install mode of OLM. It determines the namespaces that an operator can watch.
type InstallMode string

// The install modes of a ClusterServiceVersion.
const (
	AllNamespaces   InstallMode = "AllNamespaces"
	OwnNamespace    InstallMode = "OwnNamespace"
	SingleNamespace InstallMode = "SingleNamespace"
	MultiNamespace  InstallMode = "MultiNamespace"
)

// InstallModes returns the four modes, from the most to the fewest namespaces.
func InstallModes() []InstallMode {
	return []InstallMode{AllNamespaces, MultiNamespace, SingleNamespace, OwnNamespace}
}

// ParseInstallMode returns the install mode with the name s, or an error if s is not one of the
// four.
func ParseInstallMode(s string) (InstallMode, error) {
	if m := InstallMode(s); slices.Contains(InstallModes(), m) {
		return m, nil
	}
	return "", fmt.Errorf("install mode %q: must be one of AllNamespaces, MultiNamespace, SingleNamespace, OwnNamespace", s)
}

// ModeFor returns the install mode that an operator needs to watch the given namespaces. install is the
// operator's own namespace. An empty list means that the operator watches all namespaces.
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

// SupportsNamespaces reports whether a bundle with the given install modes can watch the given namespaces.
// install is its own namespace. To watch its own and other namespaces, a bundle must also support OwnNamespace
// (operator-lifecycle-manager, InstallModeSet.Supports). Nil modes are unknown: the result is true.
func SupportsNamespaces(modes []InstallMode, install string, watch []string) bool {
	if modes == nil {
		return true
	}
	mode := ModeFor(install, watch)
	if !slices.Contains(modes, mode) {
		return false
	}
	return mode != MultiNamespace || !slices.Contains(watch, install) || slices.Contains(modes, OwnNamespace)
}
