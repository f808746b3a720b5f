// Package store keeps what was fetched, by its digest.
//
// A blob lies at blobs/sha256/<hex> below the store's directory. It is
// verified while it is written, appears there by one rename, and is verified
// again whenever it is read: a blob that no longer has its digest is removed
// and reported as a [*CorruptError], so that the caller can fetch it anew.
// Several processes may use one store at once. The store never follows a
// symbolic link, never keeps credentials and never opens a socket.
//
// Start from [Open], [Store.Put] and [Store.Get].
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/imageref"
)

// Store is a directory of blobs and records. It may be used by several
// goroutines and processes at once.
type Store struct {
	dir   string
	fault error // why there is none; nil where there is one
}

const (
	dirPerm  = 0o700
	staleAge = 24 * time.Hour // a temporary file as old as this belongs to a process that died
)

// Open returns the store in dir, which need not exist: it is made by the first
// write, so that a store can be read from a read-only disk. Temporary files
// that a killed process left there a day ago are removed. Where there cannot be
// a store in dir, it is as with [Absent].
func Open(dir string) (*Store, error) {
	if dir == "" {
		return nil, errors.New("opening the store: no directory given")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the store %q: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(abs, "tmp")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Absent(fmt.Errorf("opening the store: %w", err)), nil
	}
	s := &Store{dir: abs}
	s.sweep()
	return s, nil
}

// Absent returns a store that holds nothing and keeps nothing, for why. It
// stops nobody who needs none.
func Absent(why error) *Store { return &Store{fault: absent{why}} }

// absent is why there is no store, and why nothing was found in it.
type absent struct{ error }

func (a absent) Unwrap() []error { return []error{a.error, fs.ErrNotExist} }

// Dir returns the store's directory, as an absolute path; empty where there is
// none.
func (s *Store) Dir() string { return s.dir }

// Put writes what r holds as the blob of that digest. More than limit bytes,
// or bytes of another digest (a [*MismatchError]), leave the store as it was.
// A blob that is already there is not read again and r is left unread. An
// error of r comes back as it is; the caller says which blob it was.
func (s *Store) Put(ctx context.Context, digest string, r io.Reader, limit int64) error {
	path, err := s.blobPath(digest)
	if err != nil {
		return err
	}
	if s.Has(digest) {
		return nil
	}
	return s.place(path, "blob-", func(f *os.File) error {
		v := NewVerifier(io.NopCloser(io.LimitReader(Until(ctx, r), limit+1)), digest, -1)
		n, err := io.Copy(f, v)
		if n > limit {
			return fmt.Errorf("blob %s is larger than %d bytes", digest, limit)
		}
		return err
	})
}

// place makes the file at path what write writes, by way of a temporary one.
func (s *Store) place(path, prefix string, write func(f *os.File) error) error {
	f, err := s.temp(prefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already where the rename succeeded
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return s.commit(f, path)
}

// Has reports whether the blob is there. It does not verify it.
func (s *Store) Has(digest string) bool {
	_, err := s.Size(digest)
	return err == nil
}

// Size returns the blob's length in bytes, and an error that is
// [fs.ErrNotExist] where the store does not hold it.
func (s *Store) Size(digest string) (int64, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return 0, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return 0, fmt.Errorf("blob %s: %w", digest, err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("blob %s: not a regular file: %w", digest, fs.ErrNotExist)
	}
	return info.Size(), nil
}

// Get opens the blob for reading from its start. It is verified as it is read:
// where its bytes do not have the digest, the read that would have returned
// io.EOF returns a [*CorruptError] instead and the blob is gone from the
// store. What was read before io.EOF must not be trusted; [Verifier.Drain]
// finds out early. The error is [fs.ErrNotExist] where the store does not
// hold it.
func (s *Store) Get(digest string) (*Verifier, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest, err)
	}
	v := NewVerifier(f, digest, -1)
	v.onMismatch = func(m *MismatchError) error {
		_ = os.Remove(path) // another process may have removed it already
		return &CorruptError{Digest: digest, Err: m}
	}
	return v, nil
}

