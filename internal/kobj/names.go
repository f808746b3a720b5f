package kobj

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// How long names may be, in bytes.
const (
	MaxLabel     = 63  // of Services and label values
	MaxSubdomain = 253 // of most other names
)

// Fit returns name if it has at most limit bytes, else its beginning and eight
// digits of the digest of the whole name. It never depends on content.
func Fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return hashed(name, name, limit)
}

// FitWithout is as Fit for a name in which part stands for nothing else: one that
// contains it has a dash in its place, and digits as well.
func FitWithout(part, name string, limit int) string {
	plain := name
	for strings.Contains(plain, part) {
		plain = strings.ReplaceAll(plain, part, "-")
	}
	if plain == name {
		return Fit(name, limit)
	}
	return hashed(plain, name, limit)
}

// hashed returns the beginning of text and eight digits of the digest of name.
func hashed(text, name string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(text[:min(len(text), limit-9)], "-._:") + "-" + hex.EncodeToString(sum[:4])
}

// Suffixed returns base-suffix, the base cut where the two are longer than 63
// bytes, as OLM v1 does. Where they have exactly 63 the name has 64.
func Suffixed(base, suffix string) string {
	if len(base)+len(suffix) > MaxLabel {
		base = base[:MaxLabel-len(suffix)-1]
	}
	return base + "-" + suffix
}
