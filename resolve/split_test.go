package resolve_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// TestEachPartIsSound splits the upgrade of a random universe. The lock of each part is sound and satisfies the
// declarations. The operators of a part are upgraded. Every available upgrade is in a part or reported as
// waiting. After all parts are merged, one after the other, no upgrade is available.
func TestEachPartIsSound(t *testing.T) {
	several, together, left := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		u := drawOutdated(t)
		opt := resolve.Options{KeepGoing: true, AllowOverlap: rapid.Bool().Draw(t, "overlap")}
		x := u.index(t)
		first := mustResolve(t, x, &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		plain := opt
		opt.Upgrade = true
		lock := first.Lock
		for round := 0; ; round++ {
			if round > 100 {
				t.Fatal("more than 100 rounds of parts")
			}
			parts, waiting, err := resolve.Split(x, &u.decl, lock, opt)
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) == 0 {
				if all := mustResolve(t, x, &u.decl, lock, opt); len(all.PinChanges) > 0 {
					t.Fatalf("no parts, but an upgrade changes %v", all.PinChanges)
				}
				return
			}
			for _, p := range parts {
				if err := check(x, &u.decl, p.Result.Lock, plain); err != nil {
					t.Fatalf("%v: %v", p.Operators, err)
				}
				for _, ns := range []string{"ops", "team"} {
					if fault := findUnsound(requestedPins(p.Result.Lock.Pins), &u.decl, ns); fault != "" {
						t.Fatalf("%v: %s", p.Operators, fault)
					}
				}
				for _, key := range p.Operators {
					if !slices.Contains(movedOperators(p), key) {
						t.Fatalf("%v: %s is not upgraded", p.Operators, key)
					}
				}
				if len(p.Operators) > 1 {
					together++
				}
			}
			for _, m := range mustResolve(t, x, &u.decl, lock, opt).PinChanges {
				key := m.Namespace + "/" + m.Package
				waits := slices.ContainsFunc(waiting, func(w diag.Warning) bool { return strings.Contains(w.Msg, key) })
				if m.From != "" && !waits && !slices.ContainsFunc(parts, func(p resolve.Part) bool { return slices.Contains(movedOperators(p), key) }) {
					t.Fatalf("%v is upgraded in a full upgrade, but in no part", m)
				}
			}
			if len(parts) > 1 {
				several++
			}
			if round > 0 {
				left++
			}
			lock = rapid.SampledFrom(parts).Draw(t, "merged").Result.Lock
		}
	})
	if several == 0 || together == 0 || left == 0 {
		t.Errorf("%d splits have several parts, %d parts several operators, %d splits follow another: the test is ineffective", several, together, left)
	}
}

// TestPartsMergeInAnyOrder simulates several nights. Each night, it splits the upgrades into branches, and Git
// merges some open branches in any order. Then the lock must satisfy the declarations. A branch may stay open
// for the next night if its upgrades are still the same.
func TestPartsMergeInAnyOrder(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if usage, _ := exec.Command(git, "merge-tree", "-h").CombinedOutput(); !bytes.Contains(usage, []byte("--write-tree")) {
		t.Skip("git is older than 2.38: it cannot merge without a work tree")
	}
	merges, waited, joined, older := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		u := drawOutdated(t)
		opt := resolve.Options{KeepGoing: true}
		first := mustResolve(t, u.catalogsOfDay(t, 0), &u.decl, nil, opt)
		if len(first.Conflicts) > 0 {
			return
		}
		plain := opt
		opt.Upgrade = true
		main := first.Lock
		var open []branch
		for night := range 3 {
			x := u.catalogsOfDay(t, night)
			parts, waiting, err := resolve.Split(x, &u.decl, main, opt)
			if err != nil {
				t.Fatal(err)
			}
			waited += len(waiting)
			open = openBranches(open, main, parts, func() bool { return rapid.Bool().Draw(t, "left open") })
			for _, b := range open {
				if b.base != main {
					older++
				}
				if len(b.operators) > 1 {
					joined++
				}
			}
			var chosen []branch
			for _, b := range rapid.Permutation(open).Draw(t, "order") {
				if rapid.IntRange(0, 3).Draw(t, "merged") > 0 {
					chosen = append(chosen, b)
				}
			}
			for i, b := range chosen {
				merged := mergeFile(t, git, dir, main, b.base, b.lock)
				if merges%20 == 0 { // git merge is twelve times slower than git merge-file
					if whole := mergeBranches(t, git, dir, main, b.base, b.lock); !bytes.Equal(whole, merged) {
						t.Fatalf("git merge and git merge-file differ: %s", cmp.Diff(string(merged), string(whole)))
					}
				}
				if main, err = lockfile.Parse("quayside.lock", merged); err != nil {
					t.Fatalf("night %d: merge %d, of %v: %v\n%s", night, i, b.operators, err, merged)
				}
				merges++
				open = slices.DeleteFunc(open, func(o branch) bool { return slices.Equal(o.operators, b.operators) })
				if err := check(x, &u.decl, main, plain); err != nil {
					t.Fatalf("night %d: merge %d, of %v: %v", night, i, b.operators, err)
				}
			}
		}
	})
	t.Logf("%d merges, %d of them of older nights, %d parts of several operators, %d parts waited", merges, older, joined, waited)
	if merges == 0 || waited == 0 || joined == 0 || older == 0 {
		t.Error("some case did not occur: the test is ineffective")
	}
}

