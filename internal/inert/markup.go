package inert

import (
	"fmt"
	"net/url"
	"strings"
)

// apart is put into what a forge would take for a mention, a reference or an
// address: a blank of no width, as HTML and Markdown write it.
const apart = "&#8203;"

// Markdown returns s as text in a line of Markdown: no markup, no HTML, no
// list or heading of its own, no link, and nobody and nothing is mentioned.
func Markdown(s string) string {
	s = strings.TrimSpace(Line(s))
	start := strings.TrimLeft(s, "0123456789") // of what is no number of a list
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune("\\`*_{}[]()+!|~<>&$%^", r), len(s)-i == len(start) && strings.ContainsRune("-=.", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '@', r == '#', linking(s[:i], s[i:]):
			b.WriteRune(r)
			b.WriteString(apart)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// linking reports whether what follows before, a character and more, makes an
// address or a reference of it: "https://", "www.", "GH-1".
func linking(before, rest string) bool {
	after := func(word string) bool {
		return len(before) >= len(word) && strings.EqualFold(before[len(before)-len(word):], word)
	}
	return strings.HasPrefix(rest, "://") || rest[0] == '.' && after("www") || rest[0] == '-' && after("gh")
}

// Code returns s as a code span of Markdown that s cannot leave, "" where
// nothing is to be shown.
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

// HTML returns s for the inside of an HTML element in Markdown.
func HTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;", "@", "@"+apart, "#", "#"+apart).Replace(Line(s))
}

// Commit returns s for a line of a commit's message: it mentions nobody, closes
// nothing, and tells no CI system to stay away.
func Commit(s string) string {
	s = Line(s)
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("@#[*!", r) || linking(s[:i], s[i:]) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// URL returns the address of a page that s is, so that neither a link of Markdown
// nor an attribute of HTML ends within it; "" where s is none, or holds
// credentials.
func URL(s string) string {
	const longest = 2000
	u, err := url.Parse(s)
	if err != nil || len(s) > longest || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(s, Unseen) {
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

// Link returns a link of Markdown to an address, of which URL says that it is
// one: else the text alone.
func Link(text, to string) string {
	if to = URL(to); to != "" {
		return "[" + Markdown(text) + "](" + to + ")"
	}
	return Markdown(text)
}
