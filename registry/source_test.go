package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/registry"
)

func TestParseSource(t *testing.T) {
	d := "sha256:" + strings.Repeat("ab", 32)
	tests := []struct {
		in, text string // text: as String prints it, where it differs
		want     registry.Source
	}{
		{"quay.io/x/y:v1", "", registry.Source{registry.Remote, "quay.io/x/y", "v1", ""}},
		{"image:quay.io/x/y", "quay.io/x/y:latest", registry.Source{registry.Remote, "quay.io/x/y", "latest", ""}},
		{"image:quay.io/x/y@" + d, "quay.io/x/y@" + d, registry.Source{registry.Remote, "quay.io/x/y", "", d}},
		{"quay.io/x/y:v1@" + d, "quay.io/x/y@" + d, registry.Source{registry.Remote, "quay.io/x/y", "", d}},
		{"docker://quay.io/x/y:v1", "quay.io/x/y:v1", registry.Source{registry.Remote, "quay.io/x/y", "v1", ""}},
		{"localhost:5000/xy", "localhost:5000/xy:latest", registry.Source{registry.Remote, "localhost:5000/xy", "latest", ""}},
		{"busybox", "docker.io/library/busybox:latest", registry.Source{registry.Remote, "docker.io/library/busybox", "latest", ""}},
		{"oci://quay.io/x/y:v1", "quay.io/x/y:v1", registry.Source{registry.Remote, "quay.io/x/y", "v1", ""}},
		{"oci://localhost:5000/xy@" + d, "localhost:5000/xy@" + d, registry.Source{registry.Remote, "localhost:5000/xy", "", d}},
		{"oci:///srv/x", "", registry.Source{registry.Layout, "///srv/x", "", ""}},
		{"oci:catalogs/x", "", registry.Source{registry.Layout, "catalogs/x", "", ""}},
		{"oci:catalogs/x:v1", "", registry.Source{registry.Layout, "catalogs/x", "v1", ""}},
		{"oci:a:b/c", "", registry.Source{registry.Layout, "a:b/c", "", ""}},
		{"oci:catalogs/x@" + d, "", registry.Source{registry.Layout, "catalogs/x", "", d}},
		{"oci-archive:/tmp/x.tar:v1", "", registry.Source{registry.LayoutArchive, "/tmp/x.tar", "v1", ""}},
		{"docker-archive:x.tar", "", registry.Source{registry.DockerArchive, "x.tar", "", ""}},
		{"docker-archive:x.tar:quay.io/x/y:v1", "", registry.Source{registry.DockerArchive, "x.tar", "quay.io/x/y:v1", ""}},
	}
	for _, tt := range tests {
		got, err := registry.ParseSource(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.in, diff)
		}
		if tt.text == "" {
			tt.text = tt.in
		}
		if got.String() != tt.text {
			t.Errorf("%s: String %q", tt.in, got.String())
		}
	}
	for _, in := range []string{
		"", "image:", "oci:", "oci::v1", "docker-archive:", "oci:x@sha256:12", "quay.io/x@sha256:zz", "quay.io/X", "https://quay.io/x", "oci://", "oci://https://quay.io/x",
		"quay.io/x y", "quay.io/x@sha512:" + strings.Repeat("ab", 64), strings.Repeat("x", 5000),
	} {
		if got, err := registry.ParseSource(in); err == nil {
			t.Errorf("%.40q: got %+v, want an error", in, got)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"quay.io/x/y:v1", "oci:a:b", "oci-archive:x@sha256:" + strings.Repeat("0", 64), "docker-archive:x:y:z", "image://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		src, err := registry.ParseSource(s)
		if err != nil {
			return
		}
		again, err := registry.ParseSource(src.String())
		if err != nil || again != src {
			t.Errorf("%q reads as %+v, and its text %q as %+v, %v", s, src, src.String(), again, err)
		}
	})
}
