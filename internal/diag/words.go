package diag

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Count returns a number with a noun in singular or plural, such as "1 hop" or "3 hops".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Some joins a list. If the list has more than n items, it joins the first n items and adds the number of
// omitted items: "a, b and 3 more".
func Some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

// Member returns the path of a field of the object at path, such as "spec.catalogs".
func Member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item returns the path of an item of the list at path, such as "spec.catalogs[0]".
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// HasLogin reports whether a URL in the text has a user name or a password.
func HasLogin(s string) bool { return Redact(s) != s }

// Redact hides user names and passwords in the URLs of a text. Either of them may be a token. quayside applies
// Redact to all output.
func Redact(s string) string {
	return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:/{2,}|^//)[^/?#\s"'<>]*@`).ReplaceAllString(s, "${1}***@")
}
