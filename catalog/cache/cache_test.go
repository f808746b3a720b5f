package cache

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/store"
)

// writeCatalog writes a file-based catalog in which each package requires the next one.
func writeCatalog(t *testing.T, dir string, packages int) {
	t.Helper()
	for i := range packages {
		must(t, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("p%d", i)), 0o777))
		requires := ""
		if i+1 < packages {
			requires = fmt.Sprintf(`, {"type": "olm.package.required", "value": {"packageName": "p%d", "versionRange": ">=1.0.0"}}`, i+1)
		}
		text := fmt.Sprintf(`{"schema": "olm.package", "name": "p%[1]d", "defaultChannel": "stable", "description": "Package %[1]d."}
{"schema": "olm.channel", "package": "p%[1]d", "name": "stable", "entries": [{"name": "p%[1]d.v1.0.0"}]}
{"schema": "olm.bundle", "package": "p%[1]d", "name": "p%[1]d.v1.0.0", "image": "quay.io/shop/p%[1]d@sha256:%064[1]x", "properties": [{"type": "olm.package", "value": {"packageName": "p%[1]d", "version": "1.0.0"}}%[2]s]}
`, i, requires)
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%d/catalog.json", i)), []byte(text), 0o666))
	}
}

// laterClock returns a time one minute from now, so that files that were just written are old enough for an index.
func laterClock() time.Time { return time.Now().Add(time.Minute) }

func open(t *testing.T, dir, kept string) *Cache {
	t.Helper()
	s, err := store.Open(kept)
	must(t, err)
	return &Cache{Store: s, Resolver: source.Resolver{Lookup: source.LookupIn(dir)}, Version: "test", Now: laterClock}
}

func cats() []CatalogSpec {
	return []CatalogSpec{{ID: catalog.ID{Name: "shop"}, Source: "dir:shop", At: "dir:shop", Priority: 3, Labels: map[string]string{"a": "b"}}}
}

// queryAll returns the results of all kinds of queries as text, and reports whether an index was
// used.
func queryAll(t *testing.T, c *Cache) (all string, indexed bool) {
	t.Helper()
	var out strings.Builder
	for _, digests := range []bool{false, true} {
		set := c.Open(t.Context(), cats(), digests)
		if err := set.Broken(cats()[0].ID); err != nil {
			t.Fatal(err)
		}
		indexed = set.readers[0].index != nil
		for name, pick := range map[string]Picker{"only": PickNames("p1"), "none": PickNames()} {
			x, err := set.Pick(t.Context(), pick)
			must(t, err)
			if _, ok := x.Catalogs()[0].Package("p1"); !ok && name == "only" {
				t.Error("p1 is missing")
			}
		}
		x, err := set.Pick(t.Context(), PickClosure(catalog.Needs{Packages: []string{"p2"}}))
		must(t, err)
		cat := x.Catalogs()[0]
		fmt.Fprintln(&out, cat.ID(), cat.Priority(), cat.Labels(), cat.Source(), cat.Names())
		if digests {
			fmt.Fprintln(&out, cat.Digest())
		}
		p, _ := cat.Package("p3")
		fmt.Fprintf(&out, "%+v\n", p.Data())
		for _, match := range []func(string) bool{nil, func(text string) bool { return strings.Contains(text, "package 1") }} {
			found, err := set.Search(t.Context(), match)
			must(t, err)
			fmt.Fprintf(&out, "%+v\n", found)
		}
		set.Close()
	}
	return out.String(), indexed
}

func indexFile(t *testing.T, kept string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(kept, "records", indexKind, "*"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d indexes, want one", len(found))
	}
	return found[0]
}

// TestDamaged damages every part of an index. The results of queries must not change.
func TestDamaged(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 5)
	c := open(t, dir, kept)
	want, indexed := queryAll(t, c)
	if !indexed {
		t.Fatal("no index was stored: the test is ineffective")
	}
	file := indexFile(t, kept)
	whole, err := os.ReadFile(file)
	must(t, err)
	damaged := [][]byte{nil, whole[:len(whole)/2], append(bytes.Clone(whole), 0)}
	for i := 0; i < len(whole); i += 1 + len(whole)/60 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		damaged = append(damaged, bad)
	}
	for i, bad := range damaged {
		must(t, os.WriteFile(file, bad, 0o600))
		got, _ := queryAll(t, c)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("damage %d (-want +got):\n%s", i, d)
		}
		if left, err := os.ReadFile(file); err != nil || !bytes.Equal(left, whole) && !bytes.Equal(left, bad) {
			t.Fatalf("damage %d: the index was neither repaired nor kept unchanged (%v)", i, err)
		}
	}
}

