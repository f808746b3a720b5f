package yamlnode

import "strings"

// IsDNS1123Label reports whether s can name a namespace.
func IsDNS1123Label(s string) bool { return len(s) <= 63 && isDNSPart(s) }

// IsDNS1123Subdomain reports whether s can name most other objects.
func IsDNS1123Subdomain(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !isDNSPart(part) {
			return false
		}
	}
	return len(s) <= 253
}

func isDNSPart(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