// branch is a part with the lock that it is based on.
type branch struct {
	operators  []string
	base, lock *lockfile.File
}

// openBranches returns the open branches after a night, one for each part. If isLeft returns true, an earlier
// branch with the same upgrades stays open. Otherwise, the part gets a new branch.
func openBranches(before []branch, main *lockfile.File, parts []resolve.Part, isLeft func() bool) []branch {
	var out []branch
	for _, p := range parts {
		now := branch{p.Operators, main, p.Result.Lock}
		i := slices.IndexFunc(before, func(b branch) bool { return b.upgrades() == now.upgrades() })
		if i >= 0 && isLeft() {
			now = before[i]
		}
		out = append(out, now)
	}
	return out
}

// upgrades returns the changes of a branch as one string.
func (b branch) upgrades() string {
	var out []string
	for _, c := range lockfile.Diff(b.base, b.lock) {
		out = append(out, fmt.Sprint(c.Kind, c.Namespace, c.Package, c.From, c.To))
	}
	return strings.Join(out, " ")
}

// mergeFile returns the result of git merge-file for ours and theirs, which are two modified versions of base.
func mergeFile(t *rapid.T, git, dir string, ours, base, theirs *lockfile.File) []byte {
	var files []string
	for i, f := range []*lockfile.File{ours, base, theirs} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, lockfile.Format(f), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	out, err := exec.Command(git, append([]string{"merge-file", "-p"}, files...)...).Output()
	if err != nil {
		t.Fatalf("git could not merge: %v\n%s", err, out)
	}
	return out
}

// mergeBranches returns the lock after git merges two branches.
func mergeBranches(t *rapid.T, git, dir string, ours, base, theirs *lockfile.File) []byte {
	var stream bytes.Buffer
	for _, c := range []struct {
		name, from string
		lock       *lockfile.File
	}{{"base", "", base}, {"ours", "from refs/heads/base\n", ours}, {"theirs", "from refs/heads/base\n", theirs}} {
		text := lockfile.Format(c.lock)
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter a <a@example.com> 0 +0000\ndata 0\n%sM 100644 inline quayside.lock\ndata %d\n%s\n", c.name, c.from, len(text), text)
	}
	run := func(in io.Reader, args ...string) []byte {
		cmd := exec.Command(git, append([]string{"-C", dir}, args...)...)
		cmd.Stdin = in
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	run(&stream, "fast-import", "--quiet", "--force")
	tree := run(nil, "merge-tree", "--write-tree", "ours", "theirs")
	return run(nil, "cat-file", "blob", strings.TrimSpace(string(tree))+":quayside.lock")
}

// catalogsOfDay returns the catalogs of one day. The bundles are the same every day, but the digests differ.
func (u universe) catalogsOfDay(t *rapid.T, day int) *catalog.Index {
	later := u
	later.cats = nil
	for _, c := range u.cats {
		c.Digest = catalog.DigestOf([]byte{byte(day)})
		later.cats = append(later.cats, c)
	}
	return later.index(t)
}

// drawOutdated draws packages that are installed at their first versions, which have no
// requirements. Later versions may require versions of other packages, declared or not.
func drawOutdated(t *rapid.T) universe {
	u := universe{decl: declare.Set{OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}}}}
	cat := catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "cat0"}, Source: "dir:cat0", Digest: catalog.DigestOf(nil)}
	names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(2, 6).Draw(t, "packages")]
	for i, name := range names {
		p := catalog.PackageData{Name: name, DefaultChannel: "stable"}
		n := rapid.IntRange(1, 4).Draw(t, "versions")
		bundle := func(v int) string { return fmt.Sprintf("%s.v%d.0.0", name, v) }
		for v := 1; v <= n; v++ {
			b := catalog.BundleData{Name: bundle(v), Image: "quay.io/example/" + name + "@sha256:" + catalog.DigestOf([]byte(bundle(v))).Hex()}
			b.Properties = append(b.Properties, property("olm.package", map[string]string{"packageName": name, "version": fmt.Sprintf("%d.0.0", v)}))
			if v > 1 && rapid.IntRange(0, 2).Draw(t, "needs") == 0 {
				b.Properties = append(b.Properties, property("olm.package.required", map[string]string{
					"packageName":  rapid.SampledFrom(names).Draw(t, "needed"),
					"versionRange": fmt.Sprintf("%s%d.0.0", rapid.SampledFrom([]string{"<", ">=", ">=", ""}).Draw(t, "op"), rapid.IntRange(1, 3).Draw(t, "version")),
				}))
			}
			p.Bundles = append(p.Bundles, b)
		}
		p.Channels = []catalog.ChannelData{drawChannel(t, "stable", 1, n, bundle)}
		cat.Packages = append(cat.Packages, p)
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "left out") == 0 {
			continue
		}
		u.decl.Subscriptions = append(u.decl.Subscriptions, declare.Subscription{
			Dialect: declare.V0, Name: name, Namespace: "ops", Package: name, Channels: []string{"stable"}, StartingCSV: bundle(1),
			Approval: declare.Automatic, Policy: declare.CatalogProvided, Catalog: &cat.ID,
		})
	}
	u.cats = []catalog.Content{cat}
	return u
}

