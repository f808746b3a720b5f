package oci_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// The benchmarks pull the same image with this package and with the client of
// go-containerregistry, alternately, and report the ratio of the times. Both write the layers to
// disk, verified and synced.

const benchLayer = 8 << 20 // bytes of a layer

// benchImage pushes an image with layers that cannot be compressed.
func benchImage(b *testing.B, layers int) (*ocitest.Server, string) {
	b.Helper()
	server := ocitest.New(b)
	img := empty.Image
	random := rand.NewChaCha8([32]byte{})
	for range layers {
		data := make([]byte, benchLayer)
		_, _ = random.Read(data)
		var err error
		if img, err = mutate.AppendLayers(img, static.NewLayer(data, types.OCIUncompressedLayer)); err != nil {
			b.Fatal(err)
		}
	}
	ref := server.Host + "/bench/image:v1"
	to, err := name.ParseReference(ref)
	if err != nil {
		b.Fatal(err)
	}
	if err := remote.Write(to, img); err != nil {
		b.Fatal(err)
	}
	return server, ref
}

// pullInto pulls an image into a store at dir.
func pullInto(ctx context.Context, dir, ref string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	im, err := (&oci.Client{Store: s}).Open(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(im.Fetch(ctx), im.Close())
}

// pullByLibrary pulls an image's layers into files in dir, with the concurrency of this package.
func pullByLibrary(ctx context.Context, dir, ref string) error {
	from, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	img, err := remote.Image(from, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	if _, err := img.RawConfigFile(); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	slots := make(chan struct{}, 4)
	errs := make([]error, len(layers))
	var wg sync.WaitGroup
	for i, l := range layers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = saveLayer(filepath.Join(dir, fmt.Sprint(i)), l)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func saveLayer(path string, l v1.Layer) error {
	r, err := l.Compressed() // the reader verifies the layer
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// compareTimes runs both functions alternately and reports the ratio of their times.
func compareTimes(b *testing.B, own, library func(dir string) error) {
	b.Helper()
	var took [2]time.Duration
	for b.Loop() {
		for i, f := range []func(string) error{own, library} {
			dir := b.TempDir()
			start := time.Now()
			if err := f(dir); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(start)
			_ = os.RemoveAll(dir)
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-library")
}

// BenchmarkPull measures a pull without errors.
func BenchmarkPull(b *testing.B) {
	_, ref := benchImage(b, 4)
	compareTimes(b,
		func(dir string) error { return pullInto(b.Context(), dir, ref) },
		func(dir string) error { return pullByLibrary(b.Context(), dir, ref) })
}
