package k8s

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Maximum lengths of names in bytes.
const (
	MaxLabel     = 63  // names of Services, and label values
	MaxSubdomain = 253 // most other names
)

// Fit shortens name to at most limit bytes. A shortened name consists of the beginning of name, and eight
// digits of a hash of the whole name. A name within the limit is returned unchanged.
func Fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return appendHash(name, name, limit)
}

// FitWithout is like [Fit], but first replaces each occurrence of part in name by a dash. The result then
// always ends with the digits of the hash.
func FitWithout(part, name string, limit int) string {
	plain := name
	for strings.Contains(plain, part) {
		plain = strings.ReplaceAll(plain, part, "-")
	}
	if plain == name {
		return Fit(name, limit)
	}
	return appendHash(plain, name, limit)
}

// appendHash cuts text and appends eight digits of a hash of name. The result has at most limit bytes.
func appendHash(text, name string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(text[:min(len(text), limit-9)], "-._:") + "-" + hex.EncodeToString(sum[:4])
}

// Suffixed returns base, a dash and suffix. As in OLM v1, if base and suffix (without the dash) exceed 63
// bytes, base is cut so that the result has 63 bytes. A result that was not cut has up to 64 bytes.
func Suffixed(base, suffix string) string {
	if len(base)+len(suffix) > MaxLabel {
		base = base[:MaxLabel-len(suffix)-1]
	}
	return base + "-" + suffix
}
