package diag

import "regexp"

// Redact hides the user names and passwords of URLs in a text, because either may be a token.
// All output passes through it.
func Redact(s string) string {
	return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:/{2,}|^//)[^/?#\s"'<>]*@`).ReplaceAllString(s, "${1}***@")
}
