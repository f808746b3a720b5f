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

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/cmd/quayside/clitest"
	"github.com/quayside/quayside/internal/model"
)

var whole = flag.Bool("whole", false, "build all of the tree over the corpus' operators, not some parts of it") //nolint:gochecknoglobals // as flags are

// subscribeToAll makes a workspace whose catalog is the corpus's bundles and
// which subscribes to every package there whose requirements the corpus meets,
// each in a namespace of its own. It returns the packages.
func subscribeToAll(t testing.TB, dir string) []string {
	t.Helper()
	return subscribeTo(t, dir, filepath.Join(clitest.Corpus(t), "bundles"))
}

// subscribeTo writes a workspace with a subscription to each package of a directory
// of bundles that can be installed beside the others, and returns these.
func subscribeTo(t testing.TB, dir, root string) []string {
	t.Helper()
	// The lock holds no absolute path, so the catalog is named from here.
	rel, err := filepath.Rel(dir, root)
	check(t, err)
	t.Setenv("QUAYSIDE_ALLOW_OUTSIDE", root)
	put(t, dir, "quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs:
  - {name: corpus, namespace: olm, source: "bundles:%s"}
  allowOverlap: true
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

// solvable returns the packages of which some bundle in the default channel
// requires nothing that the heads of the others do not provide.
func solvable(t testing.TB, root string) []string {
	t.Helper()
	content, err := bundledir.LoadFS(os.DirFS(root))
	check(t, err)
	content.ID = model.ID{Namespace: "olm", Name: "corpus"}
	cat, err := model.New(content)
	check(t, err)
	heads := map[string]*model.Bundle{}
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
			if r := unmet(heads[pkg], heads); r != "" {
				t.Logf("left out: %s requires %s, which nothing else here provides", pkg, r)
				delete(heads, pkg)
				dropped = true
			}
		}
	}
	return slices.Sorted(maps.Keys(heads))
}

// unmet returns a requirement of b that none of heads meets, or "".
func unmet(b *model.Bundle, heads map[string]*model.Bundle) string {
	for _, r := range b.Requires() {
		met := false
		for _, h := range heads {
			switch r.Kind {
			case model.RequireGVK:
				met = met || slices.Contains(h.Provides(), r.GVK)
			case model.RequirePackage:
				met = met || h.Package().Name() == r.Package && r.Range.Contains(h.Version())
			default:
				met = true // left to resolve
			}
		}
		if !met {
			return fmt.Sprintf("%s%s %s", r.GVK, r.Package, r.Range)
		}
	}
	return ""
}

// TestCorpus resolves and renders real operators without a network, builds parts of
// the tree, all levels of it with -whole, and does it again: as it stands, and in
// another workspace with the declarations in another order.
func TestCorpus(t *testing.T) {
	parent := t.TempDir()
	first, second := filepath.Join(parent, "first"), filepath.Join(parent, "second")
	pkgs := subscribeToAll(t, first)
	t.Logf("%d packages: %s", len(pkgs), strings.Join(pkgs, " "))
	cache := filepath.Join(parent, "cache")
	prefix := withoutNetwork(t)
	for _, command := range []string{"resolve", "render"} {
		u := measured(t, prefix, cache, first, command)
		t.Logf("%s: %.2f s of CPU, %d MB at most", command, u.cpu, u.peak>>20)
	}
	dirs, err := kustomizations(filepath.Join(first, "rendered"))
	check(t, err)
	if len(dirs) < len(pkgs) {
		t.Errorf("%d kustomizations for %d packages", len(dirs), len(pkgs))
	}
	if *whole {
		buildAll(t, roots(t, dirs))
	} else {
		buildAll(t, some(roots(t, slices.DeleteFunc(dirs, func(dir string) bool { return size(t, dir) > 150 }))))
	}

	lock, tree := read(t, first, "quayside.lock"), snapshot(t, filepath.Join(first, "rendered"))
	for _, command := range []string{"resolve", "render"} {
		measured(t, prefix, cache, first, command)
	}
	if read(t, first, "quayside.lock") != lock || snapshot(t, filepath.Join(first, "rendered")) != tree {
		t.Error("the second run changed something")
	}

	var all []string
	for _, pkg := range pkgs {
		all = append([]string{read(t, first, "subscriptions/"+pkg+".yaml")}, all...)
	}
	put(t, second, "quayside.yaml", read(t, first, "quayside.yaml"))
	put(t, second, "subscriptions/all.yaml", strings.Join(all, "---\n"))
	for _, command := range []string{"resolve", "render"} {
		measured(t, prefix, filepath.Join(parent, "empty"), second, command)
	}
	same(t, first, second)
}

// some returns every fourth of the parts of a tree. kustomize takes much longer to
// build many operators together than one by one, and the tests of render build each
// bundle of the corpus by itself.
func some(dirs []string) []string {
	var out []string
	for i := 0; i < len(dirs); i += 4 {
		out = append(out, dirs[i])
	}
	return out
}

// roots returns the directories that no other one's kustomization lists: to build
// these builds all.
func roots(t *testing.T, dirs []string) []string {
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

// size returns how many files and directories a kustomization lists, with those
// that they list.
func size(t *testing.T, dir string) int {
	t.Helper()
	var k struct{ Resources []string }
	check(t, yaml.Unmarshal([]byte(read(t, dir, "kustomization.yaml")), &k))
	n := len(k.Resources)
	for _, r := range k.Resources {
		if info, err := os.Stat(filepath.Join(dir, r)); err == nil && info.IsDir() {
			n += size(t, filepath.Join(dir, r))
		}
	}
	return n
}

// buildAll builds every directory, as many at a time as there are processors.
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

// usage is what one run of the program took.
type usage struct {
	cpu  float64 // seconds, user and system
	peak int64   // bytes resident
}

// measured runs the program offline as a process of its own.
func measured(t testing.TB, prefix []string, cache, dir, command string) usage {
	t.Helper()
	args := append(slices.Clone(prefix), "quayside", "-C", dir, command, "--offline")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	u := usage{cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = r.Maxrss << 10
	}
	return u
}

// withoutNetwork returns the command that runs another in a network namespace
// without a network, nothing where that is not allowed.
func withoutNetwork(t testing.TB) []string {
	t.Helper()
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Logf("not in a network namespace: unshare -n: %v", err)
		return nil
	}
	return []string{"unshare", "-n"}
}

// BenchmarkCorpus takes the CPU seconds and the peak memory of resolving and
// rendering real operators, each in a process of its own with an empty store.
func BenchmarkCorpus(b *testing.B) {
	dir := b.TempDir()
	subscribeToAll(b, dir)
	for _, command := range []string{"resolve", "render"} {
		b.Run(command, func(b *testing.B) {
			var cpu float64
			var peak int64
			for b.Loop() {
				u := measured(b, nil, b.TempDir(), dir, command)
				cpu += u.cpu
				peak = max(peak, u.peak)
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(peak>>20), "peak-MB")
		})
	}
}
