// Package registry opens, packs and pushes container images.
//
// An image comes from a registry, an OCI layout directory, or an archive of
// either kind; see [ParseSource] for how each is written. Whatever is read is
// verified against its digest. Blobs of a registry go into the
// content-addressed store and are taken from there the next time, so that an
// image that was read once can be read again with [Client.Offline] set, which
// never opens a socket.
//
// The package refuses what is not an image, what is larger than [Limits], and
// to send credentials anywhere but to the registry they belong to. It prints
// nothing and reads no environment. Requests are those of go-containerregistry,
// carried by a transport of its own.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Client], [Client.Open] and [Image].
package registry

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/quayside/quayside/internal/store"
)

// Client opens and pushes images. The zero value reads layouts and archives;
// reading from a registry needs a Store. It may be used by several goroutines
// once its fields are set, and must not be copied.
type Client struct {
	Store       *store.Store   // where what registries send is kept
	Vendored    string         // an OCI layout that is looked into after the store and before registries, as [Client.Vendor] makes it; may be absent
	Offline     bool           // never open a socket: what the store does not hold is an [*OfflineError]
	Files       fs.FS          // where layouts and archives lie, the vendored one too; nil: on disk
	Dir         string         // what relative paths of layouts and archives are relative to, in Files or on disk; default: the top, the current directory
	Platform    string         // "linux/arm64": which image of a multi-platform index; default: see [Client.Open]
	Credentials *Credentials   // nil: anonymous
	Insecure    []string       // "registry.corp:5000": hosts that may speak HTTP or show any certificate; loopback may always speak HTTP
	CertDirs    []string       // directories that hold <host[:port]>/*.crt, *.cert and *.key, as docker's and podman's certs.d
	Mirrors     Mirrors        // asked before the registries that references name
	UserAgent   string         // default: "quayside"
	Limits      Limits         // zero fields: the defaults
	Retry       Retry          // zero fields: the defaults
	Progress    func(Progress) // called as bytes arrive, by one goroutine at a time; may be nil

	conns    sync.Map // *conn by repository
	locks    sync.Map // *sync.Mutex by what one goroutine fetches, and the others find done
	uploaded sync.Map // registry and digest → the repository there that was given the blob
	progress sync.Mutex
}

// Limits bounds what a stranger can make the client read.
type Limits struct {
	Manifest   int64 // bytes of one manifest or index; default 4 MiB
	Config     int64 // bytes of an image's configuration; default 4 MiB
	Layers     int   // layers of one image; default 256
	LayerBytes int64 // bytes of one layer as it is transferred; default 4 GiB
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

// Retry says how patient the client is. Only what may pass is tried again: a
// dropped or stalled connection, 408, 429 and 5xx; never 401, 403 or 404.
type Retry struct {
	Attempts int           // of one request, the first included; default 4
	Wait     time.Duration // before the second attempt, doubled before each further one; default 500 ms
	MaxWait  time.Duration // the longest Retry-After that is honoured; default 1 minute
	Stall    time.Duration // without an answer, or with less than 1 KiB/s, for this long: the attempt has failed; default 30 s
	Parallel int           // layers fetched at once; default 4
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

// Progress tells how far the transfer of one blob is. Where the layers of an
// image are fetched together, each missing one is announced at the outset.
type Progress struct {
	Image  string // as it was asked for
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

// Open resolves source (see [ParseSource]) to an image. Its manifest and
// configuration are read and verified, its layers are not touched.
//
// Of a multi-platform index the image for Platform is taken. Without one it is
// the image for linux/amd64, else the first of the index that is for linux,
// else the first: what this project reads from images (catalogs, bundles) is
// the same on every platform.
//
// A tag is resolved by the registry each time. With Offline it is what the
// registry last said, and an [*OfflineError] where it was never asked; a
// caller that must not depend on that asks by digest.
func (c *Client) Open(ctx context.Context, source string) (*Image, error) {
	src, err := ParseSource(source)
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
		return nil, errors.Join(wrap(im.name, err), im.Close())
	}
	return im, nil
}

// openManifest opens what has a manifest.
func (c *Client) openManifest(ctx context.Context, im *Image, src Source) error {
	from, digest, data, closer, err := c.root(ctx, src)
	if err != nil {
		return err
	}
	if closer != nil {
		im.closers = append(im.closers, closer)
	}
	if r, ok := from.(*upstream); ok {
		im.fetch = func(ctx context.Context) error { return r.fetchAll(ctx, im.layers) }
	}
	return c.load(ctx, im, from, digest, data)
}

// lockFor returns the lock under which what a key names is made, once.
func (c *Client) lockFor(key string) *sync.Mutex {
	lock, _ := c.locks.LoadOrStore(key, new(sync.Mutex))
	return lock.(*sync.Mutex)
}
