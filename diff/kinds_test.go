package diff

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// crdKinds returns the first 60 kinds, sorted by name, of the CRDs in the latest bundles.
func crdKinds(t testing.TB) []k8s.Ref {
	t.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(root, "latest.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out []k8s.Ref
	for files := tar.NewReader(z); len(out) < 60; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, ".yaml") || !strings.Contains(h.Name, "manifests/") {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := parseContents(File{Path: h.Name, Data: data})
		if err != nil {
			continue
		}
		for _, doc := range docs {
			if crd := k8s.ParseCRD(doc); k8s.IsCRD(doc) && len(crd.Versions) > 0 {
				ref := k8s.Ref{APIVersion: crd.Group + "/" + crd.Versions[0].Name, Kind: crd.Kind}
				if !slices.Contains(out, ref) {
					out = append(out, ref)
				}
			}
		}
	}
	return out
}

// TestGoldenEveryKindIsReported adds, changes and removes an object of every kind of the API server and of 60
// CRDs in the corpus, and checks that each change has a finding.
func TestGoldenEveryKindIsReported(t *testing.T) {
	var kinds []k8s.Ref
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" && !strings.HasSuffix(gvk.Kind, "Options") && !strings.HasSuffix(gvk.Kind, "List") {
			apiVersion, kind := gvk.ToAPIVersionAndKind()
			kinds = append(kinds, k8s.Ref{APIVersion: apiVersion, Kind: kind})
		}
	}
	custom := crdKinds(t)
	if custom != nil {
		var list strings.Builder
		for _, k := range custom {
			fmt.Fprintf(&list, "%s %s\n", k.APIVersion, k.Kind)
		}
		goldentest.Compare(t, filepath.Join("testdata", "kinds.txt"), []byte(list.String()))
	}
	base := mutantBase(t)
	for _, k := range append(kinds, custom...) {
		object := func(more string) map[string]any {
			return value(t, fmt.Sprintf("{apiVersion: %q, kind: %q, metadata: {name: zzz, namespace: ops}%s}", k.APIVersion, k.Kind, more)).(map[string]any)
		}
		o := object("")
		key := k8s.Object(o).Key()
		with := base.with(key, o)
		for what, states := range map[string][2]State{
			"added": {base, with}, "removed": {with, base}, "changed": {with, with.with(key, object(", zzz: 1"))}, "status": {with, with.with(key, object(", statusOfIt: 1"))},
		} {
			if text, is := findingsText(t, states[0], states[1]); !is {
				t.Errorf("%s %s: no finding: %s", k, what, text)
			}
		}
	}
	t.Logf("%d kinds of the API server, %d of CRDs", len(kinds), len(custom))
}
