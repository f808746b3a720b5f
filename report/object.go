package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// object returns the object at a path of keys, nil where there is none.
func object(o map[string]any, path ...string) map[string]any {
	for _, key := range path {
		o, _ = o[key].(map[string]any)
	}
	return o
}

// text returns the string at a path of keys, "" where there is none.
func text(o map[string]any, path ...string) string {
	s, _ := object(o, path[:len(path)-1]...)[path[len(path)-1]].(string)
	return s
}

// items returns the objects of the list at a path of keys.
func items(o map[string]any, path ...string) []map[string]any {
	list, _ := object(o, path[:len(path)-1]...)[path[len(path)-1]].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, v := range list {
		if item, ok := v.(map[string]any); ok {
			out = append(out, item)
		}
	}
	return out
}

// groupKind returns "group/Kind", "/Kind" for the core group.
func groupKind(o map[string]any) string {
	return groupOf(text(o, "apiVersion")) + "/" + text(o, "kind")
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
