package cli_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

var wholeCorpus = flag.Bool("whole", false, "build the whole tree of the corpus' operators, and put every lie into every field, instead of a sample") //nolint:gochecknoglobals // a flag

// subscribeToAll writes a workspace with the bundles of the corpus as its catalog, and a
// subscription to every solvable package, each in its own namespace. It returns the packages.
func subscribeToAll(t testing.TB, dir string) []string {
	t.Helper()
	return subscribeTo(t, dir, filepath.Join(clitest.Corpus(t), "bundles"))
}

// subscribeTo writes a workspace with a subscription to every solvable package in a directory of
// bundles, and returns the packages.
func subscribeTo(t testing.TB, dir, root string) []string {
	t.Helper()
	// The source of a catalog in a lock must be a relative path.
	rel, err := filepath.Rel(dir, root)
	check(t, err)
	t.Setenv("QUAYSIDE_ALLOW_OUTSIDE", root)
	put(t, dir, "quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs:
  - {name: corpus, namespace: olm, source: "bundles:%s"}
  allowOverlap: true
  provides: {apis: [cert-manager.io/v1, monitoring.coreos.com/v1, operators.coreos.com/v1alpha1]}
  profile: argocd
  gitops: {repoURL: "https://git.example.com/fleet.git", revision: main, path: rendered, namespace: argocd, project: default}
  clusters:
  - {name: lab, server: "https://lab.example.com:6443", operators: ["*/etcd", "*/prometheus"], config: {nodeSelector: {zone: lab}}}
  - {name: prod}
`, filepath.ToSlash(rel)))
	pkgs := solvable(t, root)
	for _, pkg := range pkgs {
		put(t, dir, "subscriptions/"+pkg+".yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: %[1]s, namespace: %[1]s}
spec: {package: %[1]s}
`, pkg))
	}
	return pkgs
}

// solvable returns the packages that can be installed together at the heads of their default channels: these
// heads meet the requirements of each other.
func solvable(t testing.TB, root string) []string {
	t.Helper()
	content, err := bundledir.LoadFS(os.DirFS(root))
	check(t, err)
	content.ID = catalog.ID{Namespace: "olm", Name: "corpus"}
	cat, err := catalog.New(content)
	check(t, err)
	heads := map[string]*catalog.Bundle{}
	for _, p := range cat.Packages() {
		c, ok := p.Channel(p.DefaultChannel())
		if !ok {
			t.Fatalf("package %s has no default channel", p.Name())
		}
		heads[p.Name()] = c.Head().Bundle()
	}
	for dropped := true; dropped; {
		dropped = false
		for _, pkg := range slices.Sorted(maps.Keys(heads)) {
			if r := findUnmet(heads[pkg], heads); r != "" {
				t.Logf("skipped %s: no other operator provides the required %s", pkg, r)
				delete(heads, pkg)
				dropped = true
			}
		}
	}
	return slices.Sorted(maps.Keys(heads))
}

// findUnmet returns a requirement of b that none of heads meets, or "".
func findUnmet(b *catalog.Bundle, heads map[string]*catalog.Bundle) string {
	for _, r := range b.Requires() {
		met := false
		for _, h := range heads {
			switch r.Kind {
			case catalog.RequireGVK:
				met = met || slices.Contains(h.Provides(), r.GVK)
			case catalog.RequirePackage:
				met = met || h.Package().Name() == r.Package && r.Range.Contains(h.Version())
			default:
				met = true // resolve decides
			}
		}
		if !met {
			return fmt.Sprintf("%s%s %s", r.GVK, r.Package, r.Range)
		}
	}
	return ""
}

