package diag

import "regexp"

// Redact hides the names and passwords that URLs in a text hold before the @,
// for a token may be either. It is the one place that does, for all that is
// printed.
func Redact(s string) string {
	return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:/{2,}|^//)[^/?#\s"'<>]*@`).ReplaceAllString(s, "${1}***@")
}
