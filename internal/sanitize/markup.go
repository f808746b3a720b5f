package sanitize

import (
	"fmt"
	"net/url"
	"strings"
)

// zeroWidthSpace is the entity of a zero-width space in HTML and Markdown. It splits text that a forge would
// convert to a mention, a reference or a link.
const zeroWidthSpace = "&#8203;"

// Markdown escapes s as plain text for a line of Markdown. It disables markup, HTML, lists,
// headings, links, mentions and references.
func Markdown(s string) string {
	s = strings.TrimSpace(Line(s))
	start := strings.TrimLeft(s, "0123456789") // skip the number of a list item
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune("\\`*_{}[]()+!|~<>&$%^", r), len(s)-i == len(start) && strings.ContainsRune("-=.", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '@', r == '#', isAutolink(s[:i], s[i:]):
			b.WriteRune(r)
			b.WriteString(zeroWidthSpace)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isAutolink reports whether a forge would create a link or reference at the boundary of two texts,
// such as "https" + "://", "www" + "." or "GH" + "-1". rest must not be empty.
func isAutolink(before, rest string) bool {
	after := func(word string) bool {
		return len(before) >= len(word) && strings.EqualFold(before[len(before)-len(word):], word)
	}
	return strings.HasPrefix(rest, "://") || rest[0] == '.' && after("www") || rest[0] == '-' && after("gh")
}

// Code returns s as a code span in Markdown, or "" if s is blank. Backticks in s do not end the
// span.
func Code(s string) string {
	s = strings.TrimSpace(Line(s))
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// HTML escapes s for the content of an HTML element in Markdown.
func HTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;", "@", "@"+zeroWidthSpace, "#", "#"+zeroWidthSpace).Replace(Line(s))
}

// Commit escapes s for a line of a commit message. The result does not mention users, close issues
// or skip CI runs.
func Commit(s string) string {
	s = Line(s)
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("@#[*!", r) || isAutolink(s[:i], s[i:]) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// URL escapes an http or https URL for a Markdown link or an HTML attribute. It returns "" if s is not such a
// URL, is longer than 2,000 bytes, or contains credentials.
func URL(s string) string {
	const longest = 2000
	u, err := url.Parse(s)
	if err != nil || len(s) > longest || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(s, IsInvisible) {
		return ""
	}
	var b strings.Builder
	for _, r := range u.String() {
		if strings.ContainsRune(" ()<>[]\"'`\\|@", r) {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Link returns a Markdown link to a URL. If [URL] rejects the URL, Link returns only the text.
func Link(text, to string) string {
	if to = URL(to); to != "" {
		return "[" + Markdown(text) + "](" + to + ")"
	}
	return Markdown(text)
}
