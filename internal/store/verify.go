package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// DigestOf returns the digest of data.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// MismatchError says that bytes are not those that their digest names.
type MismatchError struct {
	Got      string // digest; empty where the length alone tells
	WantSize int64  // -1 where it was not known
	GotSize  int64  // what was read; where more than WantSize, no more than one byte of the rest
}

// Error says what is wrong; the caller names the blob.
func (e *MismatchError) Error() string {
	switch {
	case e.WantSize >= 0 && e.GotSize < e.WantSize:
		return fmt.Sprintf("truncated: %d of %d bytes", e.GotSize, e.WantSize)
	case e.WantSize >= 0 && e.GotSize > e.WantSize:
		return fmt.Sprintf("longer than its %d bytes", e.WantSize)
	default:
		return "the content is not what the digest names: it is " + e.Got
	}
}

// CorruptError says that a blob in the store had lost its content. It has been
// removed: fetching it again is the remedy.
type CorruptError struct {
	Digest string
	Err    error
}

// Error names the blob.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("the stored copy of %s was damaged and has been removed: %v", e.Digest, e.Err)
}

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }

// Verifier reads on and hashes what passes. It never returns io.EOF for
// content that is not what the digest names.
type Verifier struct {
	r          io.ReadCloser
	h          hash.Hash
	digest     string
	size, n    int64
	err        error // sticky
	onMismatch func(*MismatchError) error
}

// NewVerifier returns a reader of r that ends in a [*MismatchError] unless r
// holds exactly size bytes of that digest. A negative size is one not known.
func NewVerifier(r io.ReadCloser, digest string, size int64) *Verifier {
	return &Verifier{r: r, h: sha256.New(), digest: digest, size: size}
}

// NewUnverified returns a reader of r for bytes that have no digest, where one
// is needed. Whoever uses it verifies what comes of them.
func NewUnverified(r io.ReadCloser) *Verifier { return &Verifier{r: r, size: -1} }

// Explain lets f say what a mismatch means for where the bytes come from, and
// returns v.
func (v *Verifier) Explain(f func(*MismatchError) error) *Verifier {
	v.onMismatch = f
	return v
}

// Read implements io.Reader.
func (v *Verifier) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	if v.h != nil {
		v.h.Write(p[:n])
	}
	v.n += int64(n)
	if v.size >= 0 && v.n > v.size {
		v.err = v.mismatch("")
		return 0, v.err
	}
	if errors.Is(err, io.EOF) {
		err = v.end()
	}
	v.err = err
	return n, err
}

// Drain reads to the end and returns nil where the content is what the digest
// names.
func (v *Verifier) Drain() error {
	if _, err := io.Copy(io.Discard, v); err != nil {
		return err
	}
	return nil
}

// Close closes what lies below. It does not verify.
func (v *Verifier) Close() error { return v.r.Close() }

// end judges all that was read.
func (v *Verifier) end() error {
	if v.h == nil {
		return io.EOF
	}
	got := "sha256:" + hex.EncodeToString(v.h.Sum(nil))
	if got == v.digest && (v.size < 0 || v.n == v.size) {
		return io.EOF
	}
	return v.mismatch(got)
}

func (v *Verifier) mismatch(got string) error {
	m := &MismatchError{Got: got, WantSize: v.size, GotSize: v.n}
	if v.onMismatch != nil {
		return v.onMismatch(m)
	}
	return m
}
