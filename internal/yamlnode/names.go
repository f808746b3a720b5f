package yamlnode

import "regexp"

// IsDNS1123Label reports whether s can name a namespace.
func IsDNS1123Label(s string) bool {
	return len(s) <= 63 && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(s)
}

// IsDNS1123Subdomain reports whether s can name most other objects.
func IsDNS1123Subdomain(s string) bool {
	return len(s) <= 253 && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(s)
}
