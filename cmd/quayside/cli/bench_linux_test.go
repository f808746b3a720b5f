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
	"github.com/quayside/quayside/internal/oci/ocitest"
)

// The benchmarks run the program itself, bin/quayside, and take processor time
// and memory from the system's account of the child. The yardstick is a child
// too: encoding/json reading every token of the same bytes.

// spent is what a child used.
type spent struct {
	cpu time.Duration // user and system
	rss int64         // bytes, at most at once
}

// child runs a program to its end, below a small process that keeps account:
// what the system calls a child's peak memory begins with its parent's.
func child(b *testing.B, cache, name string, args ...string) spent {
	b.Helper()
	cmd := exec.Command(accountant(b), append([]string{name}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	out, err := cmd.Output()
	var fault *exec.ExitError
	if errors.As(err, &fault) {
		b.Fatalf("%s %q: %v\n%.2000s", name, args, err, fault.Stderr)
	}
	check(b, err)
	var one spent
	_, err = fmt.Sscan(string(out), &one.cpu, &one.rss)
	check(b, err)
	return one
}

// accountant returns the small process that keeps account.
func accountant(b *testing.B) string {
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

// program returns the program that `make build` makes.
func program(b *testing.B) string {
	b.Helper()
	name, err := filepath.Abs("../../../bin/quayside")
	check(b, err)
	if _, err := os.Stat(name); err != nil {
		b.Skip("no bin/quayside to measure: run make bench, or make build first")
	}
	return name
}

// measure runs one command again and again, and returns what it took of the
// processor each time.
func measure(b *testing.B, name string, yardstick time.Duration, run func() spent) (each time.Duration) {
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
		b.ReportMetric(0, "ns/op") // the wall clock says how busy the machine is
	})
	return each
}

// fullSlim unpacks the full-size catalog of the corpus.
func fullSlim(b *testing.B) string {
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

// shopOf returns a workspace with one catalog and subscriptions to packages.
func shopOf(b *testing.B, catalog string, packages ...string) string {
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

// shopOfImage returns a workspace whose catalog is an image in a registry on
// loopback, made of the files of a directory in one compressed layer.
func shopOfImage(b *testing.B, catalog string) string {
	b.Helper()
	packed, err := oci.Pack(os.DirFS(catalog), oci.PackOptions{
		Prefix: "configs", Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	})
	check(b, err)
	name := ocitest.New(b).Host + "/bench/catalog:v1"
	check(b, (&oci.Client{}).Push(b.Context(), name, packed))
	space := shopOf(b, catalog)
	put(b, space, "quayside.yaml", strings.Replace(read(b, space, "quayside.yaml"), "dir:"+catalog, "image:"+name, 1))
	return space
}

// BenchmarkCatalog measures reading the full-size catalog, with and without an
// index of it. What the program takes to start is a figure of its own.
func BenchmarkCatalog(b *testing.B) {
	exe, dir := program(b), fullSlim(b)
	space := shopOf(b, dir, "etcd", "prometheus", "grafana-operator", "argocd-operator", "cert-manager", "strimzi-kafka-operator")
	cache := b.TempDir()
	ruler := child(b, cache, "tokens", dir)
	cold := func(space string) func() spent {
		return func() spent {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return child(b, cache, exe, "-C", space, "catalog", "list")
		}
	}
	measure(b, "yardstick", ruler.cpu, func() spent { return child(b, cache, "tokens", dir) })
	measure(b, "start", ruler.cpu, func() spent { return child(b, cache, exe, "version") })
	measure(b, "cold", ruler.cpu, cold(space))
	measure(b, "cold-resolve-six", ruler.cpu, func() spent {
		check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
		_ = os.Remove(filepath.Join(space, "quayside.lock"))
		return child(b, cache, exe, "-C", space, "resolve", "--offline")
	})
	measure(b, "cold-image", ruler.cpu, cold(shopOfImage(b, dir)))
	check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
	child(b, cache, exe, "-C", space, "catalog", "list")
	measure(b, "warm-list", ruler.cpu, func() spent { return child(b, cache, exe, "-C", space, "catalog", "list") })
	measure(b, "warm-one-package", ruler.cpu, func() spent { return child(b, cache, exe, "-C", space, "catalog", "show", "etcd") })
	measure(b, "warm-search", ruler.cpu, func() spent { return child(b, cache, exe, "-C", space, "catalog", "search", "kafka") })
	measure(b, "warm-resolve-six", ruler.cpu, func() spent {
		_ = os.Remove(filepath.Join(space, "quayside.lock"))
		return child(b, cache, exe, "-C", space, "resolve", "--offline")
	})
}

// BenchmarkYAML reads the full-size catalog as JSON and as YAML. The yardstick
// is the JSON.
func BenchmarkYAML(b *testing.B) {
	exe, dir, cache := program(b), fullSlim(b), b.TempDir()
	cold := func(space string) func() spent {
		return func() spent {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return child(b, cache, exe, "-C", space, "catalog", "list")
		}
	}
	asYAML := shopOf(b, inYAML(b, dir))
	ruler := measure(b, "json", 0, cold(shopOf(b, dir)))
	measure(b, "yaml", ruler, cold(asYAML))
}

// inYAML copies a catalog as YAML in the form that opm writes.
func inYAML(b *testing.B, dir string) string {
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

// BenchmarkFat reads a catalog of 1.7 GB that embeds every manifest.
func BenchmarkFat(b *testing.B) {
	exe := program(b)
	if os.Getenv("QUAYSIDE_CORPUS") == "" {
		b.Skip("QUAYSIDE_CORPUS is unset: no benchmarks of full size")
	}
	dir, cache := b.TempDir(), b.TempDir()
	for i := range 330 {
		fat(b, filepath.Join(dir, fmt.Sprintf("p%d.json", i)), i, 21)
	}
	space := shopOf(b, dir)
	ruler := child(b, cache, "tokens", dir)
	measure(b, "yardstick", ruler.cpu, func() spent { return child(b, cache, "tokens", dir) })
	measure(b, "cold", ruler.cpu, func() spent {
		check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
		return child(b, cache, exe, "-C", space, "catalog", "list")
	})
	measure(b, "warm-one-package", ruler.cpu, func() spent { return child(b, cache, exe, "-C", space, "catalog", "show", "p7") })
}

// fat writes one package, a quarter of a megabyte for each of its bundles.
func fat(b *testing.B, file string, i, versions int) {
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

// BenchmarkGrowth shows what ten times as many packages of fifty versions cost:
// ten times as much to read, and no more once there is an index. The catalog is
// one file, so that looking whether it changed costs the same.
func BenchmarkGrowth(b *testing.B) {
	exe := program(b)
	for _, packages := range []int{100, 1000} {
		space, cache := shop(b, packages, 50), b.TempDir()
		check(b, os.MkdirAll(filepath.Join(space, "one"), 0o777))
		all, err := os.Create(filepath.Join(space, "one/catalog.json"))
		check(b, err)
		for i := range packages {
			_, err := all.WriteString(shopPackage(i, packages, 50))
			check(b, err)
		}
		check(b, all.Close())
		put(b, space, "quayside.yaml", strings.Replace(read(b, space, "quayside.yaml"), "dir:catalog", "dir:one", 1))
		time.Sleep(50 * time.Millisecond)
		ruler := child(b, cache, "tokens", filepath.Join(space, "one"))
		measure(b, fmt.Sprintf("cold-%d", packages), ruler.cpu, func() spent {
			check(b, os.RemoveAll(filepath.Join(cache, "quayside")))
			return child(b, cache, exe, "-C", space, "catalog", "list")
		})
		measure(b, fmt.Sprintf("warm-one-package-%d", packages), 0, func() spent { return child(b, cache, exe, "-C", space, "catalog", "show", "p20") })
		measure(b, fmt.Sprintf("warm-resolve-%d", packages), 0, func() spent {
			_ = os.Remove(filepath.Join(space, "quayside.lock"))
			return child(b, cache, exe, "-C", space, "resolve", "--offline")
		})
	}
}
