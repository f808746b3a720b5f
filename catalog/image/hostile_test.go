package image

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// TestHostileRegistry reads hostile images from a registry. Reading must fail early, with the image in
// the error, and leave only verified blobs in the store.
func TestHostileRegistry(t *testing.T) {
	bomb := zip(t, tarball(t, file{Name: "bomb", Data: strings.Repeat("\x00", 1<<20)})[:512+1<<20])
	for _, tt := range []struct {
		name  string
		layer func() []byte
		want  string
	}{
		{"gzip bomb", func() []byte { return bytes.Repeat(bomb, 400) }, "too large"},
		{"a million entries", func() []byte {
			random := rand.New(rand.NewPCG(1, 2))
			entries := make([]file, 4000)
			for i := range entries { // incompressible names, because otherwise the size would be rejected first
				entries[i].Name = fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
			}
			return bytes.Repeat(zip(t, tarball(t, entries...)[:4000*512]), 251)
		}, "more than 100000 entries"},
		{"path traversal", func() []byte {
			return zip(t, tarball(t, file{Name: "configs/../../../../escaped", Data: "x"}))
		}, "points outside the image"},
		{"symbolic link", func() []byte {
			return zip(t, tarball(t, dir("configs"), symlink("configs/a", "../../../../etc"), file{Name: "configs/b", Data: "x"}))
		}, "points outside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.name == "a million entries" {
				t.Skip("packs half a gigabyte")
			}
			layer := tt.layer()
			srv := ocitest.New(t)
			ref := srv.Host + "/org/hostile:v1"
			home := t.TempDir()
			s, err := store.Open(filepath.Join(home, "a", "b", "c", "cache"))
			if err != nil {
				t.Fatal(err)
			}
			c := &oci.Client{Store: s}
			if _, err := c.Upload(t.Context(), "oci:"+layout(t, catalogLabels(), layer), ref); err != nil {
				t.Fatal(err)
			}
			im, err := Open(t.Context(), c, ref, OpenOptions{Limits: Limits{Entries: 100_000}})
			if err != nil {
				t.Fatal(err)
			}
			defer closeChecked(t, im)
			if fsys, err := im.FS(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), ref) {
				t.Errorf("got %v, %v, want %q", fsys, err, tt.want)
			}
			left := 0
			err = filepath.WalkDir(home, func(name string, e os.DirEntry, err error) error {
				if err == nil && !e.IsDir() && filepath.Base(filepath.Dir(name)) != "sha256" && filepath.Base(filepath.Dir(name)) != "tag" {
					t.Errorf("temporary file not removed: %s", name)
				} else if err == nil && !e.IsDir() {
					left++
				}
				return err
			})
			if err != nil || left < 3 {
				t.Errorf("%d files, %v", left, err)
			}
		})
	}
}
