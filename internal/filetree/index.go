package filetree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
)

// Index is the base name of the files that list the program's own files. A written tree
// has one in its root and in each directory with such files; it lists only the files of
// its own directory. A line is "name sha256"; lines that start with # are comments.
//
// Earlier versions wrote one index at the root: "path" for a generated file,
// "path sha256" for a file handed over to the user.
const Index = ".quayside-files"

const (
	indexHeader = "# Files that quayside wrote. It removes those it no longer renders and leaves all others alone.\n"
	rootMark    = "# Root of the tree." // a directory with this mark is another tree
)

// entry is the entry of a file in an index.
type entry struct {
	digest     string // "" if unknown
	handedOver bool   // handed over by an earlier version: the user's file once it is edited
}

// edited reports whether data differs from the content recorded by Write.
func (e entry) edited(data []byte) bool { return e.digest != "" && e.digest != sum(data) }

// index maps paths to the entries of all indices of a tree, the indices included.
type index map[string]entry

func isIndex(name string) bool { return path.Base(name) == Index }

// withIndexes returns a copy of the tree with its indices.
func (t *Tree) withIndexes() *Tree {
	lists := map[string][]byte{".": []byte(indexHeader + rootMark + "\n")}
	for name, data := range t.All() {
		if isIndex(name) {
			continue
		}
		dir := path.Dir(name)
		if lists[dir] == nil {
			lists[dir] = []byte(indexHeader)
		}
		lists[dir] = append(lists[dir], entryOf(path.Base(name), data)...)
	}
	out := &Tree{files: maps.Clone(t.files)}
	for dir, list := range lists {
		out.files[path.Join(dir, Index)] = list
	}
	return out
}

// entryOf returns the index lines of a file. Two constant lines surround the line with the
// digest. They let Git merge changes of neighbouring files.
func entryOf(base string, data []byte) string {
	return "## " + base + "\n" + base + " " + sum(data) + "\n#\n"
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// indexEntries returns the entries of the tree's indices.
func (t *Tree) indexEntries() (index, error) {
	return readIndexes(maps.Keys(t.files), func(name string) ([]byte, error) { return t.files[name], nil })
}

// readIndexes returns the entries of the indices among names. A subdirectory with a root
// index is another tree and belongs to the user.
func readIndexes(names iter.Seq[string], read func(name string) ([]byte, error)) (index, error) {
	var dirs, others []string
	for name := range names {
		if isIndex(name) {
			dirs = append(dirs, path.Dir(name))
		}
	}
	slices.Sort(dirs) // a directory before those in it
	own := index{}
	for _, dir := range dirs {
		if slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(dir, other+"/") }) {
			continue
		}
		file := path.Join(dir, Index)
		data, err := read(file)
		if err != nil {
			return nil, err
		}
		list, root, err := parseIndex(file, data)
		if root && dir != "." {
			others = append(others, dir)
			continue
		}
		if err != nil {
			return nil, err
		}
		own[file] = entry{}
		for name, e := range list {
			own[path.Join(dir, name)] = e
		}
	}
	return own, nil
}

// parseIndex parses an index and reports whether it is a root index. It drops the digests
// inside a merge conflict, because the files themselves may also be merged.
func parseIndex(file string, data []byte) (list index, root bool, err error) {
	list = index{}
	conflict := false
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "<<<<<<< "), strings.HasPrefix(line, ">>>>>>> "):
			conflict = line[0] == '<'
			continue
		case conflict && (line == "=======" || strings.HasPrefix(line, "||||||| ")), line == "":
			continue
		case line[0] == '#':
			root = root || line == rootMark
			continue
		}
		e := entry{}
		name := line
		if at := len(name) - 2*sha256.Size - 1; at > 0 && name[at] == ' ' {
			name, e.digest = name[:at], name[at+1:]
		}
		old := e.digest == "" || strings.Contains(name, "/")
		root = root || old
		if !fs.ValidPath(name) || name == "." || isIndex(name) {
			return nil, root, fmt.Errorf("%s:%d: %q is not a valid path", file, i+1, name)
		}
		e.handedOver = e.digest != "" && old
		if before, twice := list[name]; !e.handedOver && (conflict || twice && before != e) {
			e.digest = ""
		}
		list[name] = e
	}
	return list, root, nil
}

// state is the relation of a file to the wanted tree.
type state int

const (
	userOwned state = iota // the user's, kept
	claimed                // the user's, but the wanted tree has the same path
	edited                 // the program's, edited since
	stale                  // the program's, to be replaced or removed
	same                   // the program's, equal to the wanted file
)

// stateOf returns the state of a file with content data. data may be nil for a file that
// is neither listed nor wanted.
func (x index) stateOf(name string, data []byte, want *Tree) state {
	e, listed := x[name]
	wanted, keeps := want.files[name]
	switch {
	case !listed && !keeps, e.handedOver && !keeps && e.edited(data):
		return userOwned
	case keeps && bytes.Equal(data, wanted):
		return same
	case !listed:
		return claimed
	case e.edited(data):
		return edited
	default:
		return stale
	}
}

// Kind is the kind of difference between a file on disk and the wanted file.
type Kind string

// The kinds of change.
const (
	Missing  Kind = "missing" // wanted, not on disk
	Modified Kind = "differs" // on disk with different content
	Extra    Kind = "extra"   // written by an earlier run, no longer wanted
)

// Sign returns "+" for Missing, "-" for Extra and "~" otherwise.
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

// FileChange is a file that Write would change.
type FileChange struct {
	Path string `json:"path"`
	Kind Kind   `json:"change"`
}

// Diff returns the changes by Write from have to want, sorted by path. It ignores the
// user's files: those of have that are neither in its indices nor in want. The result
// includes an index only if no other file of its directory changes. If have has no index,
// Write did not write it, and Diff compares all files in both directions.
func Diff(have, want *Tree) []FileChange {
	own, err := have.indexEntries()
	written := err != nil || len(own) > 0
	if written {
		want = want.withIndexes()
	}
	changes := map[string]Kind{}
	for name := range want.files {
		if _, ok := have.files[name]; !ok {
			changes[name] = Missing
		}
	}
	for name, data := range have.files {
		_, wanted := want.files[name]
		switch state := own.stateOf(name, data, want); {
		case wanted && state != same && state != userOwned:
			changes[name] = Modified
		case !wanted && (!written || state != userOwned):
			changes[name] = Extra
		}
	}
	touched := map[string]bool{} // directories
	for name := range changes {
		touched[path.Dir(name)] = touched[path.Dir(name)] || !isIndex(name)
	}
	out := make([]FileChange, 0, len(changes))
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if !written || !isIndex(name) || !touched[path.Dir(name)] {
			out = append(out, FileChange{Path: name, Kind: changes[name]})
		}
	}
	return out
}
