package oci_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// TestChart lists the versions of a chart in a registry, and opens one with a provenance file.
func TestChart(t *testing.T) {
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	repo := ocitest.New(t).Host + "/charts/lamp"
	chart := static.NewLayer([]byte("chart"), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	im, err := mutate.Append(empty.Image, mutate.Addendum{Layer: chart}, mutate.Addendum{Layer: static.NewLayer([]byte("signed"), "application/vnd.cncf.helm.chart.provenance.v1.prov")})
	fatal(err)
	for _, tag := range []string{"1.1.0", "1.0.0"} {
		ref, err := name.ParseReference(repo + ":" + tag)
		fatal(err)
		fatal(remote.Write(ref, im))
	}
	kept, err := store.Open(t.TempDir())
	fatal(err)
	for _, client := range []*oci.Client{{Store: kept}, {Store: kept, Offline: true}} {
		tags, err := client.Tags(t.Context(), repo)
		fatal(err)
		if want := []string{"1.0.0", "1.1.0"}; !slices.Equal(tags, want) {
			t.Errorf("got %q, want %q", tags, want)
		}
		opened, err := client.Open(t.Context(), repo+":1.0.0")
		fatal(err)
		if n := len(opened.Layers()); n != 1 {
			t.Errorf("got %d layers, want only the chart", n)
		}
	}
	var offline *oci.OfflineError
	if _, err := (&oci.Client{Store: kept, Offline: true}).Tags(t.Context(), repo+"/other"); !errors.As(err, &offline) {
		t.Errorf("got %v, want an offline error", err)
	}
}
