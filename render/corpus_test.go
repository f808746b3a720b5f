package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// corpusBundles returns the bundle directories of the corpus.
func corpusBundles(tb testing.TB) []string {
	tb.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		tb.Skip("QUAYSIDE_CORPUS is not set")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		tb.Fatalf("no bundles under %s: %v", root, err)
	}
	return dirs
}

// sampleBundles returns an eighth of the corpus bundles, or all of them with -whole.
func sampleBundles(tb testing.TB) (some []string) {
	tb.Helper()
	for i, dir := range corpusBundles(tb) {
		if *whole || i%8 == 0 {
			some = append(some, dir)
		}
	}
	return some
}

func loadBundle(tb testing.TB, dir string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Load(os.DirFS(dir))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// pinOf returns a pin of a bundle in a namespace. The operator watches all namespaces if the bundle supports
// this, otherwise its own namespace.
func pinOf(b *bundle.Bundle, namespace string) lockfile.Pin {
	pin := lockfile.Pin{
		Namespace: namespace, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name,
		OperatorGroup: "og", InstallMode: catalog.AllNamespaces,
	}
	if !slices.Contains(b.CSV.Modes, catalog.AllNamespaces) {
		pin.InstallMode, pin.WatchNamespaces = catalog.OwnNamespace, []string{namespace}
	}
	return pin
}

// BenchmarkCorpus renders every bundle of the corpus, one after the other, from the bundle's files to the bytes
// of the tree. It does so without a cache, and with a cache of accepted CRDs.
func BenchmarkCorpus(b *testing.B) {
	known := map[string]bool{}
	for _, c := range []struct {
		name string
		opt  Options
	}{{"first", Options{}}, {"again", Options{AcceptedCRDs: known}}} {
		b.Run(c.name, func(b *testing.B) { benchmarkCorpus(b, c.opt) })
	}
}

func benchmarkCorpus(b *testing.B, opt Options) {
	dirs := corpusBundles(b)
	var pins []lockfile.Pin
	for _, dir := range dirs {
		pins = append(pins, pinOf(loadBundle(b, dir), "op-ns"))
	}
	took := make([]time.Duration, len(dirs))
	round := func() {
		for i, dir := range dirs {
			start := cpuTime(b)
			lock := &lockfile.File{Pins: pins[i : i+1]}
			res, err := All(lock, opt, func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil })
			if err != nil {
				b.Fatal(err)
			}
			if opt.AcceptedCRDs != nil {
				addAccepted(opt.AcceptedCRDs, res)
			}
			took[i] = cpuTime(b) - start
		}
	}
	round()
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
	slices.Sort(took)
	total := time.Duration(0)
	for _, d := range took {
		total += d
	}
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "cpu-ms/median-bundle")
	b.ReportMetric(total.Seconds(), "cpu-s/corpus")
}

// cpuTime returns the CPU time of the process so far, including garbage collection.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