// TestNoIndex checks catalogs whose index cannot or must not be stored.
func TestNoIndex(t *testing.T) {
	for name, spoil := range map[string]func(dir, kept string) error{
		"a file in place of a directory of the store": func(_, kept string) error { return os.WriteFile(filepath.Join(kept, "tmp"), nil, 0o666) },
		"a file modified in the future": func(dir, _ string) error {
			now := time.Now().Add(time.Hour)
			return os.Chtimes(filepath.Join(dir, "shop/p1/catalog.json"), now, now)
		},
		"a symbolic link": func(dir, _ string) error {
			if err := os.WriteFile(filepath.Join(dir, "shop/.indexignore"), []byte("/link\n"), 0o666); err != nil {
				return err
			}
			return os.Symlink("/dev/null", filepath.Join(dir, "shop/link"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, kept := t.TempDir(), t.TempDir()
			writeCatalog(t, filepath.Join(dir, "shop"), 5)
			must(t, spoil(dir, kept))
			want, _ := queryAll(t, open(t, dir, kept))
			got, indexed := queryAll(t, open(t, dir, kept))
			if indexed {
				t.Error("an index was stored")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("results (-first +second):\n%s", d)
			}
		})
	}
}

// TestUpdatedFile changes a file of a catalog, but not its size and modification time. Queries must
// return the new content.
func TestUpdatedFile(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 5)
	c := open(t, dir, kept)
	before, _ := queryAll(t, c)
	name := filepath.Join(dir, "shop/p3/catalog.json")
	text, err := os.ReadFile(name)
	must(t, err)
	overwrite(t, name, bytes.Replace(text, []byte("Package 3"), []byte("Package E"), 1))
	after, _ := queryAll(t, c)
	if after == before || !strings.Contains(after, "Package E") {
		t.Errorf("the change is not detected:\n%s", after)
	}
	again, indexed := queryAll(t, c)
	if d := cmp.Diff(after, again); d != "" || !indexed {
		t.Errorf("second query: from an index: %v (-first +second):\n%s", indexed, d)
	}
	fresh, _ := queryAll(t, open(t, dir, t.TempDir()))
	if d := cmp.Diff(fresh, again); d != "" {
		t.Errorf("(-new cache +existing cache):\n%s", d)
	}
}

// TestNoIndexOfFreshFiles opens a catalog whose files were just written according to the clock.
// No index must be stored, because another change could result in the same stamp.
func TestNoIndexOfFreshFiles(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 5)
	c := open(t, dir, kept)
	written := time.Now()
	c.Now = func() time.Time { return written }
	for _, when := range []string{"at first", "again"} {
		if _, indexed := queryAll(t, c); indexed {
			t.Errorf("%s: an index was stored", when)
		}
	}
	c.Now = laterClock
	queryAll(t, c)
	if _, indexed := queryAll(t, c); !indexed {
		t.Error("no index was stored for files that are old enough")
	}
}

// TestVersions checks that an index of another program version is replaced.
func TestVersions(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 2)
	c := open(t, dir, kept)
	c.Open(t.Context(), cats(), false).Close()
	first, err := os.ReadFile(indexFile(t, kept))
	must(t, err)
	c.Version = "next"
	c.Open(t.Context(), cats(), false).Close()
	if second, err := os.ReadFile(indexFile(t, kept)); err != nil || bytes.Equal(first, second) {
		t.Errorf("the index was not replaced (%v)", err)
	}
}

// TestBroken opens a missing catalog together with an existing one.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 2)
	gone := CatalogSpec{ID: catalog.ID{Name: "gone"}, Source: "dir:gone", At: "dir:gone"}
	served := CatalogSpec{ID: catalog.ID{Name: "served"}, Why: "it is served elsewhere"}
	var seen []string
	c := open(t, dir, t.TempDir())
	c.Progress = func(cat CatalogSpec, phase Phase) {
		seen = append(seen, fmt.Sprint(cat.ID.Name, phase))
	}
	set := c.Open(t.Context(), append(cats(), gone, served), true)
	defer set.Close()
	x, err := set.Pick(t.Context(), PickNames("p0"))
	must(t, err)
	for id, want := range map[catalog.ID]string{gone.ID: "no such file", served.ID: served.Why} {
		if err := set.Broken(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	broken := 0
	for range x.Broken() {
		broken++
	}
	if len(x.Catalogs()) != 1 || broken != 2 {
		t.Errorf("%d catalogs, %d broken", len(x.Catalogs()), broken)
	}
	if d := cmp.Diff([]string{"shop0", "shop2", "gone0", "served0"}, seen); d != "" {
		t.Error(d)
	}
	seen = nil
	c.Open(t.Context(), cats(), true).Close()
	if d := cmp.Diff([]string{"shop0", "shop1"}, seen); d != "" {
		t.Errorf("the second time: %s", d)
	}
}

// changing is a file system that changes after a number of reads of a file.
type changing struct {
	fs.FS
	reads  int
	change func()
}

func (c *changing) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "p1/catalog.json") {
		if c.reads--; c.reads == 0 {
			c.change()
		}
	}
	return c.FS.Open(name)
}

// TestChangedMeanwhile changes a catalog between loading and hashing. The digest of the new
// files must not be stored for the loaded content.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	writeCatalog(t, filepath.Join(dir, "shop"), 2)
	c := open(t, dir, t.TempDir())
	lookup := c.Resolver.Lookup
	c.Resolver.Lookup = func(path string) (source.File, error) {
		f, err := lookup(path)
		f.FS = &changing{f.FS, 2, func() { must(t, os.WriteFile(filepath.Join(dir, "shop/p1/more.json"), nil, 0o666)) }}
		return f, err
	}
	set := c.Open(t.Context(), cats(), true)
	defer set.Close()
	if err := set.Broken(cats()[0].ID); err == nil || !strings.Contains(err.Error(), "changed while it was being read") {
		t.Errorf("got %v", err)
	}
}
