package gitrepo

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Index knows the content of the files in a work tree that did not change since Git read them, as git status
// does. A nil *Index knows none.
type Index struct {
	entries    map[string]*index.Entry
	written    int64 // time in seconds
	attributes []AttributeFile
	changed    []ContentAttribute
}

// Index reads the index of the work tree. It does not support split indexes, and indexes without a checksum.
func (r *Repo) Index() (*Index, error) {
	f, err := os.Open(filepath.Join(r.gitDir, "index"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var decoded index.Index
	if err := index.NewDecoder(f).Decode(&decoded); err != nil {
		return nil, err
	}
	x := &Index{entries: map[string]*index.Entry{}, written: info.ModTime().Unix()}
	for _, e := range decoded.Entries {
		if e.Stage == 0 && !e.IntentToAdd && !e.SkipWorktree {
			x.entries[e.Name] = e
		}
	}
	data, err := os.ReadFile(r.InfoAttributes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	x.AddAttributes(".", data)
	return x, nil
}

// AddAttributes adds the Git attributes in a directory. Call it before [Index.Blob] for the files below.
func (x *Index) AddAttributes(dir string, data []byte) {
	if x != nil && len(data) > 0 {
		x.attributes = append(x.attributes, AttributeFile{Dir: dir, Data: data})
		x.changed = ContentAttributes(x.attributes)
	}
}

// Blob returns the [BlobOf] the content of a file of the work tree without reading it, and whether it is known.
//
// As in Git, the content is known if the stat data of the file are those of the index, and older than the index:
// a file that was changed in the same second could have the same stat data. See
// https://github.com/git/git/blob/master/Documentation/technical/racy-git.adoc. Unlike Git, Blob also requires
// this of the time of the last change of the inode, which no program can set back.
//
// The content may differ from that of the blob if Git changes it in a checkout. The file then has another size,
// with two exceptions: filters and encodings. Blob knows no file that has such an attribute.
func (x *Index) Blob(name string, d fs.DirEntry) (id []byte, known bool) {
	if x == nil || x.entries[name] == nil {
		return nil, false
	}
	e := x.entries[name]
	info, err := d.Info()
	if err != nil || !info.Mode().IsRegular() || !e.ModifiedAt.Equal(info.ModTime()) || e.Size != uint32(info.Size()) || !hasStat(e, info) ||
		e.ModifiedAt.Unix() >= x.written || e.CreatedAt.Unix() >= x.written ||
		slices.ContainsFunc(x.changed, func(a ContentAttribute) bool { return a.Matches(name) }) {
		return nil, false
	}
	return blobID(e.Hash, info.Size()), true
}

// BlobOf returns the ID of the blob with this content, and its size.
//
// Results for the content of a file may be stored under the ID, although SHA-1 has collisions: Git detects each
// of the two contents of a known kind of collision and refuses to add, to fetch and to check it out. So the index
// contains no such ID, and an attacker cannot bring both contents into a repository.
func BlobOf(data []byte) []byte {
	return blobID(plumbing.ComputeHash(plumbing.BlobObject, data), int64(len(data)))
}

func blobID(hash plumbing.Hash, size int64) []byte {
	return binary.BigEndian.AppendUint64(hash[:], uint64(size))
}
