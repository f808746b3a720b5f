package image

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/oci"
)

// BenchmarkFS reads a catalog of 64 MB in an image with an irrelevant layer of the same size.
func BenchmarkFS(b *testing.B) {
	var catalog, other []file
	for i := range 64 {
		var text strings.Builder
		for j := 0; text.Len() < 1<<20; j++ {
			fmt.Fprintf(&text, `{"schema":"olm.bundle","package":"p%d","name":"p%d.v1.%d.0","image":"quay.io/x/y@sha256:%064x"}`+"\n", i, i, j, i*j*7919)
		}
		catalog = append(catalog, file{Name: fmt.Sprintf("configs/p%d/catalog.json", i), Data: text.String()})
		other = append(other, file{Name: fmt.Sprintf("usr/lib/p%d", i), Data: text.String()})
	}
	dir := layout(b, catalogLabels(), zip(b, tarball(b, catalog...)), zip(b, tarball(b, other...)))
	b.SetBytes(128 << 20)
	for b.Loop() {
		im, err := Open(b.Context(), new(oci.Client), "oci:"+dir, OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		fsys, err := im.FS(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if names, err := fs.ReadDir(fsys, "."); err != nil || len(names) != 64 {
			b.Fatal(len(names), err)
		}
		if err := im.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
