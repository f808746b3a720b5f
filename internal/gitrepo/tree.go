package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/quayside/quayside/internal/filetree"
)

// Limits for reading a revision.
const (
	maxEntries = 500_000  // maximum number of files
	maxDepth   = 100      // maximum nesting depth of directories
	maxFile    = 64 << 20 // maximum bytes of one file
)

// Entry is a regular file in a revision.
type Entry struct {
	Path string // path from the top of the repository
	Hash string // Git hash of the content
}

// HashOf returns the Git hash (blob) of data.
func HashOf(data []byte) string {
	return plumbing.ComputeHash(plumbing.BlobObject, data).String()
}

// List returns the regular files below dir, sorted by path. "." is the top. If dir is not a directory, List
// returns nil. It omits symbolic links and submodules.
func (v *Revision) List(dir string) ([]Entry, error) {
	top, prefix := v.top(), ""
	if dir != "." && dir != "" {
		prefix = dir + "/"
		var err error
		if top, err = v.find(dir); errors.Is(err, fs.ErrNotExist) || err == nil && top.Mode != filemode.Dir {
			return nil, nil
		} else if err != nil {
			return nil, v.wrapError(dir, err)
		}
	}
	var out []Entry
	err := v.list(top.Hash, prefix, 0, &out)
	return out, err
}

// top returns the root directory of the revision.
func (v *Revision) top() object.TreeEntry {
	return object.TreeEntry{Mode: filemode.Dir, Hash: v.commit.TreeHash}
}

// find returns the entry at a path, which must not be the top. If there is none, the error is
// fs.ErrNotExist.
func (v *Revision) find(name string) (object.TreeEntry, error) {
	e := v.top()
	for step := range strings.SplitSeq(name, "/") {
		if e.Mode != filemode.Dir {
			return e, fs.ErrNotExist
		}
		entries, err := v.dir(e.Hash)
		if err != nil {
			return e, err
		}
		i := slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == step })
		if i < 0 {
			return e, fs.ErrNotExist
		}
		e = entries[i]
	}
	return e, nil
}

// recent caches directories, because the paths of consecutive look-ups have most directories in common.
type recent struct {
	mu    sync.Mutex
	trees map[plumbing.Hash][]object.TreeEntry
}

// maxRecent is the maximum number of cached directories.
const maxRecent = 64

// dir returns the entries of a directory. Callers must not modify them.
func (v *Revision) dir(hash plumbing.Hash) ([]object.TreeEntry, error) {
	v.recent.mu.Lock()
	defer v.recent.mu.Unlock()
	if entries, held := v.recent.trees[hash]; held {
		return entries, nil
	}
	tree, err := v.repo.git.TreeObject(hash)
	if err != nil {
		return nil, err
	}
	if len(v.recent.trees) >= maxRecent || v.recent.trees == nil {
		v.recent.trees = map[plumbing.Hash][]object.TreeEntry{}
	}
	v.recent.trees[hash] = tree.Entries
	return tree.Entries, nil
}

// list appends the files below a directory to out. prefix is the path of the directory.
func (v *Revision) list(hash plumbing.Hash, prefix string, depth int, out *[]Entry) error {
	if depth > maxDepth {
		return v.wrapError(prefix, fmt.Errorf("directories nested deeper than %d levels", maxDepth))
	}
	tree, err := v.repo.git.TreeObject(hash)
	if err != nil {
		return v.wrapError(prefix, err)
	}
	for _, e := range tree.Entries {
		name := prefix + e.Name
		if !fs.ValidPath(name) || strings.ContainsAny(e.Name, "/\\\x00") || e.Name == ".git" {
			return v.wrapError(prefix, fmt.Errorf("%q is not a file name", e.Name))
		}
		switch e.Mode {
		case filemode.Dir:
			if err := v.list(e.Hash, name+"/", depth+1, out); err != nil {
				return err
			}
		case filemode.Regular, filemode.Deprecated, filemode.Executable:
			if len(*out) >= maxEntries {
				return v.wrapError(prefix, fmt.Errorf("more than %d files", maxEntries))
			}
			*out = append(*out, Entry{Path: name, Hash: e.Hash.String()})
		default: // skip symbolic links and submodules
		}
	}
	return nil
}

