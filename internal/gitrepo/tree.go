package gitrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Caps on what is read of one revision.
const (
	maxEntries = 500_000  // files
	maxDepth   = 100      // directories in each other
	maxFile    = 64 << 20 // bytes of one file
)

// Entry is one regular file of a revision.
type Entry struct {
	Path string // from the top of the repository
	Hash string // of the content, as HashOf has it
}

// HashOf returns the name that Git gives to content.
func HashOf(data []byte) string {
	return plumbing.ComputeHash(plumbing.BlobObject, data).String()
}

// List returns the regular files below dir ("." is the top), by path; none
// where there is no such directory. Links and submodules are left out.
func (v *Revision) List(dir string) ([]Entry, error) {
	tree, err := v.commit.Tree()
	if err != nil {
		return nil, v.fault(dir, err)
	}
	prefix := ""
	if dir != "." && dir != "" {
		prefix = dir + "/"
		tree, err = tree.Tree(dir)
		if errors.Is(err, object.ErrDirectoryNotFound) || errors.Is(err, object.ErrEntryNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, v.fault(dir, err)
		}
	}
	var out []Entry
	err = v.list(tree, prefix, 0, &out)
	return out, err
}

func (v *Revision) list(tree *object.Tree, prefix string, depth int, out *[]Entry) error {
	if depth > maxDepth {
		return v.fault(prefix, fmt.Errorf("more than %d directories in each other", maxDepth))
	}
	for _, e := range tree.Entries {
		name := prefix + e.Name
		if !fs.ValidPath(name) || strings.ContainsAny(e.Name, "/\\\x00") || e.Name == ".git" {
			return v.fault(prefix, fmt.Errorf("%q is no name of a file", e.Name))
		}
		switch e.Mode {
		case filemode.Dir:
			sub, err := v.repo.git.TreeObject(e.Hash)
			if err != nil {
				return v.fault(name, err)
			}
			if err := v.list(sub, name+"/", depth+1, out); err != nil {
				return err
			}
		case filemode.Regular, filemode.Deprecated, filemode.Executable:
			if len(*out) >= maxEntries {
				return v.fault(prefix, fmt.Errorf("more than %d files", maxEntries))
			}
			*out = append(*out, Entry{Path: name, Hash: e.Hash.String()})
		default: // links and submodules are not followed
		}
	}
	return nil
}

// Read returns a file by its path from the top of the repository. Where there
// is none the error is fs.ErrNotExist.
func (v *Revision) Read(name string) ([]byte, error) {
	tree, err := v.commit.Tree()
	if err != nil {
		return nil, v.fault(name, err)
	}
	e, err := tree.FindEntry(name)
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, v.fault(name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, v.fault(name, err)
	}
	if !e.Mode.IsFile() || e.Mode == filemode.Symlink {
		return nil, v.fault(name, errors.New("not a regular file"))
	}
	return v.ReadEntry(Entry{Path: name, Hash: e.Hash.String()})
}

// Size returns the number of bytes of a file that List returned.
func (v *Revision) Size(e Entry) (int64, error) {
	size, err := v.repo.git.Storer.EncodedObjectSize(plumbing.NewHash(e.Hash))
	if err != nil {
		return 0, v.fault(e.Path, err)
	}
	return size, nil
}

// ReadEntry returns the content of a file that List returned.
func (v *Revision) ReadEntry(e Entry) ([]byte, error) {
	hash := plumbing.NewHash(e.Hash)
	size, err := v.Size(e)
	if err != nil {
		return nil, err
	}
	if size > maxFile {
		return nil, v.fault(e.Path, fmt.Errorf("%d bytes, more than the %d that are read", size, int64(maxFile)))
	}
	blob, err := v.repo.git.BlobObject(hash)
	if err != nil {
		return nil, v.fault(e.Path, err)
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, v.fault(e.Path, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err != nil {
		return nil, v.fault(e.Path, err)
	}
	if int64(len(data)) != size {
		return nil, v.fault(e.Path, errors.New("its size is not what the repository says"))
	}
	return data, nil
}

// Extract writes those files below dir for which want holds to a directory on
// disk, dir itself becoming to. More than limit bytes in all are refused.
func (v *Revision) Extract(dir, to string, limit int64, want func(path string) bool) error {
	entries, err := v.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		rel := strings.TrimPrefix(e.Path, strings.TrimPrefix(dir+"/", "./"))
		if !want(e.Path) {
			continue
		}
		data, err := v.ReadEntry(e)
		if err != nil {
			return err
		}
		if limit -= int64(len(data)); limit < 0 {
			return v.fault(dir, errors.New("too large to be rendered"))
		}
		name := filepath.Join(to, filepath.FromSlash(path.Clean(rel)))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// fault names the revision and the file that something is wrong with.
func (v *Revision) fault(name string, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = errors.New("the repository lacks an object of it: is this a partial or broken clone?")
	}
	return fmt.Errorf("%s:%s: %w", v.name, strings.TrimSuffix(name, "/"), err)
}
