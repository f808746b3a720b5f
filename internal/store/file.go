package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxFiles is the maximum number of files of one kind. If there are more, the oldest files are removed.
const maxFiles = 64

// PutFile stores a file under kind and key. write writes the content. An existing file is replaced atomically.
// The store does not verify such files: the reader must check the content. If there are more than maxFiles
// files of this kind, PutFile removes the least recently used files.
func (s *Store) PutFile(kind, key string, write func(f *os.File) error) error {
	if err := s.put(kind, key, write); err != nil {
		return err
	}
	prune(filepath.Join(s.dir, "records", kind))
	return nil
}

// OpenFile opens the file stored under kind and key, and returns it with its size. If there is
// none, the error is [fs.ErrNotExist]. The caller must close the file.
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
		_ = os.Chtimes(path, now, now) // record the time of use for prune
	}
	return f, info.Size(), nil
}

// prune removes the oldest files in a directory until maxFiles are left.
func prune(dir string) {
	for i, info := range listNewestFirst(dir) {
		if i >= maxFiles {
			_ = os.Remove(filepath.Join(dir, info.Name())) // ignore the error: another process may have removed it
		}
	}
}

// listNewestFirst returns the files in a directory, newest first. It returns nil if the directory
// cannot be read.
func listNewestFirst(dir string) []fs.FileInfo {
	entries, _ := os.ReadDir(dir) // ignore the error: the directory may not exist yet
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

const maxRecord = 1 << 20

// PutRecord stores data under kind and key. It replaces an existing record. The store does not
// verify records: the reader must check the content, and must be able to do without it. kind
// consists of lower case letters and hyphens; key may be any text.
func (s *Store) PutRecord(kind, key string, data []byte) error {
	if len(data) > maxRecord {
		return fmt.Errorf("record %s %q is larger than %d bytes", kind, key, maxRecord)
	}
	return s.put(kind, key, func(f *os.File) error {
		_, err := f.Write(data)
		return wrapWriteError(err)
	})
}

// put stores a file under kind and key. write writes its content.
func (s *Store) put(kind, key string, write func(f *os.File) error) error {
	path, err := s.recordPath(kind, key)
	if err != nil {
		return err
	}
	return s.writeAtomically(path, kind+"-", write)
}

// Record returns the record stored under kind and key. If there is none, the error is
// [fs.ErrNotExist].
func (s *Store) Record(kind, key string) ([]byte, error) {
	path, err := s.recordPath(kind, key)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("record %s %q: %w", kind, key, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("record %s %q: %w", kind, key, err)
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("record %s %q is larger than %d bytes", kind, key, maxRecord)
	}
	return data, nil
}

// recordPath returns the path of a record. The path contains a hash of the key, because the key may be any
// text.
func (s *Store) recordPath(kind, key string) (string, error) {
	if kind == "" {
		return "", errors.New("record without a kind")
	}
	for _, c := range []byte(kind) {
		if (c < 'a' || c > 'z') && c != '-' {
			return "", fmt.Errorf("record kind %q: must be lower-case letters", kind)
		}
	}
	if s.fault != nil {
		return "", s.fault
	}
	return filepath.Join(s.dir, "records", kind, DigestOf([]byte(key))[len("sha256:"):]), nil
}
