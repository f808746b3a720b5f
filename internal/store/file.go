package store

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxFiles is the maximum number of files of one kind. The oldest are removed.
const maxFiles = 64

// PutFile stores the file that write fills under kind and key, and replaces any previous one
// atomically. Like a record, it is not verified: the reader must check the content. Beyond
// maxFiles files of the kind, the least recently used ones are removed.
func (s *Store) PutFile(kind, key string, write func(f *os.File) error) error {
	if err := s.put(kind, key, write); err != nil {
		return err
	}
	prune(filepath.Join(s.dir, "records", kind))
	return nil
}

// OpenFile opens the file stored under kind and key, and returns its size. The error is
// [fs.ErrNotExist] if there is none. The caller closes the file.
func (s *Store) OpenFile(kind, key string) (*os.File, int64, error) {
	path, err := s.recordPath(kind, key)
	if err != nil {
		return nil, 0, err
	}
	f, err := openRegular(path)
	if err != nil {
		return nil, 0, fmt.Errorf("file %s %q: %w", kind, key, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("file %s %q: %w", kind, key, err)
	}
	if now := time.Now(); now.Sub(info.ModTime()) > staleAge {
		_ = os.Chtimes(path, now, now) // mark as used, for prune
	}
	return f, info.Size(), nil
}

// prune removes the files of a directory beyond maxFiles, oldest first.
func prune(dir string) {
	for i, info := range listNewestFirst(dir) {
		if i >= maxFiles {
			_ = os.Remove(filepath.Join(dir, info.Name())) // another process may have removed it
		}
	}
}

// listNewestFirst returns the entries of a directory, newest first, or nil if it cannot be read.
func listNewestFirst(dir string) []fs.FileInfo {
	entries, _ := os.ReadDir(dir) // not created yet, or not readable
	var infos []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return infos
}
