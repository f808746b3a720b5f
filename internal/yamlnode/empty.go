package yamlnode

import (
	"bytes"
	"fmt"
	"slices"
)

// MaxDocuments is how many documents one input may have; each costs the parser
// something, and an empty one is only three bytes.
const MaxDocuments = 100_000

// Condense returns YAML without the empty documents between two markers, for
// the price of looking at each line: the markers of all but the first of them
// turn into blanks, so that everything else stays at its place. data is not
// modified. More than [MaxDocuments] that are left are an error.
func Condense(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("---")) && !bytes.Contains(data, []byte("\n---")) && !bytes.Contains(data, []byte("\n...")) {
		return data, nil
	}
	out := data
	documents, at, empty := 1, 0, false // whether nothing stands since the last marker
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
		return nil, fmt.Errorf("more than the %d documents allowed", MaxDocuments)
	}
	return out, nil
}

// IsEmpty reports whether a document holds nothing but blanks, comments and
// markers, without parsing it.
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

// cutMarker cuts a marker of documents from the beginning of a line; without
// one the line is returned as it is.
func cutMarker(line []byte, marker string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) < 0 {
		return line, false
	}
	return rest, true
}

// isBlank reports whether a line, or what follows its marker, holds nothing
// but blanks and a comment. A lone \r in it, which the parser takes for the end
// of a line, makes it hold something.
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
		if c < ' ' && c != '\t' || c >= 0x7f { // among which are line breaks for the parser
			return false
		}
	}
	return true
}
