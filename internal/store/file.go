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

// maxFiles is how many files of one kind are kept: those written or used last.
const maxFiles = 64

// PutFile keeps the file that write fills below kind and key, in place of what
// was there. It appears by one rename. Like a record it is a note for next
// time: whoever reads it must find out whether it holds what was written.
// Where there are many files of the kind, those that were not used for the
// longest time go.
func (s *Store) PutFile(kind, key string, write func(f *os.File) error) error {
	if err := s.put(kind, key, write); err != nil {
		return err
	}
	prune(filepath.Join(s.dir, "records", kind))
	return nil
}

// OpenFile opens what was last kept below kind and key, and returns its size.
// The error is [fs.ErrNotExist] where nothing was. The caller closes the file.
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
		_ = os.Chtimes(path, now, now) // it is in use; only tidying wants to know
	}
	return f, info.Size(), nil
}

// prune removes the files of a directory beyond maxFiles, oldest first.
func prune(dir string) {
	for i, info := range newest(dir) {
		if i >= maxFiles {
			_ = os.Remove(filepath.Join(dir, info.Name())) // another process may have been faster
		}
	}
}

// newest returns what is in a directory, what was written last first; nothing
// where it cannot be read.
func newest(dir string) []fs.FileInfo {
	entries, _ := os.ReadDir(dir) // nothing was written yet, or it is not ours to clean
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
