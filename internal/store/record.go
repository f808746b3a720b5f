package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

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

// recordPath returns the path of a record. It contains a hash of the key, because the key may be
// any text.
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
