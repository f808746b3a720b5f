package oci_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/oci"
)

func TestParseSource(t *testing.T) {
	d := "sha256:" + strings.Repeat("ab", 32)
	tests := []struct {
		in, text string // text: result of String, if different
		want     oci.Reference
	}{
		{"quay.io/x/y:v1", "", oci.Reference{oci.Remote, "quay.io/x/y", "v1", ""}},
		{"image:quay.io/x/y", "quay.io/x/y:latest", oci.Reference{oci.Remote, "quay.io/x/y", "latest", ""}},
		{"image:quay.io/x/y@" + d, "quay.io/x/y@" + d, oci.Reference{oci.Remote, "quay.io/x/y", "", d}},
		{"quay.io/x/y:v1@" + d, "quay.io/x/y@" + d, oci.Reference{oci.Remote, "quay.io/x/y", "", d}},
		{"docker://quay.io/x/y:v1", "quay.io/x/y:v1", oci.Reference{oci.Remote, "quay.io/x/y", "v1", ""}},
		{"localhost:5000/xy", "localhost:5000/xy:latest", oci.Reference{oci.Remote, "localhost:5000/xy", "latest", ""}},
		{"busybox", "docker.io/library/busybox:latest", oci.Reference{oci.Remote, "docker.io/library/busybox", "latest", ""}},
		{"oci://quay.io/x/y:v1", "quay.io/x/y:v1", oci.Reference{oci.Remote, "quay.io/x/y", "v1", ""}},
		{"oci://localhost:5000/xy@" + d, "localhost:5000/xy@" + d, oci.Reference{oci.Remote, "localhost:5000/xy", "", d}},
		{"oci:///srv/x", "", oci.Reference{oci.Layout, "///srv/x", "", ""}},
		{"oci:catalogs/x", "", oci.Reference{oci.Layout, "catalogs/x", "", ""}},
		{"oci:catalogs/x:v1", "", oci.Reference{oci.Layout, "catalogs/x", "v1", ""}},
		{"oci:a:b/c", "", oci.Reference{oci.Layout, "a:b/c", "", ""}},
		{"oci:catalogs/x@" + d, "", oci.Reference{oci.Layout, "catalogs/x", "", d}},
		{"oci-archive:/tmp/x.tar:v1", "", oci.Reference{oci.LayoutArchive, "/tmp/x.tar", "v1", ""}},
		{"docker-archive:x.tar", "", oci.Reference{oci.DockerArchive, "x.tar", "", ""}},
		{"docker-archive:x.tar:quay.io/x/y:v1", "", oci.Reference{oci.DockerArchive, "x.tar", "quay.io/x/y:v1", ""}},
	}
	for _, tt := range tests {
		got, err := oci.ParseReference(tt.in)
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
		if got, err := oci.ParseReference(in); err == nil {
			t.Errorf("%.40q: got %+v, want an error", in, got)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"quay.io/x/y:v1", "oci:a:b", "oci-archive:x@sha256:" + strings.Repeat("0", 64), "docker-archive:x:y:z", "image://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		src, err := oci.ParseReference(s)
		if err != nil {
			return
		}
		again, err := oci.ParseReference(src.String())
		if err != nil || again != src {
			t.Errorf("%q parses as %+v, but its String %q as %+v, %v", s, src, src.String(), again, err)
		}
	})
}
