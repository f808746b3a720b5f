package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newShop writes a workspace with a file-based catalog and subscriptions to p0 and p20, and returns its
// directory. The packages form chains of ten in which each requires the next.
func newShop(t testing.TB, packages, versions int) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs:
  - {name: shop, namespace: olm, source: "dir:catalog"}
`)
	for _, p := range []string{"p0", "p20"} {
		put(t, dir, "subscriptions/"+p+".yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: %s, namespace: my-%s}
spec: {package: %s}
`, p, p, p))
	}
	for i := range packages {
		put(t, dir, fmt.Sprintf("catalog/p%d/catalog.json", i), shopPackage(i, packages, versions))
	}
	settleFiles()
	return dir
}

// settleFiles waits until all files are older than one tick of the file system's clock, because
// files that have just been written are not indexed. Setting their modification time is not enough,
// because the index also compares the change time of the inode, which cannot be set.
func settleFiles() { time.Sleep(25 * time.Millisecond) }

func shopPackage(i, packages, versions int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"schema": "olm.package", "name": "p%d", "defaultChannel": "stable", "description": "Package %d."}`+"\n", i, i)
	fmt.Fprintf(&b, `{"schema": "olm.channel", "package": "p%d", "name": "stable", "entries": [`, i)
	for v := range versions {
		replaces := ""
		if v > 0 {
			replaces = fmt.Sprintf(`, "replaces": "p%d.v1.%d.0"`, i, v-1)
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n"+` {"name": "p%d.v1.%d.0"%s}`, i, v, replaces)
	}
	b.WriteString("]}\n")
	for v := range versions {
		requires := ""
		if i%10 != 9 && i+1 < packages {
			requires = fmt.Sprintf(`, {"type": "olm.package.required", "value": {"packageName": "p%d", "versionRange": ">=1.%d.0"}}`, i+1, v)
		}
		fmt.Fprintf(&b, `{"schema": "olm.bundle", "package": "p%d", "name": "p%d.v1.%d.0", "image": "quay.io/shop/p%d@sha256:%064x",
 "properties": [{"type": "olm.package", "value": {"packageName": "p%d", "version": "1.%d.0"}},
  {"type": "olm.gvk", "value": {"group": "p%d.example.com", "version": "v1", "kind": "Thing"}}%s,
  {"type": "olm.csv.metadata", "value": {"displayName": "Shop %d", "description": %q, "keywords": ["things"]}}]}
`, i, i, v, i, v+1, i, v, i, requires, i, "Sells. "+strings.Repeat("filler ", 200))
	}
	return b.String()
}

// indexFile returns the only index in a cache, or "".
func indexFile(t testing.TB, cache string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "quayside/records/catalog-index/*"))
	check(t, err)
	if len(found) > 1 {
		t.Fatalf("%d indexes: want one", len(found))
	}
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// catalogOutput runs the commands that read catalogs, and returns their output.
func catalogOutput(t testing.TB, dir, cache string) string {
	t.Helper()
	var all strings.Builder
	_ = os.Remove(filepath.Join(dir, "quayside.lock"))
	for _, args := range [][]string{
		{"catalog", "list", "-o", "json"},
		{"catalog", "search", "shop 2", "thing"},
		{"catalog", "show", "p3", "-o", "yaml"},
		{"catalog", "show", "p20"},
		{"catalog", "show", "p222"},
		{"catalog", "graph", "p1"},
		{"resolve", "--upgrade"},
		{"resolve", "--check"},
		{"why-not", "my-p0/p0@1.0.0"},
		{"outdated", "--all"},
	} {
		got := quaysideIn(t, dir, cache, args...)
		fmt.Fprintf(&all, "$ %s\n%d\n%s%s", strings.Join(args, " "), got.code, got.stdout, got.stderr)
	}
	return all.String() + read(t, dir, "quayside.lock")
}

// readSoFar returns the number of bytes that this process has read.
func readSoFar(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("cannot measure the bytes that a process reads: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), "rchar: ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	check(t, err)
	return n
}

func TestIndexEqualsCatalog(t *testing.T) {
	dir, cache := newShop(t, 60, 20), t.TempDir()
	want := catalogOutput(t, dir, t.TempDir())
	if d := cmp.Diff(want, catalogOutput(t, dir, cache)); d != "" {
		t.Fatalf("two runs (-first +second):\n%s", d)
	}
	if indexFile(t, cache) == "" {
		t.Fatal("no index was written")
	}
	before := readSoFar(t)
	if d := cmp.Diff(want, catalogOutput(t, dir, cache)); d != "" {
		t.Errorf("catalog against index (-catalog +index):\n%s", d)
	}
	if n := readSoFar(t) - before; n > 2<<20 { // the catalog has 2.3 MB, and ten commands read it
		t.Errorf("read %d bytes: the catalog was read again", n)
	}
}

// TestIndexFollowsTheCatalog changes the content of a file, but not its size and modification time.
// The index must be updated.
func TestIndexFollowsTheCatalog(t *testing.T) {
	dir, cache := newShop(t, 22, 2), t.TempDir()
	name := filepath.Join(dir, "catalog/p20/catalog.json")
	info, err := os.Stat(name)
	check(t, err)
	mustRun := func(want string) {
		t.Helper()
		got := quaysideIn(t, dir, cache, "catalog", "show", "p20")
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, want %q in:\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
	mustRun("Shop 20")
	mustRun("Shop 20")
	data := strings.ReplaceAll(read(t, dir, "catalog/p20/catalog.json"), "Shop 20", "Ship 20")
	check(t, os.WriteFile(name, []byte(data), 0o666))
	check(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	mustRun("Ship 20")
	settleFiles()
	mustRun("Ship 20")
	check(t, os.Remove(filepath.Join(dir, "catalog/p3/catalog.json")))
	if got := quaysideIn(t, dir, cache, "catalog", "show", "p3"); got.code == 0 {
		t.Errorf("a removed package is still listed:\n%s", got.stdout)
	}
}

// TestIndexDamaged flips bits in an index. The output of every command must not change, and the
// index must be repaired.
func TestIndexDamaged(t *testing.T) {
	dir, cache := newShop(t, 22, 3), t.TempDir()
	want := catalogOutput(t, dir, cache)
	file := indexFile(t, cache)
	whole, err := os.ReadFile(file)
	check(t, err)
	mended, untouched := 0, 0
	damage := func(what string, data []byte) {
		t.Helper()
		check(t, os.WriteFile(file, data, 0o600))
		if d := cmp.Diff(want, catalogOutput(t, dir, cache)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
		switch got, err := os.ReadFile(indexFile(t, cache)); {
		case err != nil:
			t.Fatal(err)
		case bytes.Equal(got, whole):
			mended++
		case bytes.Equal(got, data):
			untouched++ // no command reads this package
		default:
			t.Fatalf("%s: the index is neither repaired nor unchanged", what)
		}
	}
	for i := 0; i < len(whole); i += 1 + len(whole)/20 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		damage(fmt.Sprintf("byte %d of %d", i, len(whole)), bad)
	}
	damage("cut short", whole[:len(whole)/2])
	damage("empty", nil)
	old := bytes.Clone(whole)
	old[len(old)-12]-- // the version in the trailer
	damage("of an older version", old)
	if mended <= untouched {
		t.Errorf("repaired %d times, unchanged %d times", mended, untouched)
	}
}

// TestIndexWithoutStore reads catalogs with an unwritable store.
func TestIndexWithoutStore(t *testing.T) {
	dir, cache := newShop(t, 22, 2), t.TempDir()
	want := catalogOutput(t, dir, t.TempDir())
	put(t, cache, "quayside/tmp", "in the way")
	if d := cmp.Diff(want, catalogOutput(t, dir, cache)); d != "" {
		t.Errorf("output (-with +without store):\n%s", d)
	}
	if indexFile(t, cache) != "" {
		t.Error("an index was written: the test proves nothing")
	}
}

// startProgram starts the program as a child process.
func startProgram(t testing.TB, dir, cache string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("quayside", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	check(t, cmd.Start())
	return cmd
}

// TestIndexTwoProcesses resolves with the same catalog in several processes that share an empty
// store.
func TestIndexTwoProcesses(t *testing.T) {
	dir, cache := newShop(t, 200, 20), t.TempDir()
	t.Setenv("QUAYSIDE_ALLOW_OUTSIDE", dir)
	want := mustLock(t, dir, t.TempDir())
	spaces := make([]string, 4)
	for i := range spaces {
		spaces[i] = t.TempDir()
		for _, name := range []string{"subscriptions/p0.yaml", "subscriptions/p20.yaml"} {
			put(t, spaces[i], name, read(t, dir, name))
		}
		put(t, spaces[i], "quayside.yaml", strings.Replace(read(t, dir, "quayside.yaml"), "dir:catalog", "dir:"+dir+"/catalog", 1))
	}
	var running []*exec.Cmd
	for _, space := range spaces {
		running = append(running, startProgram(t, space, cache, "resolve"))
	}
	for i, cmd := range running {
		check(t, cmd.Wait())
		got := strings.ReplaceAll(read(t, spaces[i], "quayside.lock"), "dir:"+dir+"/catalog", "dir:catalog")
		if d := cmp.Diff(withoutChecksums(want), withoutChecksums(got)); d != "" {
			t.Errorf("lock (-alone +together):\n%s", d)
		}
	}
	if indexFile(t, cache) == "" {
		t.Error("no index was written")
	}
	if d := cmp.Diff(want, mustLock(t, dir, cache)); d != "" {
		t.Errorf("lock (-without +with the existing index):\n%s", d)
	}
}

// withoutChecksums removes the checksums from a lock, because they depend on the path of the catalog.
func withoutChecksums(lock string) string {
	return regexp.MustCompile(`(?m)^  checksum: .*\n`).ReplaceAllString(lock, "")
}

func mustLock(t testing.TB, dir, cache string) string {
	t.Helper()
	_ = os.Remove(filepath.Join(dir, "quayside.lock"))
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 0 {
		t.Fatalf("resolve: exit code %d\n%s", got.code, got.stderr)
	}
	return read(t, dir, "quayside.lock")
}

// TestIndexKilled kills a process at many moments while it reads the catalog and writes the index.
// Later runs must give correct results.
func TestIndexKilled(t *testing.T) {
	dir, cache := newShop(t, 100, 20), t.TempDir()
	want := mustLock(t, dir, t.TempDir())
	killed, unfinished := 0, 0
	for wait := time.Millisecond; ; wait += wait/4 + time.Millisecond {
		check(t, os.RemoveAll(filepath.Join(cache, "quayside/records")))
		cmd := startProgram(t, dir, cache, "catalog", "list")
		time.Sleep(wait)
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		if err != nil {
			killed++
		}
		if indexFile(t, cache) == "" {
			unfinished++
		} else if d := cmp.Diff(want, mustLock(t, dir, cache)); d != "" {
			t.Fatalf("killed after %v (-want +got):\n%s", wait, d)
		}
		if err == nil {
			break
		}
		if wait > 30*time.Second {
			t.Fatal("catalog list does not finish")
		}
	}
	if killed == 0 || unfinished == 0 {
		t.Errorf("killed %d times, %d times before the index existed: the test proves nothing", killed, unfinished)
	}
	if d := cmp.Diff(want, mustLock(t, dir, cache)); d != "" {
		t.Errorf("in the end (-want +got):\n%s", d)
	}
}

// TestDigestOnDemand resolves with an index that has no digest of the catalog. The lock must be the
// same as without an index, and must follow changes of the catalog.
func TestDigestOnDemand(t *testing.T) {
	dir := newShop(t, 22, 2)
	lock := func(cache string) string {
		t.Helper()
		remove(t, dir, "quayside.lock")
		return mustLock(t, dir, cache)
	}
	list := func(cache string) {
		t.Helper()
		if got := quaysideIn(t, dir, cache, "catalog", "list"); got.code != 0 {
			t.Fatal(got.stderr)
		}
	}
	cache := t.TempDir()
	want := lock(t.TempDir())
	for _, what := range []string{"from an index", "again", "after another list"} {
		list(cache)
		if d := cmp.Diff(want, lock(cache)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}

	// A change of white space changes the digest.
	put(t, dir, "catalog/p3/catalog.json", read(t, dir, "catalog/p3/catalog.json")+"\n")
	settleFiles()
	list(cache)
	got := lock(cache)
	if got == want {
		t.Error("the lock has the digest of the previous files")
	}
	if d := cmp.Diff(lock(t.TempDir()), got); d != "" {
		t.Errorf("after a change (-want +got):\n%s", d)
	}
}
