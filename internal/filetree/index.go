package filetree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Index is the name of the file, at the root of a written tree, that lists
// the program's own files: "path" for a generated file, "path sha256" for a
// starter, whose digest tells whether the user has changed it.
const Index = ".quayside-files"

const indexHeader = "# Files that quayside wrote. It removes those it no longer renders and leaves all others alone.\n"

// index is the parsed form: path → "" or the digest of a starter.
type index map[string]string

func formatIndex(t *Tree) []byte {
	var b bytes.Buffer
	b.WriteString(indexHeader)
	for name, data := range t.All() {
		b.WriteString(name)
		if t.starters[name] {
			b.WriteString(" " + sum(data))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// parseIndex reads an index. A nil data is the empty index.
func parseIndex(data []byte) (index, error) {
	x := index{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, digest := line, ""
		if at := strings.LastIndexByte(line, ' '); at >= 0 && len(line)-at-1 == 2*sha256.Size {
			name, digest = line[:at], line[at+1:]
		}
		if !fs.ValidPath(name) || name == Index {
			return nil, fmt.Errorf("%s:%d: %q is not a path of this tree", Index, i+1, name)
		}
		x[name] = digest
	}
	return x, nil
}

// A Kind says how a file on disk differs from what is wanted.
type Kind string

// The kinds of change.
const (
	Missing Kind = "missing" // wanted, not there
	Differs Kind = "differs" // there with other content
	Extra   Kind = "extra"   // written by an earlier run, no longer wanted
)

// Sign returns "+", "~" or "-".
func (k Kind) Sign() string {
	switch k {
	case Missing:
		return "+"
	case Extra:
		return "-"
	default:
		return "~"
	}
}

// Change is one file that a Write would touch.
type Change struct {
	Path string `json:"path"`
	Kind Kind   `json:"change"`
}

// Diff returns what Write would change to make want of have, by path. Files of
// have that its own index does not list are the user's, and are not compared;
// nor is a starter that stands already. A have without an index, that is not
// the result of a Write, is compared file by file in both directions.
func Diff(have, want *Tree) []Change {
	data, indexed := have.files[Index]
	own, err := parseIndex(data)
	if err != nil {
		own, indexed = index{}, true
	}
	changes := map[string]Kind{}
	for name, data := range want.files {
		got, ok := have.files[name]
		switch {
		case !ok:
			changes[name] = Missing
		case !want.starters[name] && !bytes.Equal(got, data):
			changes[name] = Differs
		}
	}
	for name, data := range have.files {
		if _, wanted := want.files[name]; wanted || name == Index {
			continue
		}
		digest, listed := own[name]
		if !indexed || listed && (digest == "" || digest == sum(data)) {
			changes[name] = Extra
		}
	}
	if indexed && len(changes) == 0 && !bytes.Equal(data, formatIndex(want)) {
		changes[Index] = Differs
	}
	out := make([]Change, 0, len(changes))
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		out = append(out, Change{Path: name, Kind: changes[name]})
	}
	return out
}
