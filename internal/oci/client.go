// Package oci opens, packs and pushes container images.
//
// An image comes from a registry, an OCI layout directory, or an archive of either kind; see
// [ParseReference] for the syntax. All content is verified against its digest. Blobs from a registry
// are cached in the content-addressed store, so that an image can be read again with
// [Client.Offline] set, which never opens a socket.
//
// The package rejects content that is not an image or exceeds [Limits], and sends credentials only
// to the registry they belong to. It prints nothing and does not read the environment. It uses
// go-containerregistry with a custom transport.
//
// The API is unstable: exported names may change in any release.
//
// Start from [Client], [Client.Open] and [Image].
package oci

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/quayside/quayside/internal/store"
)

// Client opens and pushes images. The zero value opens layouts and archives; registries also
// need a Store. It is safe for concurrent use after its fields are set, and must not be copied.
type Client struct {
	Store       *store.Store   // cache of content from registries
	Vendored    string         // OCI layout to read after the store and before registries, as created by [Client.Vendor]; it need not exist
	Offline     bool           // never open a socket; content that is not available locally is an [*OfflineError]
	Lookup      Lookup         // finds layouts and archives, including the vendored layout; nil: by path on disk
	Platform    string         // "linux/arm64": image to choose from a multi-platform index; default: see [Client.Open]
	Credentials *Credentials   // nil: anonymous
	Insecure    []string       // hosts that may use HTTP or an untrusted certificate, such as "registry.corp:5000"; loopback may always use HTTP
	CertDirs    []string       // directories with <host[:port]>/*.crt, *.cert and *.key, like certs.d of docker and podman
	Mirrors     Mirrors        // tried before the registries in references
	UserAgent   string         // default: "quayside"
	Limits      Limits         // zero fields: the defaults
	Retry       Retry          // zero fields: the defaults
	Progress    func(Progress) // called during transfers, by one goroutine at a time; may be nil

	conns    sync.Map // *conn by repository
	locks    sync.Map // *sync.Mutex by key of the work, to do it once
	uploaded sync.Map // registry and digest → repository with the blob
	progress sync.Mutex
}

// Lookup finds a directory or a file. For a directory it returns its files, for a file those of
// its directory and the base name.
type Lookup func(name string) (files fs.FS, base string, err error)

// Limits are the limits for input from untrusted sources.
type Limits struct {
	Manifest   int64 // bytes of one manifest or index; default 4 MiB
	Config     int64 // bytes of an image's configuration; default 4 MiB
	Layers     int   // layers of one image; default 256
	LayerBytes int64 // stored bytes of one layer; default 4 GiB
	ImageBytes int64 // bytes of all layers of one image; default 8 GiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Manifest:   cmp.Or(l.Manifest, 4<<20),
		Config:     cmp.Or(l.Config, 4<<20),
		Layers:     cmp.Or(l.Layers, 256),
		LayerBytes: cmp.Or(l.LayerBytes, 4<<30),
		ImageBytes: cmp.Or(l.ImageBytes, 8<<30),
	}
}

// Retry configures timeouts and retries. Only temporary errors are retried: a lost or stalled
// connection, 408, 429 and 5xx, but not 401, 403 or 404.
type Retry struct {
	Attempts int           // for each request, including the first; default 4
	Wait     time.Duration // before the second attempt, doubled before each further one; default 500 ms
	MaxWait  time.Duration // maximum Retry-After; default 1 minute
	Stall    time.Duration // an attempt fails after this long without an answer or below 1 KiB/s; default 30 s
	Parallel int           // layers fetched concurrently; default 4
}

func (r Retry) withDefaults() Retry {
	return Retry{
		Attempts: cmp.Or(r.Attempts, 4),
		Wait:     cmp.Or(r.Wait, 500*time.Millisecond),
		MaxWait:  cmp.Or(r.MaxWait, time.Minute),
		Stall:    cmp.Or(r.Stall, 30*time.Second),
		Parallel: cmp.Or(r.Parallel, 4),
	}
}

// Progress is the progress of transferring one blob. Before layers are fetched together, each
// missing one is reported once.
type Progress struct {
	Image  string // reference as requested
	Digest string // of the blob
	Done   int64  // bytes
	Total  int64  // bytes
}

func (c *Client) report(p Progress) {
	if c.Progress == nil {
		return
	}
	c.progress.Lock()
	defer c.progress.Unlock()
	c.Progress(p)
}

// Open opens the image of source (see [ParseReference]). It reads and verifies
// the manifest and configuration but no layers.
//
// From a multi-platform index it chooses the image for Platform. If Platform
// is empty, it chooses linux/amd64, else the first image for linux, else the
// first: catalogs and bundles are the same on every platform.
//
// A tag is resolved by the registry each time. With Offline, the last known
// digest is used, and an unknown tag is an [*OfflineError]. To avoid this
// dependency, open images by digest.
func (c *Client) Open(ctx context.Context, source string) (*Image, error) {
	src, err := ParseReference(source)
	if err != nil {
		return nil, err
	}
	im := &Image{name: src.String()}
	if src.Kind == DockerArchive {
		err = c.openDockerArchive(ctx, im, src)
	} else {
		err = c.openManifest(ctx, im, src)
	}
	if err != nil {
		return nil, errors.Join(wrapImageError(im.name, err), im.Close())
	}
	return im, nil
}

// openManifest opens an image with a manifest.
func (c *Client) openManifest(ctx context.Context, im *Image, src Reference) error {
	from, digest, data, closer, err := c.openRoot(ctx, src)
	if err != nil {
		return err
	}
	if closer != nil {
		im.closers = append(im.closers, closer)
	}
	if r, ok := from.(*upstream); ok {
		im.fetch = func(ctx context.Context) error { return r.fetchAll(ctx, im.layers) }
	}
	return c.loadImage(ctx, im, from, digest, data)
}

// lockFor returns the lock for a key of work to do once.
func (c *Client) lockFor(key string) *sync.Mutex {
	lock, _ := c.locks.LoadOrStore(key, new(sync.Mutex))
	return lock.(*sync.Mutex)
}
