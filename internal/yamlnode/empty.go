package yamlnode

import (
	"bytes"
	"fmt"
	"slices"
)

// MaxDocuments is the maximum number of documents in one input. An empty document has only three
// bytes, but costs the parser as much as another.
const MaxDocuments = 100_000

// condense removes empty documents. If there is no content between document markers, it keeps the
// first marker and replaces the others by spaces. All other text keeps its position. data is not
// modified. More than [MaxDocuments] remaining documents are an error.
func condense(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("---")) && !bytes.Contains(data, []byte("\n---")) && !bytes.Contains(data, []byte("\n...")) {
		return data, nil
	}
	out := data
	documents, at, empty := 1, 0, false // empty: there is no content since the last marker
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

// IsEmpty reports whether a document contains only white space, comments and markers. It does not
// parse the document.
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

// cutMarker returns the rest of a line after a document marker. If the line does not begin with the
// marker, it returns the line and false.
func cutMarker(line []byte, marker string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) < 0 {
		return line, false
	}
	return rest, true
}

// isBlank reports whether a line, or its rest after a marker, contains only white space and a
// comment. It returns false for a \r within the line, which the parser treats as a line break.
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
		if c < ' ' && c != '\t' || c >= 0x7f { // includes characters that the parser treats as line breaks
			return false
		}
	}
	return true
}
