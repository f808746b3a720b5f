package report

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/kobj"
)

// groupKind returns "group/Kind", "/Kind" for the core group.
func groupKind(o map[string]any) string {
	return groupOf(kobj.Text(o, "apiVersion")) + "/" + kobj.Text(o, "kind")
}

func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// unseen reports whether a character is white space, or nothing that is printed:
// a control character, or one that turns the direction of writing.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Zl, unicode.Zp)
}

const maxMessage = 400 // bytes

// oneLine returns s on one line and without what would have a terminal do
// something. It comes from the cluster and may hold anything.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), unseen), " ")
}

// short returns s on one line and at most maxMessage bytes long.
func short(s string) string {
	s = oneLine(s)
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
