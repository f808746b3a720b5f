package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How much is kept of fetches that broke off.
const (
	partialAge   = 7 * 24 * time.Hour // what nobody went on with for this long goes
	maxPartials  = 32                 // files; beyond, the oldest go
	partialBytes = 16 << 30           // of all of them
	leastPartial = 64 << 10           // fewer bytes are fetched again
)

// Fetch keeps the blob of that digest and size. open is called at most once, with
// how many of its bytes an earlier fetch that broke off has left, and returns the
// rest and where that begins: there, or at 0 to begin anew. What was read when
// it breaks off, even by the death of the process, stays for the next fetch;
// nothing of it is seen by others until all of it has the digest. Bytes of
// another digest are a [*MismatchError] and do not stay. A blob that is already
// there is not fetched. An error of open or of its reader comes back as it is.
//
// Where another process fetches the same blob, each fetches for itself.
func (s *Store) Fetch(ctx context.Context, digest string, size int64, open func(have int64) (r io.Reader, from int64, err error)) error {
	path, err := s.blobPath(digest)
	if err != nil || s.Has(digest) {
		return err
	}
	p, err := s.partial(digest, size)
	if err != nil {
		return err
	}
	defer p.leave()
	if s.Has(digest) { // by now
		p.drop = true
		return nil
	}
	if p.have < size || p.got() != digest {
		if err := p.fetch(ctx, size, open); err != nil {
			return err
		}
	}
	if got := p.got(); got != digest || p.have != size {
		p.drop = p.have >= size
		return &MismatchError{Got: got, WantSize: size, GotSize: p.have}
	}
	return s.commitPartial(p, path)
}

// partial is a blob of which some bytes are there.
type partial struct {
	f    *os.File
	sum  hash.Hash // of what is there
	have int64     // bytes
	keep bool      // its name is one that the next fetch finds
	drop bool      // it is of no use to anybody
	gone bool      // it has become the blob
}

// partial opens what is there of a blob, for this process alone. Where another
// one has it, or the system has no locks, it is a new temporary file.
func (s *Store) partial(digest string, size int64) (*partial, error) {
	f, err := s.lockPartial(digest)
	keep := err == nil
	if errors.Is(err, errBusy) {
		f, err = s.temp("blob-")
	}
	if err != nil {
		return nil, err
	}
	p := &partial{f: f, keep: keep, sum: sha256.New()}
	if p.have, err = io.Copy(p.sum, io.LimitReader(f, size+1)); err != nil {
		err = fmt.Errorf("reading from the store: %w", err)
	} else if p.have > size {
		err = p.restart()
	}
	if err != nil {
		p.leave()
		return nil, err
	}
	s.prunePartials(maxPartials, partialBytes)
	return p, nil
}

// fetch adds what is missing.
func (p *partial) fetch(ctx context.Context, size int64, open func(int64) (io.Reader, int64, error)) error {
	if p.have == size { // of other bytes
		if err := p.restart(); err != nil {
			return err
		}
	}
	r, from, err := open(p.have)
	if err != nil {
		return err
	}
	if from != p.have {
		if err := p.restart(); err != nil {
			return err
		}
	}
	return p.fill(Until(ctx, r), size)
}

// restart forgets what is there.
func (p *partial) restart() error {
	p.sum.Reset()
	p.have = 0
	_, err := p.f.Seek(0, io.SeekStart)
	return writing(errors.Join(err, p.f.Truncate(0)))
}

// fill appends what r holds, and no more than one byte beyond size.
func (p *partial) fill(r io.Reader, size int64) error {
	buf := make([]byte, 64<<10)
	for p.have <= size {
		n, err := r.Read(buf[:min(int64(len(buf)), size+1-p.have)])
		if _, err := p.f.Write(buf[:n]); err != nil {
			return writing(err)
		}
		p.sum.Write(buf[:n])
		p.have += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// got returns the digest of what is there.
func (p *partial) got() string { return "sha256:" + hex.EncodeToString(p.sum.Sum(nil)) }

// leave ends the use of the file. What is worth it stays.
func (p *partial) leave() {
	if !p.gone && (p.drop || !p.keep || p.have < leastPartial) {
		_ = os.Remove(p.f.Name()) // harmless where it stays
	}
	_ = p.f.Close() // which ends the lock, too
}

// commitPartial makes the file the blob at path. The lock is held until it has
// moved, so that nobody takes it for half a blob.
func (s *Store) commitPartial(p *partial, path string) error {
	if !p.keep {
		return s.commit(p.f, path)
	}
	if err := s.settle(p.f, path); err != nil {
		return err
	}
	err := rename(p.f, path)
	p.gone = err == nil
	return err
}

// errBusy says that another process holds the file.
var errBusy = errors.New("in use by another process")

// lockPartial opens the file of a blob that is being fetched, and locks it. The
// error is errBusy where somebody else has.
func (s *Store) lockPartial(digest string) (*os.File, error) {
	dir, err := s.mkdir("partial")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:"))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, filePerm)
	if err != nil {
		return nil, errBusy // a link, a directory, a file of another user: not for us
	}
	if err := lockFile(f, path); err != nil {
		f.Close()
		return nil, errBusy
	}
	return f, nil
}

// lockFile locks an open file and sees that it still is what path names: who
// held the lock before may have moved or removed it.
func lockFile(f *os.File, path string) error {
	if err := tryLock(f); err != nil {
		return err
	}
	at, err := os.Lstat(path)
	if err != nil {
		return err
	}
	held, err := f.Stat()
	if err != nil {
		return err
	}
	if !held.Mode().IsRegular() || !os.SameFile(at, held) {
		return errBusy
	}
	return nil
}

// prunePartials removes what is too old, and beyond most files and bytes what
// is oldest. What a process is at work on stays.
func (s *Store) prunePartials(most int, bytes int64) {
	dir := filepath.Join(s.dir, "partial")
	files := slices.DeleteFunc(newest(dir), func(f fs.FileInfo) bool { return !f.Mode().IsRegular() })
	for i, info := range files {
		if bytes -= info.Size(); i >= most || bytes < 0 || time.Since(info.ModTime()) > partialAge {
			removePartial(filepath.Join(dir, info.Name()))
		}
	}
}

// removePartial removes a file that nobody has locked.
func removePartial(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if lockFile(f, path) == nil {
		_ = os.Remove(path) // harmless where it stays
	}
}