// Read returns the whole blob, verified. A blob of more than limit bytes is an
// error; otherwise as [Store.Get].
func (s *Store) Read(digest string, limit int64) ([]byte, error) {
	r, err := s.Get(digest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("blob %s is larger than %d bytes", digest, limit)
	}
	return data, r.Drain()
}

// Remove takes the blob out of the store. One that is not there is no error.
func (s *Store) Remove(digest string) error {
	path, err := s.blobPath(digest)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing blob %s: %w", digest, err)
	}
	return nil
}

// Temp makes an empty file in the store, or where that cannot be written among
// the system's temporary files, readable by its owner alone. The caller closes
// and removes it; one that is left behind in the store does no harm and is
// removed a day later.
func (s *Store) Temp(prefix string) (*os.File, error) {
	if f, err := s.temp(prefix); err == nil {
		return f, nil
	}
	return os.CreateTemp("", "quayside-"+prefix)
}

func (s *Store) temp(prefix string) (*os.File, error) {
	dir, err := s.mkdir("tmp")
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, prefix)
	return f, writing(err)
}

// writing says what went wrong, nil where nothing did.
func writing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing to the store: %w", err)
}

// commit makes the temporary file durable and moves it to path.
func (s *Store) commit(f *os.File, path string) error {
	rel, err := filepath.Rel(s.dir, filepath.Dir(path))
	if err != nil {
		return writing(err)
	}
	if _, err := s.mkdir(rel); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return writing(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return writing(err)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// mkdir makes the directory of that name below the store's and returns its
// path. A symbolic link on the way is refused.
func (s *Store) mkdir(names ...string) (string, error) {
	if s.fault != nil {
		return "", s.fault
	}
	if err := os.MkdirAll(s.dir, dirPerm); err != nil {
		return "", writing(err)
	}
	dir := s.dir
	for _, name := range strings.Split(filepath.Join(names...), string(filepath.Separator)) {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", writing(err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return "", writing(err)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("writing to the store: %q is not a directory", dir)
		}
	}
	return dir, nil
}

// sweep removes temporary files that nobody can still be writing.
func (s *Store) sweep() {
	dir := filepath.Join(s.dir, "tmp")
	for _, info := range newest(dir) {
		if time.Since(info.ModTime()) > staleAge {
			_ = os.Remove(filepath.Join(dir, info.Name())) // harmless where it stays
		}
	}
}

// blobPath returns where the blob lies. The digest's form is checked, for it
// becomes a path.
func (s *Store) blobPath(digest string) (string, error) {
	if !imageref.IsDigest(digest) {
		return "", fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits", digest)
	}
	if s.fault != nil {
		return "", s.fault
	}
	return filepath.Join(s.dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), nil
}

// openRegular opens the file at path and refuses anything that is not a
// regular file, a symbolic link to one included. One that is replaced in the
// meantime, as a writer of the same does, is looked at again.
func openRegular(path string) (*os.File, error) {
	for range maxReplaced {
		before, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		if !before.Mode().IsRegular() {
			return nil, fmt.Errorf("%q is not a regular file: %w", path, fs.ErrNotExist)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if after, err := f.Stat(); err == nil && os.SameFile(before, after) {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%q changed while it was opened: %w", path, fs.ErrNotExist)
}

// maxReplaced is how often a file may be replaced while it is opened.
const maxReplaced = 100

// syncDir makes a rename durable where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the blob is verified on read anyway
		d.Close()
	}
}

// Until returns a reader of r that fails with ctx's error once ctx is done.
func Until(ctx context.Context, r io.Reader) io.Reader { return ctxReader{ctx, r} }

// ctxReader stops reading once ctx is done.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // lives no longer than the call it belongs to
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
