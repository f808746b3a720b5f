package yamlnode

import (
	"bytes"
	"fmt"
	"slices"
)

// MaxDocuments is the maximum number of documents in one input. Each has a cost for the
// parser, and an empty one has only three bytes.
const MaxDocuments = 100_000

// condense returns YAML without the empty documents between two markers, at the cost of one
// scan of the lines. It replaces all but the first of these markers with blanks, so that all
// other text keeps its position. It does not modify data. More than [MaxDocuments] remaining
// documents are an error.
func condense(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("---")) && !bytes.Contains(data, []byte("\n---")) && !bytes.Contains(data, []byte("\n...")) {
		return data, nil
	}
	out := data
	documents, at, empty := 1, 0, false // empty: nothing since the last marker
	for line := range bytes.Lines(data) {
		switch rest, begins := cutMarker(line, "---"); {
		case begins && empty && isBlank(rest):
			if &out[0] == &data[0] {
				out = slices.Clone(data)
			}
			copy(out[at:], "   ")
		case begins:
			documents++
			empty = isBlank(rest)
		case isBlank(line):
		default:
			if _, ends := cutMarker(line, "..."); ends {
				documents++
			}
			empty = false
		}
		at += len(line)
	}
	if documents > MaxDocuments+1 {
		return nil, fmt.Errorf("more than %d documents", MaxDocuments)
	}
	return out, nil
}

// IsEmpty reports whether a document has only blanks, comments and markers, without parsing
// it.
func IsEmpty(document []byte) bool {
	for line := range bytes.Lines(document) {
		rest, begins := cutMarker(line, "---")
		if !begins {
			rest, _ = cutMarker(line, "...")
		}
		if !isBlank(rest) {
			return false
		}
	}
	return true
}

// cutMarker cuts a document marker from the start of a line. Without a marker it returns
// the whole line and false.
func cutMarker(line []byte, marker string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) < 0 {
		return line, false
	}
	return rest, true
}

// isBlank reports whether a line, or its rest after a marker, has only blanks and a comment. It
// returns false for a lone \r, which the parser treats as a line break.
func isBlank(line []byte) bool {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	line = bytes.TrimLeft(line, " ")
	if len(line) == 0 {
		return true
	}
	if line[0] != '#' {
		return false
	}
	for _, c := range line {
		if c < ' ' && c != '\t' || c >= 0x7f { // includes line breaks of the parser
			return false
		}
	}
	return true
}
