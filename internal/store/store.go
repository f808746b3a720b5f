// Package store caches fetched content by its digest.
//
// A blob is stored as blobs/sha256/<hex> in the directory of the store. The store verifies a blob whenever the
// blob is written or read. It removes a blob that no longer matches its digest, and reports a [*CorruptError].
// The caller can then fetch the blob again. Several processes may use one store concurrently. The store never
// follows a symbolic link, never contains credentials and never opens a network connection.
//
// Start from [Open], [Store.Put] and [Store.Get].
package store

import (
	"bytes"
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

// Store is a directory with blobs and records. It is safe for concurrent use by goroutines and
// processes.
type Store struct {
	dir   string
	fault error // error of all reads and writes, if the store is absent
}

const (
	dirPerm  = 0o700
	staleAge = 24 * time.Hour // age at which temporary files are removed
)

// Open returns the store in dir. dir need not exist: the first write creates it. A store on a read-only disk
// can be read. Open removes temporary files that are older than a day. If dir cannot contain a store, Open
// returns an [Absent] store.
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
	s.removeStale()
	return s, nil
}

// Absent returns a store without content. Its reads and writes return cause, so that a caller fails only when
// it uses the store.
func Absent(cause error) *Store { return &Store{fault: absent{cause}} }

// absent is the error of an absent store. It also matches [fs.ErrNotExist].
type absent struct{ error }

func (a absent) Unwrap() []error { return []error{a.error, fs.ErrNotExist} }

// Dir returns the absolute path of the directory of the store, or "" for an absent store.
func (s *Store) Dir() string { return s.dir }

// Put stores the content of r as the blob with this digest. If the content has more than limit
// bytes or another digest (a [*MismatchError]), the store does not change. If the blob exists, r is
// not read. Errors of r are returned unchanged; the caller adds the name of the blob.
func (s *Store) Put(ctx context.Context, digest string, r io.Reader, limit int64) error {
	path, err := s.blobPath(digest)
	if err != nil {
		return err
	}
	if s.Has(digest) {
		return nil
	}
	return s.writeAtomically(path, "blob-", func(f *os.File) error {
		v := NewVerifier(io.NopCloser(io.LimitReader(NewContextReader(ctx, r), limit+1)), digest, -1)
		n, err := io.Copy(f, v)
		if n > limit {
			return fmt.Errorf("blob %s is larger than %d bytes", digest, limit)
		}
		return err
	})
}

// writeAtomically writes a file through a temporary file whose name begins with prefix. write
// writes the content.
func (s *Store) writeAtomically(path, prefix string, write func(f *os.File) error) error {
	f, err := s.temp(prefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after success, the file has been renamed
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return s.commit(f, path)
}

// Has reports whether the store has the blob. The blob is not verified.
func (s *Store) Has(digest string) bool {
	_, err := s.Size(digest)
	return err == nil
}

// Size returns the size of the blob in bytes. If the store does not have it, the error is
// [fs.ErrNotExist].
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

// Get opens the blob for reading. The reader verifies the content: if it does not match the digest, the last
// read returns a [*CorruptError] instead of io.EOF and removes the blob. Do not trust the content before
// io.EOF; [Verifier.Drain] reads to the end. If the store does not have the blob, the error is
// [fs.ErrNotExist].
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
		_ = os.Remove(path) // ignore the error: another process may have removed it
		return &CorruptError{Digest: digest, Err: m}
	}
	return v, nil
}

// Read returns the verified content of the blob. It returns an error for more than limit bytes. Other errors
// are the same as for [Store.Get].
func (s *Store) Read(digest string, limit int64) ([]byte, error) {
	r, err := s.Get(digest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // ignore the error: the file was only read
	size, err := s.Size(digest)
	if err != nil {
		return nil, err
	}
	data := bytes.NewBuffer(make([]byte, 0, min(size, limit)+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("blob %s is larger than %d bytes", digest, limit)
	}
	return data.Bytes(), r.Drain()
}

// Remove removes the blob. It returns nil if the store does not have the blob.
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

// Temp creates an empty temporary file that only the owner can read. The file is in the store or, if the store
// is not writable, in the temporary directory of the system. The caller must close and remove it. [Open]
// removes leftover files in the store after a day.
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
	return f, wrapWriteError(err)
}

// wrapWriteError adds "writing to the store" to err. It returns nil if err is nil.
func wrapWriteError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing to the store: %w", err)
}

// commit writes the temporary file f to disk (fsync) and renames it to path.
func (s *Store) commit(f *os.File, path string) error {
	rel, err := filepath.Rel(s.dir, filepath.Dir(path))
	if err != nil {
		return wrapWriteError(err)
	}
	if _, err := s.mkdir(rel); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return wrapWriteError(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return wrapWriteError(err)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// mkdir creates a directory in the store and returns its path. A symbolic link on the path is an
// error.
func (s *Store) mkdir(names ...string) (string, error) {
	if s.fault != nil {
		return "", s.fault
	}
	if err := os.MkdirAll(s.dir, dirPerm); err != nil {
		return "", wrapWriteError(err)
	}
	dir := s.dir
	for _, name := range strings.Split(filepath.Join(names...), string(filepath.Separator)) {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", wrapWriteError(err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return "", wrapWriteError(err)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("writing to the store: %q is not a directory", dir)
		}
	}
	return dir, nil
}

// removeStale removes temporary files older than staleAge.
func (s *Store) removeStale() {
	dir := filepath.Join(s.dir, "tmp")
	for _, info := range listNewestFirst(dir) {
		if time.Since(info.ModTime()) > staleAge {
			_ = os.Remove(filepath.Join(dir, info.Name())) // ignore the error: the file is harmless
		}
	}
}

// blobPath returns the path of a blob. It returns an error for an invalid digest, which must not
// become part of a path.
func (s *Store) blobPath(digest string) (string, error) {
	if !imageref.IsDigest(digest) {
		return "", fmt.Errorf("digest %q: must be sha256: and 64 hexadecimal digits", digest)
	}
	if s.fault != nil {
		return "", s.fault
	}
	return filepath.Join(s.dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), nil
}

// openRegular opens a regular file. It returns an error for other files and symbolic links. If another process
// replaces the file in the meantime, openRegular tries again.
func openRegular(path string) (*os.File, error) {
	for range maxOpenAttempts {
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

// maxOpenAttempts is the maximum number of attempts to open a file that is being replaced.
const maxOpenAttempts = 100

// syncDir writes a directory to disk (fsync) after a file in it was renamed, if the system supports this.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // ignore the error: some file systems cannot, and blobs are verified when they are read
		d.Close()
	}
}

// NewContextReader returns a reader that returns the error of ctx once ctx is done.
func NewContextReader(ctx context.Context, r io.Reader) io.Reader { return ctxReader{ctx, r} }

// ctxReader reads until its context is done.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // the reader is used only during the call that ctx belongs to
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
