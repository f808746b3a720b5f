package cluster_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestArchives applies a tenth of the bundles in the archives of the corpus to a real API server,
// each separately, server-side and with strict validation. The server may reject only the objects
// that quayside warns about, and objects whose CRDs are missing.
func TestArchives(t *testing.T) {
	t.Parallel() // mostly waits; has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to apply")
	}
	cluster := harness.Start(t, harness.Options{})
	program := build(t)
	kept := names(prerequisites(t, cluster, program, corpus))
	for _, archive := range []string{"latest", "v1beta1"} {
		bundles := unpack(t, filepath.Join(corpus, archive+".tar.zst"))
		for n, name := range slices.Sorted(maps.Keys(bundles)) {
			t.Run(archive+"/"+name, func(t *testing.T) {
				pkg, _, _ := strings.Cut(name, "/")
				namespace := fmt.Sprintf("%s-%d", archive, n) // one namespace per bundle, because deleting a namespace takes time
				q := workspaceOf(t, program, bundles[name], pkg, namespace)
				_, warnings, _ := q.run(t, "render", "--offline", "--stdout")
				ctx := within(t, 2*time.Minute)
				i := installation{applier: applier(t, cluster), objects: q.rendered(t), kept: kept}
				t.Cleanup(func() {
					if err := i.remove(context.WithoutCancel(ctx)); err != nil {
						t.Errorf("removing it: %v", err)
					}
				})
				i.applyWithWarnings(ctx, t, warnings)
			})
		}
	}
}

// applyWithWarnings applies every object. A rejected object must be named by the warnings of
// render, or be of a kind that the cluster does not have.
func (i *installation) applyWithWarnings(ctx context.Context, t *testing.T, warnings string) {
	var accepted []*unstructured.Unstructured
	for _, o := range i.objects {
		_, err := i.applier.Apply(ctx, []*unstructured.Unstructured{o})
		short := strings.Replace(harness.Name(o), o.GetNamespace()+"/", "", 1)
		switch {
		case err == nil:
			accepted = append(accepted, o)
		case meta.IsNoMatchError(err):
			t.Logf("%s: nobody brings its kind", harness.Name(o))
		case strings.Contains(warnings, "will refuse "+harness.Name(o)+","), strings.Contains(warnings, ": "+short+": ") && strings.Contains(warnings, "server-side apply refuses the object"):
			t.Logf("%s: refused, as render says: %v", harness.Name(o), err)
		default:
			t.Error(err)
		}
	}
	i.objects = accepted
}

// unpack extracts a tenth of the bundles of an archive, each to its own directory, and returns the
// corpus directories by "package/version".
func unpack(t *testing.T, archive string) map[string]string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	out, dir := map[string]string{}, t.TempDir()
	for files := tar.NewReader(unpacked); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitN(strings.TrimPrefix(h.Name, "./"), "/", 3)
		if len(parts) < 3 || h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		name := parts[0] + "/" + parts[1]
		sum := fnv.New32a()
		fmt.Fprint(sum, name)
		if sum.Sum32()%10 != 0 {
			continue
		}
		out[name] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		q := quayside{dir: filepath.Join(out[name], "bundles", parts[0], parts[1])}
		q.write(t, parts[2], string(data))
	}
}
