package render

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
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

func load(tb testing.TB, dir string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Load(os.DirFS(dir))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// pinOf pins a bundle in a namespace, watching all where it can, else its own.
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

// corpusLock pins the newest bundle of every package, each in a namespace of
// its own, and returns where their content lies.
func corpusLock(tb testing.TB) (*lockfile.File, func(lockfile.Pin) (fs.FS, error)) {
	tb.Helper()
	newest := map[string]*bundle.Bundle{}
	dirs := map[string]string{}
	for _, dir := range corpusBundles(tb) {
		b := load(tb, dir)
		if have, ok := newest[b.Package]; !ok || compareVersions(b.CSV.Version, have.CSV.Version) > 0 {
			newest[b.Package], dirs[b.Package] = b, dir
		}
	}
	lock := &lockfile.File{}
	for _, b := range newest {
		lock.Pins = append(lock.Pins, pinOf(b, fit("ns-"+b.Package, maxLabel)))
	}
	return lock, func(p lockfile.Pin) (fs.FS, error) { return os.DirFS(dirs[p.Package]), nil }
}

func TestEveryLevelOfTheCorpusBuildsWithKubectl(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	lock, open := corpusLock(t)
	opt := Options{
		Profile:  ArgoCD,
		Clusters: []Cluster{{Name: "prod"}, {Name: "lab", Operators: []string{"*/etcd", "*/prometheus"}, Config: []byte(`{"nodeSelector":{"a":"b"}}`)}},
		GitOps:   &GitOps{RepoURL: "https://git.example.com/fleet.git", Revision: "main", Path: "rendered", Namespace: "argocd", Project: "default"},
	}
	res, err := All(lock, opt, open)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := filetree.Write(filepath.Join(dir, "out"), res.Tree); err != nil {
		t.Fatal(err)
	}
	for name := range res.Tree.All() {
		if filepath.Base(name) != kustomizationFile || strings.HasPrefix(name, "operators/") && name != "operators/"+kustomizationFile {
			continue // those of one operator and of one namespace are built with the level above
		}
		cmd := exec.Command(kubectl, "kustomize", filepath.Dir(filepath.Join(dir, "out", name)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.2000s", name, err, out)
		}
	}
}

// BenchmarkCorpus renders every bundle of the corpus, one after the other,
// from the files to the tree's bytes.
func BenchmarkCorpus(b *testing.B) {
	dirs := corpusBundles(b)
	var pins []lockfile.Pin
	for _, dir := range dirs {
		pins = append(pins, pinOf(load(b, dir), "op-ns"))
	}
	took := make([]time.Duration, len(dirs))
	b.ReportAllocs()
	for b.Loop() {
		for i, dir := range dirs {
			start := cpuTime(b)
			lock := &lockfile.File{Pins: pins[i : i+1]}
			if _, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil }); err != nil {
				b.Fatal(err)
			}
			took[i] = cpuTime(b) - start
		}
	}
	slices.Sort(took)
	total := time.Duration(0)
	for _, d := range took {
		total += d
	}
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "cpu-ms/median-bundle")
	b.ReportMetric(total.Seconds(), "cpu-s/corpus")
}

// cpuTime returns what the process has used so far, the collector included.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