// Read returns the content of a regular file. name is the path from the top of the repository. If there is no
// such file, the error wraps fs.ErrNotExist.
func (v *Revision) Read(name string) ([]byte, error) {
	e, err := v.find(name)
	if err != nil {
		return nil, v.wrapError(name, err)
	}
	if !e.Mode.IsFile() || e.Mode == filemode.Symlink {
		return nil, v.wrapError(name, errors.New("not a regular file"))
	}
	return v.ReadEntry(Entry{Path: name, Hash: e.Hash.String()})
}

// Link returns the target of a symbolic link, and whether name is a symbolic link. name is a path from the top
// of the repository.
func (v *Revision) Link(name string) (target string, is bool) {
	e, err := v.find(name)
	if err != nil || e.Mode != filemode.Symlink {
		return "", false
	}
	data, err := v.ReadEntry(Entry{Path: name, Hash: e.Hash.String()})
	return string(data), err == nil
}

// Size returns the size of a file from List, in bytes.
func (v *Revision) Size(e Entry) (int64, error) {
	size, err := v.repo.git.Storer.EncodedObjectSize(plumbing.NewHash(e.Hash))
	if err != nil {
		return 0, v.wrapError(e.Path, err)
	}
	return size, nil
}

// ReadEntry returns the content of a file from List.
func (v *Revision) ReadEntry(e Entry) ([]byte, error) {
	size, err := v.Size(e)
	if err != nil {
		return nil, err
	}
	if size > maxFile {
		return nil, v.wrapError(e.Path, fmt.Errorf("%d bytes exceed the limit of %d", size, int64(maxFile)))
	}
	data, err := v.blob(plumbing.NewHash(e.Hash), size)
	if err != nil {
		return nil, v.wrapError(e.Path, err)
	}
	if int64(len(data)) != size {
		return nil, v.wrapError(e.Path, errors.New("the size differs from the recorded size"))
	}
	return data, nil
}

// blob returns the content of a file, but at most size+1 bytes.
func (v *Revision) blob(hash plumbing.Hash, size int64) ([]byte, error) {
	blob, err := v.repo.git.BlobObject(hash)
	if err != nil {
		return nil, err
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, size+1))
}

// FS returns a file system with the regular files below dir. "." is the top. Opening a file reads only this
// file. Opening a directory for the first time lists all names. Opening a symbolic link or submodule is an
// error.
func (v *Revision) FS(dir string) fs.FS {
	return revisionFS{v, dir, sync.OnceValues(func() (fs.FS, error) {
		entries, err := v.List(dir)
		files := map[string]func() (filetree.Content, error){}
		for _, e := range entries {
			files[strings.TrimPrefix(e.Path, strings.TrimPrefix(dir+"/", "./"))] = func() (filetree.Content, error) {
				data, err := v.ReadEntry(e)
				return bytes.NewReader(data), err
			}
		}
		return filetree.Lazy(files), err
	})}
}

type revisionFS struct {
	rev *Revision
	dir string
	all func() (fs.FS, error)
}

// Open opens a file or a directory.
func (f revisionFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	err := fs.ErrNotExist
	if name != "." {
		var data []byte
		data, err = f.rev.Read(path.Join(f.dir, name))
		switch {
		case err == nil:
			return filetree.Lazy(map[string]func() (filetree.Content, error){
				name: func() (filetree.Content, error) { return bytes.NewReader(data), nil },
			}).Open(name)
		case errors.Is(err, fs.ErrNotExist):
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	all, listErr := f.all()
	if listErr != nil {
		return nil, listErr
	}
	dir, openErr := all.Open(name)
	if errors.Is(openErr, fs.ErrNotExist) {
		return nil, err
	}
	return dir, openErr
}

// Sub returns a file system with the files below dir.
func (f revisionFS) Sub(dir string) (fs.FS, error) { return f.rev.FS(path.Join(f.dir, dir)), nil }

// wrapError adds the revision and the path of a file to err.
func (v *Revision) wrapError(name string, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = errors.New("a Git object is missing: the clone is partial or broken")
	}
	return fmt.Errorf("%s:%s: %w", v.name, strings.TrimSuffix(name, "/"), err)
}

// Submodules returns the paths in a .gitmodules file, sorted. Git fetches only submodules that are
// in this file.
func Submodules(data []byte) ([]string, error) {
	modules := config.NewModules()
	if err := modules.Unmarshal(data); err != nil {
		return nil, err
	}
	var out []string
	for _, m := range modules.Submodules {
		out = append(out, path.Clean(m.Path))
	}
	slices.Sort(out)
	return out, nil
}
