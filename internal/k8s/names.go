package k8s

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Maximum lengths of names, in bytes.
const (
	MaxLabel     = 63  // of Services and label values
	MaxSubdomain = 253 // of most other names
)

// Fit returns name if it has at most limit bytes, or else its beginning and eight digits of the
// digest of the whole name.
func Fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return appendHash(name, name, limit)
}

// FitWithout is like [Fit], but if name contains part, it replaces part by a dash and appends
// the digits.
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

// appendHash returns the beginning of text and eight digits of the digest of name.
func appendHash(text, name string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(text[:min(len(text), limit-9)], "-._:") + "-" + hex.EncodeToString(sum[:4])
}

// Suffixed returns base-suffix. If base and suffix together are longer than 63 bytes, it
// truncates base so that the result has 63 bytes. As in OLM v1, the dash does not count, so the
// result may have 64 bytes.
func Suffixed(base, suffix string) string {
	if len(base)+len(suffix) > MaxLabel {
		base = base[:MaxLabel-len(suffix)-1]
	}
	return base + "-" + suffix
}
