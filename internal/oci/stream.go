package oci

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/internal/store"
)

const maxZstdWindow = 128 << 20

// tarStream reads the uncompressed content of a layer. If the stored bytes are damaged, it returns
// the error about the damage instead of the error of decompressing them.
type tarStream struct {
	layer Layer
	raw   *store.Verifier
	dec   io.ReadCloser
	err   error // returned by all further calls of Read
}

func newTarStream(raw *store.Verifier, l Layer) (*tarStream, error) {
	dec, err := decompress(raw)
	if err != nil {
		return nil, storedError(raw, err)
	}
	if l.diff != "" {
		dec = store.NewVerifier(dec, l.diff, -1)
	}
	return &tarStream{layer: l, raw: raw, dec: dec}, nil
}

// Read implements io.Reader.
func (t *tarStream) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.dec.Read(p)
	if err != nil {
		if err = storedError(t.raw, err); !errors.Is(err, io.EOF) {
			err = t.layer.wrap(err)
		}
		t.err = err
	}
	return n, err
}

// Close closes the layer, without verifying the rest of the content.
func (t *tarStream) Close() error { return errors.Join(t.dec.Close(), t.raw.Close()) }

// storedError reads the remaining stored bytes to verify them. It returns the error of the
// verification or, if there is none, err, which may be io.EOF.
func storedError(raw *store.Verifier, err error) error {
	if damage := raw.Drain(); damage != nil {
		return damage
	}
	if errors.Is(err, io.EOF) {
		return err
	}
	var mismatch *store.MismatchError
	if errors.As(err, &mismatch) {
		return err
	}
	return fmt.Errorf("reading the compressed layer: %w", err)
}

// decompress returns a reader for the uncompressed content of r. It detects the compression format.
func decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(br)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	default:
		return io.NopCloser(br), nil
	}
}
