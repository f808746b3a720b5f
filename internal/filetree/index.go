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

// Index is the base name of index files. Index files list the files that quayside has written. In a written
// tree, the root and each directory with such files has an index. The index lists the files directly in its
// directory. A line is "name sha256", or a comment that begins with #. The digest shows whether the user
// edited a file that differs from the commit, or an earlier Write wrote it and it is not committed yet.
const Index = ".quayside-files"

const (
	indexHeader = "# Files that quayside wrote. It removes those it no longer renders and leaves all others alone.\n"
	rootMark    = "# Root of the tree." // marks the index in the root of a tree: a subdirectory with such an index is another tree
)

// index maps paths to the digests that Write has recorded. An unknown digest is "". The paths are the index
// files of a tree, and the files that the index files list.
type index map[string]string

// edited reports whether data differs from the content that Write recorded for a file.
func (x index) edited(name string, data []byte) bool { return x[name] != "" && x[name] != sum(data) }

func isIndex(name string) bool { return path.Base(name) == Index }

// withIndexes returns a copy of the tree with its index files.
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

// entryOf returns the lines for a file in an index. The line with the digest is between two lines that do not
// depend on the content, so that Git can merge changes of neighbouring files.
func entryOf(base string, data []byte) string {
	return "## " + base + "\n" + base + " " + sum(data) + "\n#\n"
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// indexEntries returns the entries of all index files of the tree.
func (t *Tree) indexEntries() (index, error) {
	return readIndexes(maps.Keys(t.files), func(name string) ([]byte, error) { return t.files[name], nil })
}

// readIndexes returns the entries of the index files among names. If the index of a subdirectory is the
// index of a root, the subdirectory is another tree, which belongs to the user.
func readIndexes(names iter.Seq[string], read func(name string) ([]byte, error)) (index, error) {
	var dirs, others []string
	for name := range names {
		if isIndex(name) {
			dirs = append(dirs, path.Dir(name))
		}
	}
	slices.Sort(dirs) // parents before their subdirectories
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
		own[file] = ""
		for name, e := range list {
			own[path.Join(dir, name)] = e
		}
	}
	return own, nil
}

// parseIndex parses an index file. root reports whether file is the index of the root of a tree. Within a
// merge conflict, digests are dropped, because the files may have been merged, too.
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
		name, digest := line, ""
		if at := len(line) - 2*sha256.Size - 1; at > 0 && line[at] == ' ' {
			name, digest = line[:at], line[at+1:]
		}
		if !fs.ValidPath(name) || name != path.Base(name) || name == "." || isIndex(name) {
			return nil, root, fmt.Errorf("%s:%d: %q is not the name of a file", file, i+1, name)
		}
		if before, twice := list[name]; conflict || twice && before != digest {
			digest = ""
		}
		list[name] = digest
	}
	return list, root, nil
}

// state describes a file on disk in relation to the wanted tree.
type state int

const (
	userOwned state = iota // belongs to the user, and is kept
	claimed                // belongs to the user, but the wanted tree has the same path
	edited                 // written by quayside, and edited since
	stale                  // written by quayside, to be replaced or removed
	same                   // written by quayside, equal to the wanted file
)

// stateOf returns the state of the file with this name and content. For a file that is neither in an index nor
// in want, data may be nil.
func (x index) stateOf(name string, data []byte, want *Tree) state {
	_, listed := x[name]
	wanted, keeps := want.files[name]
	switch {
	case !listed && !keeps:
		return userOwned
	case keeps && bytes.Equal(data, wanted):
		return same
	case !listed:
		return claimed
	case x.edited(name, data):
		return edited
	default:
		return stale
	}
}

// Kind is the kind of a difference between a file on disk and the wanted tree.
type Kind string

// The kinds of differences.
const (
	Missing  Kind = "missing" // wanted, but not on disk
	Modified Kind = "differs" // on disk with other content
	Extra    Kind = "extra"   // written by an earlier run, but no longer wanted
)

// Sign returns "+" for Missing, "-" for Extra and "~" for Modified.
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

// FileChange is a file that Write would add, change or remove.
type FileChange struct {
	Path string `json:"path"`
	Kind Kind   `json:"change"`
}

// Diff returns the changes by which Write would turn the tree have into the tree want, sorted by path. It
// ignores files of the user: files in have that are neither in an index nor in want. It lists an index file
// only if no other file of its directory changes. If have was not written by Write and thus has no index,
// Diff compares all files.
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
	touched := map[string]bool{} // directories with other changes
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

// UserFiles returns the sorted paths of the user's files in have: the files that are neither in want nor in
// an index of have. If have has no valid index, UserFiles returns nil.
func UserFiles(have, want *Tree) []string {
	own, err := have.indexEntries()
	if len(own) == 0 || err != nil {
		return nil
	}
	var out []string
	for name, data := range have.All() {
		if own.stateOf(name, data, want) == userOwned {
			out = append(out, name)
		}
	}
	return out
}

// SimulateWrite returns the tree that results from writing want to a directory that contains have. It has the
// files of want, their index files, and the user's files. As with Write, a user's file at a wanted path is an
// error, and edited files are an [*EditedError]. SimulateWrite does not modify its arguments.
func SimulateWrite(have, want *Tree) (*Tree, error) {
	own, err := have.indexEntries()
	if err != nil {
		return nil, err
	}
	want = want.withIndexes()
	out := New()
	var edits []string
	for name, data := range have.All() {
		switch own.stateOf(name, data, want) {
		case userOwned:
			out.files[name] = data
		case claimed:
			return nil, fmt.Errorf("%s was not written by quayside: move it away or delete it", name)
		case edited:
			edits = append(edits, name)
		case stale, same: // removed, or replaced by the file in want, below
		}
	}
	if len(edits) > 0 {
		return nil, &EditedError{Paths: edits}
	}
	maps.Copy(out.files, want.files)
	return out, nil
}
