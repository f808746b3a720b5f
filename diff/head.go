package diff

import (
	"bytes"
	"strings"
)

// head is what tells a definition apart, without the schemas that make it large.
type head struct {
	ref    Ref
	serves key
	labels map[string]string // those of quayside
}

// readHead reads the head of a file that holds one definition in the plain
// block style that quayside writes. ok is false for anything else: such a file
// has to be parsed. Definitions are nine tenths of a tree, and most are the
// same on both sides of a diff.
func readHead(data []byte) (h *head, ok bool) {
	if !bytes.HasPrefix(data, []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")) ||
		bytes.Contains(data, []byte("\n---")) || bytes.Contains(data, []byte("\n...")) {
		return nil, false
	}
	h = &head{ref: Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, labels: map[string]string{}}
	var at [3]string // the keys that the current line lies below
	for line := range bytes.Lines(data) {
		depth, key, value, plain := splitLine(strings.TrimSuffix(string(line), "\n"))
		if depth > 2 || key == "" {
			continue
		}
		if !plain {
			return nil, false
		}
		at[depth] = key
		switch {
		case depth == 1 && at[0] == "metadata" && key == "name":
			h.ref.Name = value
		case depth == 1 && at[0] == "metadata" && key == "namespace":
			h.ref.Namespace = value
		case depth == 2 && at[0] == "metadata" && at[1] == "labels" && strings.HasPrefix(key, "quayside.dev/"):
			h.labels[key] = value
		case depth == 1 && at[0] == "spec" && key == "group":
			h.serves.group = value
		case depth == 2 && at[0] == "spec" && at[1] == "names" && key == "kind":
			h.serves.kind = value
		}
	}
	return h, h.ref.Name != "" && h.serves.group != "" && h.serves.kind != ""
}

// splitLine takes "  key: value" apart. depth counts steps of two blanks; lines
// that are deeper, and those of lists, have no key. plain is false for a value
// that is more than a plain word at a key that matters.
func splitLine(line string) (depth int, key, value string, plain bool) {
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	if rest == "" || indent > 4 || indent%2 != 0 || rest[0] == '-' || rest[0] == '#' {
		return 3, "", "", true
	}
	key, value, ok := strings.Cut(rest, ": ")
	if !ok {
		if key, ok = strings.CutSuffix(rest, ":"); !ok {
			return 3, "", "", true // the continuation of a text
		}
	}
	const word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+"
	matters := key == "name" || key == "namespace" || key == "group" || key == "kind" || strings.HasPrefix(key, "quayside.dev/") ||
		key == "metadata" || key == "spec" || key == "labels" || key == "names"
	return indent / 2, key, value, !matters || strings.Trim(value, word) == ""
}
