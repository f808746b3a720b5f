package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

const refName = "org.opencontainers.image.ref.name"

// files gives access to the files of a layout or archive.
type files interface {
	// open opens the file at a slash-separated path.
	open(path string) (io.ReadCloser, error)
	Close() error
}

// layout is the origin of the images in an OCI layout, either a directory or an archive.
type layout struct {
	files files
	limit int64 // maximum bytes of a manifest
}

// find opens a layout or archive by name. If l is nil, name is a path on disk.
func (l Lookup) find(name string) (files fs.FS, base string, err error) {
	if l != nil {
		return l(name)
	}
	return filetree.LookupIn("")(name)
}

// openDir opens the directory of a layout.
func (l Lookup) openDir(name string) (files, error) {
	dir, base, err := l.find(name)
	if err == nil && base != "" {
		err = errors.New("not a directory")
	}
	if at := new(fs.PathError); errors.As(err, &at) {
		err = &fs.PathError{Op: "open", Path: at.Path, Err: at.Err}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the layout: %w", err)
	}
	return dirFiles{dir}, nil
}

// root returns the digest and the content of the manifest that src refers to.
func (l *layout) root(ctx context.Context, src Reference) (string, []byte, error) {
	if src.Digest != "" {
		data, err := l.manifest(ctx, src.Digest)
		return src.Digest, data, err
	}
	data, err := l.read("index.json")
	if err != nil {
		return "", nil, fmt.Errorf("not an OCI layout: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return "", nil, fmt.Errorf("index.json: %w", err)
	}
	digest, err := findEntry(index.Manifests, src.Tag)
	if err != nil {
		return "", nil, fmt.Errorf("index.json: %w", err)
	}
	data, err = l.manifest(ctx, digest)
	return digest, data, err
}

// findEntry returns the digest of the index entry with this tag. Without a tag, the layout must
// contain a single image.
func findEntry(ms []v1.Descriptor, tag string) (string, error) {
	var names []string
	for _, d := range ms {
		if tag != "" && d.Annotations[refName] == tag {
			return d.Digest.String(), nil
		}
		names = append(names, d.Annotations[refName])
	}
	switch {
	case tag == "" && len(ms) == 1:
		return ms[0].Digest.String(), nil
	case len(ms) == 0:
		return "", errors.New("the layout contains no image")
	case tag == "":
		return "", fmt.Errorf("the layout contains %d images: choose one of %s", len(ms), joinNames(names))
	default:
		return "", fmt.Errorf("image %q not found (available: %s)", tag, joinNames(names))
	}
}

// read returns the content of a file. It returns an error if the file exceeds the size limit of manifests.
func (l *layout) read(path string) ([]byte, error) {
	f, err := l.files.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, l.limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > l.limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, l.limit)
	}
	return data, nil
}

// absentError means that the layout does not contain a manifest. It matches fs.ErrNotExist.
type absentError struct{ digest string }

func (e *absentError) Error() string {
	return fmt.Sprintf("manifest %s: not in the layout", e.digest)
}

// Is reports whether target is fs.ErrNotExist.
func (e *absentError) Is(target error) bool { return target == fs.ErrNotExist }

func (l *layout) manifest(_ context.Context, digest string) ([]byte, error) {
	path, err := blobPath(digest)
	if err != nil {
		return nil, err
	}
	data, err := l.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &absentError{digest}
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", digest, err)
	}
	if got := store.DigestOf(data); got != digest {
		return nil, fmt.Errorf("manifest %s: %w", digest, &store.MismatchError{Got: got, WantSize: -1})
	}
	return data, nil
}

func (l *layout) blob(_ context.Context, digest string, size int64) (*store.Verifier, error) {
	path, err := blobPath(digest)
	if err != nil {
		return nil, err
	}
	f, err := l.files.open(path)
	if err != nil {
		return nil, err
	}
	return store.NewVerifier(f, digest, size), nil
}

// blobPath returns the path of a blob in a layout. It returns an error for an invalid digest, which
// must not become part of a path.
func blobPath(digest string) (string, error) {
	if !imageref.IsDigest(digest) {
		return "", fmt.Errorf("digest %q: only sha256 is supported", digest)
	}
	return "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:"), nil
}

// dirFiles are the files of a layout directory.
type dirFiles struct{ fs.FS }

// Close does nothing.
func (d dirFiles) Close() error { return nil }

func (d dirFiles) open(path string) (io.ReadCloser, error) { return openRegular(d, path) }

// joinNames joins names for a message. Empty names are omitted, and long lists are cut.
func joinNames(names []string) string {
	const most = 10
	var some []string
	for _, n := range names {
		if n != "" {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		return "no image has a name"
	}
	if len(some) > most {
		some = append(some[:most:most], fmt.Sprintf("and %d more", len(some)-most))
	}
	return strings.Join(some, ", ")
}
