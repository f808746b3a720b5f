package cli_test

import (
	"archive/tar"
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// The benchmarks run bin/quayside as a child process, and get the CPU time and memory from the operating
// system. The yardstick is another child process: it reads every token of the same catalog with encoding/json.

// resourceUsage is the resources that a child process used.
type resourceUsage struct {
	cpu time.Duration // user and system
	rss int64         // peak, in bytes
}

// runMeasured runs a program as the child of a small process that measures it. The parent must be
// small, because the peak memory of a child includes the memory of its parent at the start.
func runMeasured(b *testing.B, cache, name string, args ...string) resourceUsage {
	b.Helper()
	cmd := exec.Command(buildMeter(b), append([]string{name}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	out, err := cmd.Output()
	var fault *exec.ExitError
	if errors.As(err, &fault) {
		b.Fatalf("%s %q: %v\n%.2000s", name, args, err, fault.Stderr)
	}
	check(b, err)
	var one resourceUsage
	_, err = fmt.Sscan(string(out), &one.cpu, &one.rss)
	check(b, err)
	return one
}

// buildMeter builds the small process that measures its child.
func buildMeter(b *testing.B) string {
	b.Helper()
	name := filepath.Join(os.TempDir(), fmt.Sprintf("quayside-account-%d", os.Getpid()))
	if _, err := os.Stat(name); err != nil {
		b.Cleanup(func() { _ = os.Remove(name) })
		out, err := exec.Command("go", "build", "-o", name, "./testdata/account").CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	return name
}

// programPath returns the path of bin/quayside.
func programPath(b *testing.B) string {
	b.Helper()
	name, err := filepath.Abs("../../../../bin/quayside")
	check(b, err)
	if _, err := os.Stat(name); err != nil {
		b.Skip("no bin/quayside to measure: run make bench, or make build first")
	}
	return name
}

// measure runs a command repeatedly, and returns the mean CPU time of a run.
func measure(b *testing.B, name string, yardstick time.Duration, run func() resourceUsage) (each time.Duration) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		var cpu time.Duration
		var rss int64
		n := 0
		for b.Loop() {
			one := run()
			cpu, rss, n = cpu+one.cpu, max(rss, one.rss), n+1
		}
		each = cpu / time.Duration(n)
		b.ReportMetric(each.Seconds()*1000, "cpu-ms/op")
		b.ReportMetric(float64(rss)/(1<<20), "peak-MB")
		if yardstick > 0 {
			b.ReportMetric(float64(each)/float64(yardstick), "of-yardstick")
		}
		b.ReportMetric(0, "ns/op") // the wall time depends on the load of the machine
	})
	return each
}

// unpackFullCatalog unpacks the full-size catalog of the corpus.
func unpackFullCatalog(b *testing.B) string {
	b.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		b.Skip("QUAYSIDE_CORPUS is unset: no full-size catalog")
	}
	f, err := os.Open(filepath.Join(root, "catalogs/full-slim.tar.zst"))
	check(b, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	check(b, err)
	defer z.Close()
	dir := b.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		check(b, err)
		if h.Typeflag == tar.TypeReg {
			data, err := io.ReadAll(r)
			check(b, err)
			put(b, dir, h.Name, string(data))
		}
	}
}