// TestCorpus resolves and renders a quarter of the real operators without a network, and builds parts of the
// tree. With -whole, it tests all operators and the whole tree. It resolves and renders again in the same
// workspace, and in another workspace with a different order of declarations.
func TestCorpus(t *testing.T) {
	parent := t.TempDir()
	first, second := filepath.Join(parent, "first"), filepath.Join(parent, "second")
	pkgs := subscribeToAll(t, first)
	if !*wholeCorpus {
		i := -1
		pkgs = slices.DeleteFunc(pkgs, func(pkg string) bool {
			i++
			if i%4 == 0 || pkg == "etcd" || pkg == "prometheus" { // the cluster lab tests these packages
				return false
			}
			remove(t, first, "subscriptions/"+pkg+".yaml")
			return true
		})
	}
	t.Logf("%d packages: %s", len(pkgs), strings.Join(pkgs, " "))
	cache := filepath.Join(parent, "cache")
	prefix := withoutNetwork(t)
	for _, command := range []string{"resolve", "render"} {
		u := measureCommand(t, prefix, cache, first, command)
		t.Logf("%s: %.2f s of CPU, %d MB at most", command, u.cpu, u.peak>>20)
	}
	dirs, err := kustomizations(filepath.Join(first, "rendered"))
	check(t, err)
	if len(dirs) < len(pkgs) {
		t.Errorf("%d kustomizations for %d packages", len(dirs), len(pkgs))
	}
	if *wholeCorpus {
		buildAll(t, unlistedDirs(t, dirs))
	} else {
		buildAll(t, everyFourth(unlistedDirs(t, slices.DeleteFunc(dirs, func(dir string) bool { return countResources(t, dir) > 150 }))))
	}

	lock, tree := read(t, first, "quayside.lock"), snapshot(t, filepath.Join(first, "rendered"))
	for _, command := range []string{"resolve", "render"} {
		measureCommand(t, prefix, cache, first, command)
	}
	if read(t, first, "quayside.lock") != lock || snapshot(t, filepath.Join(first, "rendered")) != tree {
		t.Error("the second run changed the workspace")
	}

	var all []string
	for _, pkg := range pkgs {
		all = append([]string{read(t, first, "subscriptions/"+pkg+".yaml")}, all...)
	}
	put(t, second, "quayside.yaml", read(t, first, "quayside.yaml"))
	put(t, second, "subscriptions/all.yaml", strings.Join(all, "---\n"))
	for _, command := range []string{"resolve", "render"} {
		measureCommand(t, prefix, filepath.Join(parent, "empty"), second, command)
	}
	checkSameOutput(t, first, second)
}

// everyFourth returns every fourth directory. kustomize is slow with many operators, and the tests of render
// already build each bundle of the corpus.
func everyFourth(dirs []string) []string {
	var out []string
	for i := 0; i < len(dirs); i += 4 {
		out = append(out, dirs[i])
	}
	return out
}

// unlistedDirs returns the directories that no other kustomization lists. A build of these includes all others.
func unlistedDirs(t *testing.T, dirs []string) []string {
	t.Helper()
	listed := map[string]bool{}
	for _, dir := range dirs {
		var k struct{ Resources, Components []string }
		check(t, yaml.Unmarshal([]byte(read(t, dir, "kustomization.yaml")), &k))
		for _, r := range append(k.Resources, k.Components...) {
			listed[filepath.Join(dir, r)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return listed[dir] })
}

// countResources returns the number of resources of a kustomization, including nested ones.
func countResources(t *testing.T, dir string) int {
	t.Helper()
	var k struct{ Resources []string }
	check(t, yaml.Unmarshal([]byte(read(t, dir, "kustomization.yaml")), &k))
	n := len(k.Resources)
	for _, r := range k.Resources {
		if info, err := os.Stat(filepath.Join(dir, r)); err == nil && info.IsDir() {
			n += countResources(t, filepath.Join(dir, r))
		}
	}
	return n
}

// buildAll builds every directory, in parallel.
func buildAll(t *testing.T, dirs []string) {
	t.Helper()
	next := make(chan string)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for dir := range next {
				if _, err := kustomizeLibrary(dir); err != nil {
					t.Errorf("%s: %v", dir, err)
				}
			}
		})
	}
	for _, dir := range dirs {
		next <- dir
	}
	close(next)
	wait.Wait()
}

// usage contains the resources used by a run of the program.
type usage struct {
	cpu  float64 // seconds, user and system
	peak int64   // bytes resident
}

// measureCommand runs the program offline in a child process, and returns its usage.
func measureCommand(t testing.TB, prefix []string, cache, dir, command string) usage {
	t.Helper()
	args := append(slices.Clone(prefix), "quayside", "-C", dir, command, "--offline")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, workspace.AllowedEnv+"="+os.Getenv("QUAYSIDE_CORPUS"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	u := usage{cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = r.Maxrss << 10
	}
	return u
}

// withoutNetwork returns a prefix that makes a command run in an empty network namespace. It returns nil if the
// user may not create network namespaces.
func withoutNetwork(t testing.TB) []string {
	t.Helper()
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Logf("not in a network namespace: unshare -n: %v", err)
		return nil
	}
	return []string{"unshare", "-n"}
}

// BenchmarkCorpus measures the CPU time and the peak memory of resolving and rendering real
// operators, each in a process with an empty store.
func BenchmarkCorpus(b *testing.B) {
	dir := b.TempDir()
	subscribeToAll(b, dir)
	for _, command := range []string{"resolve", "render"} {
		b.Run(command, func(b *testing.B) {
			var cpu float64
			var peak int64
			for b.Loop() {
				u := measureCommand(b, nil, b.TempDir(), dir, command)
				cpu += u.cpu
				peak = max(peak, u.peak)
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(peak>>20), "peak-MB")
		})
	}
}
