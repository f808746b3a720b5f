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

// Index is Git's index of a work tree. It has the ID of the content of each file that did not change since
// Git read the file. A nil *Index has no IDs.
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

// AddAttributes adds the Git attributes in a directory. Call it before [Index.Blob] for files below dir.
func (x *Index) AddAttributes(dir string, data []byte) {
	if x != nil && len(data) > 0 {
		x.attributes = append(x.attributes, AttributeFile{Dir: dir, Data: data})
		x.changed = ContentAttributes(x.attributes)
	}
}

// Blob returns the result of [BlobOf] for a file of the work tree without reading the file, and whether it is known.
//
// As in Git, the result is known if the file has the stat data recorded in the index, and was modified in an earlier
// second than the index: a change in the same second could leave the stat data equal. See
// https://github.com/git/git/blob/master/Documentation/technical/racy-git.adoc. Unlike Git, Blob also requires an
// earlier ctime, which no program can set back.
//
// In a checkout, Git may change the content of a file. Then the size of the file differs from the blob's, except after
// a filter or a conversion of the encoding. For files with such attributes, known is false.
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

// BlobOf returns the Git blob ID of data, followed by the length of data as 8 bytes.
//
// The result may be a cache key, although the ID is a SHA-1 digest: Git detects contents that were made to
// collide by a known attack, and refuses to add, fetch or check them out. An attacker therefore cannot
// bring two contents with one ID into a repository.
func BlobOf(data []byte) []byte {
	return blobID(plumbing.ComputeHash(plumbing.BlobObject, data), int64(len(data)))
}

func blobID(hash plumbing.Hash, size int64) []byte {
	return binary.BigEndian.AppendUint64(hash[:], uint64(size))
}