// newBenchWorkspace returns a workspace with one catalog and subscriptions to packages.
func newBenchWorkspace(b *testing.B, catalog string, packages ...string) string {
	b.Helper()
	dir := b.TempDir()
	put(b, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs:\n  - {name: c, namespace: olm, source: \"dir:"+catalog+"\"}\n")
	put(b, dir, "subscriptions/README.md", "one file a subscription")
	for _, p := range packages {
		put(b, dir, "subscriptions/"+p+".yaml", fmt.Sprintf(
			"apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %s, namespace: my-%s}\nspec: {package: %s}\n", p, p, p))
	}
	return dir
}

// newImageWorkspace returns a workspace whose catalog is an image in a local registry. The image has the
// files of a directory in one compressed layer.
func newImageWorkspace(b *testing.B, catalog string) string {
	b.Helper()
	packed, err := oci.Pack(os.DirFS(catalog), oci.PackOptions{
		Prefix: "configs", Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	})
	check(b, err)
	name := ocitest.New(b).Host + "/bench/catalog:v1"
	check(b, (&oci.Client{}).Push(b.Context(), name, packed))
	space := newBenchWorkspace(b, catalog)
	put(b, space, "quayside.yaml", strings.Replace(read(b, space, "quayside.yaml"), "dir:"+catalog, "image:"+name, 1))
	return space
}

// BenchmarkCatalog measures reading the full-size catalog with and without an index, and the start
// of the program.
func BenchmarkCatalog(b *testing.B) {
	exe, dir := programPath(b), unpackFullCatalog(b)
	space := newBenchWorkspace(b, dir, "etcd", "prometheus", "grafana-operator", "argocd-operator", "cert-manager", "strimzi-kafka-operator")
	cache := b.TempDir()
	ruler := runMeasured(b, cache, "tokens", dir)
	cold := func(space string) func() resourceUsage {
		return func() resourceUsage {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return runMeasured(b, cache, exe, "-C", space, "catalog", "list")
		}
	}
	measure(b, "yardstick", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, "tokens", dir) })
	measure(b, "start", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, exe, "version") })
	measure(b, "cold", ruler.cpu, cold(space))
	measure(b, "cold-resolve-six", ruler.cpu, func() resourceUsage {
		check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
		_ = os.Remove(filepath.Join(space, "quayside.lock"))
		return runMeasured(b, cache, exe, "-C", space, "resolve", "--offline")
	})
	measure(b, "cold-image", ruler.cpu, cold(newImageWorkspace(b, dir)))
	check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
	runMeasured(b, cache, exe, "-C", space, "catalog", "list")
	measure(b, "warm-list", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, exe, "-C", space, "catalog", "list") })
	measure(b, "warm-one-package", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, exe, "-C", space, "catalog", "show", "etcd") })
	measure(b, "warm-search", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, exe, "-C", space, "catalog", "search", "kafka") })
	measure(b, "warm-resolve-six", ruler.cpu, func() resourceUsage {
		_ = os.Remove(filepath.Join(space, "quayside.lock"))
		return runMeasured(b, cache, exe, "-C", space, "resolve", "--offline")
	})
}

// BenchmarkYAML measures reading the full-size catalog as YAML, relative to JSON.
func BenchmarkYAML(b *testing.B) {
	exe, dir, cache := programPath(b), unpackFullCatalog(b), b.TempDir()
	cold := func(space string) func() resourceUsage {
		return func() resourceUsage {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return runMeasured(b, cache, exe, "-C", space, "catalog", "list")
		}
	}
	asYAML := newBenchWorkspace(b, convertToYAML(b, dir))
	ruler := measure(b, "json", 0, cold(newBenchWorkspace(b, dir)))
	measure(b, "yaml", ruler, cold(asYAML))
}

// convertToYAML converts a catalog to YAML in the format of opm, and returns its directory.
func convertToYAML(b *testing.B, dir string) string {
	b.Helper()
	out := b.TempDir()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "catalog.json"))
	check(b, err)
	for _, file := range files {
		var text strings.Builder
		for dec := json.NewDecoder(strings.NewReader(read(b, filepath.Dir(file), "catalog.json"))); ; {
			var object json.RawMessage
			err := dec.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			check(b, err)
			doc, err := yaml.JSONToYAML(object)
			check(b, err)
			text.WriteString("---\n")
			text.Write(doc)
		}
		put(b, out, filepath.Base(filepath.Dir(file))+"/catalog.yaml", text.String())
	}
	return out
}

