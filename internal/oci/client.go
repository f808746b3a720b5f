// Package oci opens, packs and pushes container images.
//
// An image comes from a registry, an OCI layout directory, or an archive. [ParseReference] describes the
// syntax of references. All content is verified against its digest. Blobs from a registry are stored in a
// content-addressed cache, so that an image can be read again with [Client.Offline], which opens no network
// connection.
//
// Content that is not an image or that exceeds [Limits] is rejected. Credentials for a registry are sent only
// to this registry. The package prints nothing and does not read the environment. It uses
// go-containerregistry with its own transport.
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

// Client opens and pushes images. The zero value can open layouts and archives. Registries also
// need a Store. A Client is safe for concurrent use once its fields are set. It must not be copied.
type Client struct {
	Store       *store.Store   // cache for content from registries
	Vendored    string         // OCI layout from [Client.Vendor], read after the store and before registries; it need not exist
	Offline     bool           // open no network connection; content that is not available locally causes an [*OfflineError]
	Lookup      Lookup         // opens layouts and archives, including Vendored; nil: by their paths on disk
	Platform    string         // image to choose from a multi-platform index, such as "linux/arm64"; default: see [Client.Open]
	Credentials *Credentials   // nil: anonymous access
	Insecure    []string       // hosts ("registry.corp:5000") that may use HTTP or an untrusted certificate; loopback addresses may always use HTTP
	CertDirs    []string       // directories with <host[:port]>/*.crt, *.cert and *.key, as certs.d of docker and podman
	Mirrors     Mirrors        // tried before the registry in a reference
	UserAgent   string         // default: "quayside"
	Limits      Limits         // a zero field means the default
	Retry       Retry          // a zero field means the default
	Progress    func(Progress) // called during transfers, by one goroutine at a time; may be nil

	conns    sync.Map // repository → *conn
	locks    sync.Map // key of a task → *sync.Mutex, so that each task is done once
	uploaded sync.Map // registry and digest → repository that has the blob
	progress sync.Mutex
}

// Lookup opens a file or directory. For a directory, files is the directory. For a file, files is
// the directory that contains it, and base is its name.
type Lookup func(name string) (files fs.FS, base string, err error)

// Limits bounds the input from untrusted sources. A zero field means the default.
type Limits struct {
	Manifest   int64 // bytes of one manifest or index; default 4 MiB
	Config     int64 // bytes of an image configuration; default 4 MiB
	Layers     int   // layers of one image; default 256
	LayerBytes int64 // bytes of one layer as stored in the registry; default 4 GiB
	ImageBytes int64 // bytes of all layers of one image together; default 8 GiB
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

// Retry configures timeouts and retries. Only temporary errors are retried: a lost or stalled connection,
// and the statuses 408, 429 and 5xx. The statuses 401, 403 and 404 are not retried. A zero field means the
// default.
type Retry struct {
	Attempts int           // attempts for each request, including the first; default 4
	Wait     time.Duration // delay before the second attempt, doubled for each further one; default 500 ms
	MaxWait  time.Duration // longest Retry-After that is obeyed; default 1 minute
	Stall    time.Duration // an attempt fails after this time without a response, or at less than 1 KiB/s; default 30 s
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

// Progress describes the transfer of one blob. Each missing layer of an image is also reported before the
// first layer is fetched, so that the total size is known.
type Progress struct {
	Image  string // reference as requested
	Digest string // digest of the blob
	Done   int64  // bytes transferred
	Total  int64  // size of the blob in bytes
}

func (c *Client) report(p Progress) {
	if c.Progress == nil {
		return
	}
	c.progress.Lock()
	defer c.progress.Unlock()
	c.Progress(p)
}

// Open opens the image that source refers to (see [ParseReference]). It reads and verifies the
// manifest and the configuration, but no layers.
//
// From a multi-platform index it chooses the image for Platform. If Platform is empty, it chooses
// linux/amd64, or else the first image for linux, or else the first image: catalogs and bundles are
// the same on every platform.
//
// The registry resolves a tag on each call. With Offline, Open uses the last known digest of the tag, and
// returns an [*OfflineError] for an unknown tag.
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

// openManifest opens an image that has a manifest, as opposed to a docker archive.
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

// lockFor returns the mutex for a task that must be done only once.
func (c *Client) lockFor(key string) *sync.Mutex {
	lock, _ := c.locks.LoadOrStore(key, new(sync.Mutex))
	return lock.(*sync.Mutex)
}
