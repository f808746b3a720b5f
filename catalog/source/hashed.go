package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync"

	"github.com/quayside/quayside/catalog"
)

// hashedFS hashes the files that are read from it while they are read, so that
// a catalog need not be read twice.
type hashedFS struct {
	fsys fs.FS
	mu   sync.Mutex
	sums map[string][sha256.Size]byte // of the files that were read to their end
	off  bool                         // nothing is hashed but by digest
}

func newHashedFS(fsys fs.FS) *hashedFS {
	return &hashedFS{fsys: fsys, sums: map[string][sha256.Size]byte{}}
}

// Open opens a file.
func (h *hashedFS) Open(name string) (fs.File, error) {
	f, err := h.fsys.Open(name)
	if err != nil || h.off {
		return f, err
	}
	return &hashedFile{File: f, fs: h, name: name, sum: sha256.New()}, nil
}

// ReadDir lists a directory.
func (h *hashedFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(h.fsys, name) }

// Stat describes a file, and what a link points to.
func (h *hashedFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(h.fsys, name) }

// Lstat describes a file, or a link itself.
func (h *hashedFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(h.fsys, name) }

// ReadLink returns what a link points to.
func (h *hashedFS) ReadLink(name string) (string, error) { return fs.ReadLink(h.fsys, name) }

type hashedFile struct {
	fs.File
	fs   *hashedFS
	name string
	sum  hash.Hash
}

// Read reads and hashes.
func (f *hashedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.sum.Write(p[:n])
	if err == io.EOF { //nolint:errorlint // readers return io.EOF itself
		f.fs.mu.Lock()
		defer f.fs.mu.Unlock()
		f.fs.sums[f.name] = [sha256.Size]byte(f.sum.Sum(nil))
	}
	return n, err
}

// ReadAt reads a part, of which no hash is made.
func (f *hashedFile) ReadAt(p []byte, at int64) (int, error) {
	if r, ok := f.File.(io.ReaderAt); ok {
		return r.ReadAt(p, at)
	}
	return 0, errors.ErrUnsupported
}

// digest returns a digest over the names and bytes of every file, in the order
// of names. It reads those that were not read before.
func (h *hashedFS) digest() (catalog.Digest, error) {
	h.off = false
	var all []byte
	buf := make([]byte, 256<<10)
	err := fs.WalkDir(h.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if _, ok := h.sum(name); !ok {
			if err := h.readAll(name, buf); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
		sum, _ := h.sum(name)
		all = fmt.Appendf(all, "%x %q\n", sum, name)
		return nil
	})
	return catalog.DigestOf(all), err
}

func (h *hashedFS) sum(name string) ([sha256.Size]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum, ok := h.sums[name]
	return sum, ok
}

func (h *hashedFS) readAll(name string, buf []byte) error {
	f, err := h.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, f, buf) // which has a smaller buffer of its own
	return err
}