// BenchmarkFat measures reading a catalog of 1.7 GB with embedded manifests.
func BenchmarkFat(b *testing.B) {
	exe := programPath(b)
	if os.Getenv("QUAYSIDE_CORPUS") == "" {
		b.Skip("QUAYSIDE_CORPUS is unset: no benchmarks of full size")
	}
	dir, cache := b.TempDir(), b.TempDir()
	for i := range 330 {
		writeFatPackage(b, filepath.Join(dir, fmt.Sprintf("p%d.json", i)), i, 21)
	}
	space := newBenchWorkspace(b, dir)
	ruler := runMeasured(b, cache, "tokens", dir)
	measure(b, "yardstick", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, "tokens", dir) })
	measure(b, "cold", ruler.cpu, func() resourceUsage {
		check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
		return runMeasured(b, cache, exe, "-C", space, "catalog", "list")
	})
	measure(b, "warm-one-package", ruler.cpu, func() resourceUsage { return runMeasured(b, cache, exe, "-C", space, "catalog", "show", "p7") })
}

// writeFatPackage writes a package with a quarter of a megabyte for each bundle.
func writeFatPackage(b *testing.B, file string, i, versions int) {
	b.Helper()
	f, err := os.Create(file)
	check(b, err)
	defer f.Close()
	w := bufio.NewWriter(f)
	object := func(kind, name string, size int) string {
		text := fmt.Sprintf(`{"apiVersion":"x/v1","kind":%q,"metadata":{"name":%q},"spec":{"displayName":"Fat %d","description":%q}}`,
			kind, name, i, strings.Repeat("what it is for, at length; ", size/27))
		return `{"type":"olm.bundle.object","value":{"data":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}}`
	}
	bodies := object("CustomResourceDefinition", "a", 70<<10) + "," + object("CustomResourceDefinition", "b", 70<<10) + "," + object("ClusterServiceVersion", "c", 42<<10)
	for line := range strings.Lines(shopPackage(i, 1, versions)) {
		before, after, ok := strings.Cut(line, `{"type": "olm.csv.metadata"`)
		if ok {
			_, end, _ := strings.Cut(after, "}}")
			line = before + bodies + end
		}
		_, err := w.WriteString(line)
		check(b, err)
	}
	check(b, w.Flush())
}

// BenchmarkGrowth measures reading catalogs of 100 and of 1000 packages with fifty versions each.
// The larger catalog should take ten times as long; with an index, both should take the same time.
// Each catalog is one file, so that checking it for changes takes the same time.
func BenchmarkGrowth(b *testing.B) {
	exe := programPath(b)
	for _, packages := range []int{100, 1000} {
		space, cache := newShop(b, packages, 50), b.TempDir()
		check(b, os.MkdirAll(filepath.Join(space, "one"), 0o777))
		all, err := os.Create(filepath.Join(space, "one/catalog.json"))
		check(b, err)
		for i := range packages {
			_, err := all.WriteString(shopPackage(i, packages, 50))
			check(b, err)
		}
		check(b, all.Close())
		put(b, space, "quayside.yaml", strings.Replace(read(b, space, "quayside.yaml"), "dir:catalog", "dir:one", 1))
		settleFiles()
		ruler := runMeasured(b, cache, "tokens", filepath.Join(space, "one"))
		measure(b, fmt.Sprintf("cold-%d", packages), ruler.cpu, func() resourceUsage {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return runMeasured(b, cache, exe, "-C", space, "catalog", "list")
		})
		measure(b, fmt.Sprintf("warm-one-package-%d", packages), 0, func() resourceUsage { return runMeasured(b, cache, exe, "-C", space, "catalog", "show", "p20") })
		measure(b, fmt.Sprintf("warm-resolve-%d", packages), 0, func() resourceUsage {
			_ = os.Remove(filepath.Join(space, "quayside.lock"))
			return runMeasured(b, cache, exe, "-C", space, "resolve", "--offline")
		})
	}
}