// movedOperators returns the operators whose pins a part changes.
func movedOperators(p resolve.Part) []string {
	var out []string
	for _, m := range p.Result.PinChanges {
		out = append(out, m.Namespace+"/"+m.Package)
	}
	return out
}

// TestPartReasons checks the bonds in the parts of an upgrade. There are three operators: an application that
// requires the next version of a database, the database, and an unrelated operator.
func TestPartReasons(t *testing.T) {
	bundle := func(name, version string, more ...catalog.Property) catalog.BundleData {
		b := catalog.BundleData{Name: name + ".v" + version, Image: "quay.io/example/" + name + "@sha256:" + catalog.DigestOf([]byte(name+version)).Hex(), Properties: more}
		b.Properties = append(b.Properties, property("olm.package", map[string]string{"packageName": name, "version": version}))
		return b
	}
	pkg := func(name string, old, next catalog.BundleData) catalog.PackageData {
		return catalog.PackageData{Name: name, DefaultChannel: "stable", Bundles: []catalog.BundleData{old, next}, Channels: []catalog.ChannelData{
			{Name: "stable", Entries: []catalog.EntryData{{Name: old.Name}, {Name: next.Name, Replaces: old.Name}}},
		}}
	}
	needs := func(r string) catalog.Property {
		return property("olm.package.required", map[string]string{"packageName": "db", "versionRange": r})
	}
	cat, err := catalog.New(catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "c"}, Source: "dir:c", Digest: catalog.DigestOf(nil), Packages: []catalog.PackageData{
		pkg("app", bundle("app", "1.0.0"), bundle("app", "2.0.0", needs(">=2.0.0"))),
		pkg("db", bundle("db", "1.0.0"), bundle("db", "2.0.0")),
		pkg("other", bundle("other", "1.0.0"), bundle("other", "2.0.0")),
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := catalog.NewIndex(cat)
	if err != nil {
		t.Fatal(err)
	}
	decl := declare.Set{OperatorGroups: []declare.OperatorGroup{{Namespace: "ops", Name: "og"}}}
	for _, name := range []string{"app", "db", "other"} {
		decl.Subscriptions = append(decl.Subscriptions, declare.Subscription{
			Dialect: declare.V0, Name: name, Namespace: "ops", Package: name, Channels: []string{"stable"}, Approval: declare.Automatic,
			Policy: declare.CatalogProvided, Catalog: &catalog.ID{Namespace: "olm", Name: "c"}, StartingCSV: name + ".v1.0.0",
		})
	}
	first, err := resolve.Resolve(x, &decl, nil, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	split := func(lock *lockfile.File, opt resolve.Options) [][]string {
		parts, _, err := resolve.Split(x, &decl, lock, opt)
		if err != nil {
			t.Fatal(err)
		}
		var out [][]string
		for _, p := range parts {
			out = append(out, p.Operators)
			for _, b := range p.Bonds {
				if b.Operator != "ops/app" || b.With != "ops/db" || !strings.Contains(b.Why, "app.v2.0.0") || !strings.Contains(b.Why, ">=2.0.0") {
					t.Errorf("bond %+v", b)
				}
				t.Logf("%+v", b)
			}
		}
		return out
	}
	if d := cmp.Diff([][]string{{"ops/app", "ops/db"}, {"ops/other"}}, split(first.Lock, resolve.Options{Upgrade: true})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]string{{"ops/db"}}, split(first.Lock, resolve.Options{Named: []resolve.Target{{Namespace: "ops", Package: "db"}}})); d != "" {
		t.Error(d)
	}
	decl.Subscriptions[1].Hold = "not now"
	if d := cmp.Diff([][]string{{"ops/other"}}, split(first.Lock, resolve.Options{Upgrade: true})); d != "" {
		t.Error(d)
	}
}
