package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// DigestOf returns the sha256 digest of data.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// MismatchError means that content does not match its digest or size.
type MismatchError struct {
	Got      string // actual digest; "" if the content is too long
	WantSize int64  // expected size in bytes; negative if unknown
	GotSize  int64  // number of bytes read
}

// Error returns the difference. The caller adds the name of the blob.
func (e *MismatchError) Error() string {
	switch {
	case e.WantSize >= 0 && e.GotSize < e.WantSize:
		return fmt.Sprintf("truncated: %d of %d bytes", e.GotSize, e.WantSize)
	case e.WantSize >= 0 && e.GotSize > e.WantSize:
		return fmt.Sprintf("longer than %d bytes", e.WantSize)
	default:
		return "digest mismatch: the content is " + e.Got
	}
}

// CorruptError means that a blob in the store is damaged. The blob has been removed; fetch it
// again.
type CorruptError struct {
	Digest string
	Err    error
}

// Error describes the mismatch with the blob's digest.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("damaged copy of %s removed from the cache: %v", e.Digest, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Verifier is a reader that verifies the content. It never returns io.EOF if the content does not
// match the digest.
type Verifier struct {
	r          io.ReadCloser
	h          hash.Hash
	digest     string
	size, n    int64
	err        error // returned by all further reads
	onMismatch func(*MismatchError) error
}

// NewVerifier returns a reader for the content of r. At the end, Read returns a [*MismatchError] unless r has
// exactly size bytes with this digest. A negative size means that the size is unknown.
func NewVerifier(r io.ReadCloser, digest string, size int64) *Verifier {
	return &Verifier{r: r, h: sha256.New(), digest: digest, size: size}
}

// NewUnverified returns a Verifier that does not verify r, for content whose digest is unknown. The caller must
// verify the result that it computes from the content.
func NewUnverified(r io.ReadCloser) *Verifier { return &Verifier{r: r, size: -1} }

// OnMismatch sets a function that converts a MismatchError to another error. It returns v.
func (v *Verifier) OnMismatch(f func(*MismatchError) error) *Verifier {
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

// Drain reads to the end. It returns nil if the content matches the digest.
func (v *Verifier) Drain() error {
	if _, err := io.Copy(io.Discard, v); err != nil {
		return err
	}
	return nil
}

// Close closes the underlying reader, without verifying the rest of the content.
func (v *Verifier) Close() error { return v.r.Close() }

// end returns io.EOF if the content matches the digest and the size, otherwise a MismatchError.
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
