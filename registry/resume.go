package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quayside/quayside/internal/store"
)

// goodProgress is how much an attempt must bring for the patience to start
// anew.
const goodProgress = 1 << 20

// resumingReader reads one blob, and goes on where it was where the connection
// drops or stalls, or where an earlier process was. It does not verify.
type resumingReader struct {
	ctx      context.Context //nolint:containedctx // lives no longer than the call it belongs to
	client   *Client
	repo     name.Repository
	digest   string
	size     int64
	progress func(done int64)

	body    io.ReadCloser
	bodyCtx context.Context //nolint:containedctx // of the request whose body this is
	cancel  context.CancelCauseFunc
	off     int64 // bytes of the blob that are there
	from    int64 // where this attempt began
	tries   int   // attempts without good progress
	begun   bool  // there was an answer
	resumed bool  // what is there is not of one piece
	err     error
}

// begin opens the transfer of what is missing where the first have bytes are
// there from an earlier run, and returns where Read begins: after them, or at 0
// where the registry cannot go on from there.
func (r *resumingReader) begin(have int64) (int64, error) {
	r.off, r.resumed = have, have > 0
	err := r.open()
	if have > 0 && unresumable(err) {
		r.off, r.resumed = 0, false
		err = r.open()
	}
	return r.off, err
}

// unresumable reports whether a registry that refuses to go on may yet send the
// whole.
func unresumable(err error) bool {
	var status *statusError
	var mismatch *store.MismatchError
	return errors.Is(err, errOtherPlace) || errors.As(err, &mismatch) ||
		errors.As(err, &status) && status.status == http.StatusBadRequest
}

var errOtherPlace = errors.New("resumed the transfer at another place")

// Read implements io.Reader.
func (r *resumingReader) Read(p []byte) (int, error) {
	for {
		if r.err != nil {
			return 0, r.err
		}
		if r.body == nil {
			r.err = r.open()
			continue
		}
		n, err := r.body.Read(p)
		r.off += int64(n)
		switch {
		case err == io.EOF && r.off >= r.size:
			r.err = io.EOF
		case err != nil:
			r.fail(err)
		}
		if n > 0 {
			r.progress(min(r.off, r.size))
			return n, nil
		}
	}
}

// Close ends the transfer.
func (r *resumingReader) Close() error {
	r.drop()
	r.err = errors.New("closed")
	return nil
}

// fail judges a broken body: the next Read resumes, or returns the error.
func (r *resumingReader) fail(err error) {
	err = stalledOr(r.bodyCtx, err, r.repo.RegistryStr())
	if r.off-r.from >= goodProgress {
		r.tries = 0
	}
	r.drop()
	r.tries++
	retry := r.client.Retry.withDefaults()
	switch {
	case r.ctx.Err() != nil:
		r.err = r.ctx.Err()
	case r.tries >= retry.Attempts && errors.Is(err, io.EOF): // ended in good order, but early
		r.err = fmt.Errorf("%s sent it %w", r.repo.RegistryStr(),
			&store.MismatchError{WantSize: r.size, GotSize: r.off})
	case r.tries >= retry.Attempts:
		r.err = fmt.Errorf("the transfer broke off %d times, last after %d of %d bytes: %w", r.tries, r.off, r.size, clean(err, r.repo.RegistryStr(), credential{}))
	default:
		r.err = sleep(r.ctx, min(retry.Wait<<(r.tries-1), retry.MaxWait))
	}
}

// open sends the request for what is still missing.
func (r *resumingReader) open() error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	header := http.Header{}
	if r.off > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.off, r.size-1)) // not all registries know open ends
	}
	res, err := r.client.get(ctx, r.repo, "blobs", r.digest, header)
	if err != nil {
		cancel(nil)
		return r.openFault(err)
	}
	first := !r.begun
	r.begun = true
	r.bodyCtx, r.cancel, r.from = ctx, cancel, r.off
	r.body = watch(res.Body, r.client.Retry.withDefaults().Stall, cancel)
	switch {
	case r.off == 0:
		return nil
	case res.StatusCode != http.StatusPartialContent && first: // it sends everything
		r.off, r.from, r.resumed = 0, 0, false
		return nil
	case res.StatusCode != http.StatusPartialContent:
		if _, err := io.CopyN(io.Discard, r.body, r.off); err != nil {
			r.fail(err)
			return r.err
		}
	case !strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", r.off)):
		r.drop()
		return fmt.Errorf("%s %w than byte %d", r.repo.RegistryStr(), errOtherPlace, r.off)
	}
	r.resumed = true
	return nil
}

// openFault explains why a transfer could not be resumed: a registry that has
// no such bytes holds less than the manifest says, and one that cannot be
// reached may be starting anew, so that it is tried again.
func (r *resumingReader) openFault(err error) error {
	var status *statusError
	if r.begun && !errors.As(err, &status) && r.ctx.Err() == nil {
		retry := r.client.Retry.withDefaults()
		if r.tries++; r.tries < retry.Attempts {
			return sleep(r.ctx, min(retry.Wait<<(r.tries-1), retry.MaxWait))
		}
	}
	if r.off > 0 && errors.As(err, &status) && status.status == http.StatusRequestedRangeNotSatisfiable {
		return fmt.Errorf("%s sent it %w", r.repo.RegistryStr(),
			&store.MismatchError{WantSize: r.size, GotSize: r.off})
	}
	return err
}

// drop ends the current attempt.
func (r *resumingReader) drop() {
	if r.body != nil {
		r.cancel(nil)
		r.body.Close()
		r.body = nil
	}
}
