package diag

import "regexp"

// Redact hides user names and passwords in the URLs of a text; either may be a token. It is applied
// to all output.
func Redact(s string) string {
	return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:/{2,}|^//)[^/?#\s"'<>]*@`).ReplaceAllString(s, "${1}***@")
}
