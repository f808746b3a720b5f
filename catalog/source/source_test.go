package source_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// example describes how to test a scheme. All examples contain the same catalog in the format of
// their scheme: the package lamp with the bundles lamp.v1.0.0 and lamp.v1.1.0.
type example struct {
	// put writes an edition of the catalog below dir and returns the part of the reference after the colon.
	// Editions differ only in a description. The edition "broken" also has a fault: the field fault names its
	// file.
	put       func(t *testing.T, dir, edition string) (rest string)
	fault     string // path below the directory of the catalog; empty if rest names the file
	wrong     string // an invalid path; empty: a file in place of a directory, or a directory in place of a file
	image     bool
	fileBased bool
	claimed   bool // the directory is recognized without its scheme
}

const broken = "broken"

// examples returns the example of every scheme.
func examples(t *testing.T) map[string]example {
	server := ocitest.New(t)
	return map[string]example{
		"image": {
			put: func(t *testing.T, _, edition string) string {
				ref := server.Host + "/" + edition + "/catalog:v1"
				check(t, new(oci.Client).Push(t.Context(), ref, packCatalog(t, edition)))
				return ref
			},
			fault: "lamp/catalog.json", wrong: "quay.io/UPPER", image: true, fileBased: true,
		},
		"oci": {
			put: func(t *testing.T, dir, edition string) string {
				check(t, packCatalog(t, edition).WriteLayout(filepath.Join(dir, "layout"), "v1"))
				return "layout"
			},
			fault: "lamp/catalog.json", image: true, fileBased: true, claimed: true,
		},
		"oci-archive": {
			put: func(t *testing.T, dir, edition string) string {
				check(t, packCatalog(t, edition).WriteLayout(filepath.Join(dir, "layout"), "v1"))
				check(t, os.WriteFile(filepath.Join(dir, "layout.tar"), tarOf(t, os.DirFS(filepath.Join(dir, "layout"))), 0o666))
				return "layout.tar:v1"
			},
			fault: "lamp/catalog.json", wrong: "layout", image: true, fileBased: true,
		},
		"docker-archive": {
			put: func(t *testing.T, dir, edition string) string {
				layer := tarOf(t, newMapFS("configs/", fileBased(t, edition)))
				config := fmt.Sprintf(`{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":"/configs"}},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer))
				id := fmt.Sprintf("%x.json", sha256.Sum256([]byte(config)))
				files := newMapFS("", map[string]string{"manifest.json": `[{"Config":"` + id + `","RepoTags":["lamps:v1"],"Layers":["layer.tar"]}]`, id: config, "layer.tar": string(layer)})
				check(t, os.WriteFile(filepath.Join(dir, "saved.tar"), tarOf(t, files), 0o666))
				return "saved.tar:lamps:v1"
			},
			fault: "lamp/catalog.json", wrong: ".", image: true, fileBased: true,
		},
		"dir": {
			put: func(t *testing.T, dir, edition string) string {
				write(t, filepath.Join(dir, "files"), fileBased(t, edition))
				return "files"
			},
			fault: "lamp/catalog.json", fileBased: true, claimed: true,
		},
		"bundles": {
			put: func(t *testing.T, dir, edition string) string {
				for _, v := range versions() {
					write(t, filepath.Join(dir, "src", v), map[string]string{
						"manifests/csv.yaml":        csv(t, v, edition),
						"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: lamp\n  operators.operatorframework.io.bundle.channels.v1: stable\n",
					})
				}
				return "src"
			},
			fault: "1.0.0/manifests/csv.yaml", claimed: true,
		},
		"package-manifests": {
			put: func(t *testing.T, dir, edition string) string {
				check(t, os.CopyFS(filepath.Join(dir, "old"), os.DirFS(lamp)))
				check(t, os.Remove(filepath.Join(dir, "old/index.sql")))
				for _, v := range versions() {
					write(t, filepath.Join(dir, "old", v), map[string]string{"lamp.clusterserviceversion.yaml": csv(t, v, edition)})
				}
				return "old"
			},
			fault: "1.0.0/lamp.clusterserviceversion.yaml", claimed: true,
		},
		"sqlite": {
			put: func(t *testing.T, dir, edition string) string {
				check(t, os.Mkdir(filepath.Join(dir, "old"), 0o777))
				writeDatabase(t, filepath.Join(dir, "old", "index.db"), edition)
				return "old/index.db"
			},
		},
	}
}

func versions() []string { return []string{"1.0.0", "1.1.0"} }

// lamp is the directory with the content of the catalog.
const lamp = "../../testdata/lamp"

// csv returns the ClusterServiceVersion of a version.
func csv(t *testing.T, version, edition string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(lamp, version, "lamp.clusterserviceversion.yaml"))
	check(t, err)
	text := strings.Replace(string(data), "An operator for lamps.", edition, 1)
	if edition == broken {
		text = strings.Replace(text, "version: 1.0.0", "version: one", 1)
	}
	return text
}

// manifest returns the ClusterServiceVersion of a version as embedded in catalogs.
func manifest(t *testing.T, version, edition string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(csv(t, version, edition)))
	check(t, err)
	return data
}

// fileBased returns the files of a file-based catalog.
func fileBased(t *testing.T, edition string) map[string]string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `{"schema": "olm.package", "name": "lamp", "defaultChannel": "stable", "description": %q}`+"\n", edition)
	b.WriteString(`{"schema": "olm.channel", "package": "lamp", "name": "stable", "entries": [{"name": "lamp.v1.1.0", "replaces": "lamp.v1.0.0"}, {"name": "lamp.v1.0.0"}]}` + "\n")
	for _, v := range versions() {
		object, err := json.Marshal(map[string]any{"data": manifest(t, v, "first")})
		check(t, err)
		fmt.Fprintf(&b, `{"schema": "olm.bundle", "package": "lamp", "name": "lamp.v%s", "properties": [{"type": "olm.package", "value": {"packageName": "lamp", "version": "%[1]s"}}, {"type": "olm.bundle.object", "value": %s}]}`+"\n", v, object)
	}
	if edition == broken {
		b.WriteString("{]")
	}
	return map[string]string{"lamp/catalog.json": b.String()}
}

func packCatalog(t *testing.T, edition string) *oci.Packed {
	t.Helper()
	p, err := oci.Pack(newMapFS("", fileBased(t, edition)), oci.PackOptions{Prefix: "configs", Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}})
	check(t, err)
	return p
}

func writeDatabase(t *testing.T, name, edition string) {
	t.Helper()
	if edition == broken {
		check(t, os.WriteFile(name, []byte("SQLite format 3\x00, or not"), 0o666))
		return
	}
	db, err := sql.Open("sqlite", name)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	script, err := os.ReadFile(filepath.Join(lamp, "index.sql"))
	check(t, err)
	_, err = db.ExecContext(t.Context(), string(script))
	check(t, err)
	for _, v := range versions() {
		_, err = db.ExecContext(t.Context(), "UPDATE operatorbundle SET csv = ?, bundle = ? WHERE version = ?", manifest(t, v, edition), manifest(t, v, edition), v)
		check(t, err)
	}
}

// TestSchemes tests every scheme of the table with the same cases.
func TestSchemes(t *testing.T) {
	all := examples(t)
	page, err := os.ReadFile("../../docs/catalogs.md")
	check(t, err)
	for _, s := range source.Schemes() {
		if !strings.Contains(string(page), "\n| `"+s.Name+":") {
			t.Errorf("%s: add a row to the table of sources in docs/catalogs.md: | `%[1]s:path` | … |", s.Name)
		}
		if strings.HasPrefix(s.Name, "helm:") || strings.HasPrefix(s.Name, "manifests:") || strings.HasPrefix(s.Name, "http") {
			continue // tested by TestCharts and TestReleases: the bundles have another format; and by TestServed
		}
		ex, ok := all[s.Name]
		if !ok {
			t.Errorf("%s: add a catalog to examples in source_test.go", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			ex.try(t, s.Name)
		})
	}
}

func (ex example) try(t *testing.T, scheme string) {
	dir := t.TempDir()
	rest := ex.put(t, dir, "first")
	ref := source.Ref(scheme + ":" + rest)

	t.Run("syntax", func(t *testing.T) { ex.checkSyntax(t, ref, rest) })
	t.Run("argument", func(t *testing.T) { ex.checkDirRef(t, dir, ref, rest) })
	t.Run("content", func(t *testing.T) {
		c := open(t, dir, ref)
		content, err := c.Content(t.Context())
		check(t, err)
		if len(content.Packages) != 1 || content.Packages[0].Name != "lamp" || len(content.Packages[0].Bundles) != len(versions()) {
			t.Errorf("content: %+v", content.Packages)
		}
		if c.IsFileBased() != ex.fileBased {
			t.Errorf("file-based: %v, want %v", c.IsFileBased(), ex.fileBased)
		}
	})
	t.Run("bundle", func(t *testing.T) { checkBundles(t, open(t, dir, ref)) })
	t.Run("digest", func(t *testing.T) {
		first := digest(t, dir, ref)
		if again := digest(t, dir, ref); again != first {
			t.Errorf("digest %s, and %s of the same content", first, again)
		}
		other := t.TempDir()
		if changed := digest(t, other, source.Ref(scheme+":"+ex.put(t, other, "second"))); changed == first {
			t.Error("other content has the same digest")
		}
	})
	t.Run("index", func(t *testing.T) { checkIndexed(t, dir, ref) })
	t.Run("fault", func(t *testing.T) {
		dir := t.TempDir()
		rest := ex.put(t, dir, broken)
		want := ex.fault
		if !ex.image {
			want = path.Join(rest, ex.fault)
		}
		if faults := faultsOf(t, dir, source.Ref(scheme+":"+rest)); len(faults) == 0 || faults[0].Pos.File != want {
			t.Errorf("faults %v: want one in %s", faults, want)
		}
	})
	t.Run("missing", func(t *testing.T) {
		nowhere := "nowhere"
		if scheme == "image" {
			nowhere = "127.0.0.1:1/nowhere"
		}
		err := loadError(t, dir, source.Ref(scheme+":"+nowhere))
		if err != nil && !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("%v: want the missing location in the error", err)
		}
	})
	t.Run("wrong type", func(t *testing.T) {
		wrong := ex.wrong
		if wrong == "" { // a file instead of a directory, or vice versa
			wrong = "else"
			if info, err := os.Stat(filepath.Join(dir, rest)); err == nil && info.IsDir() {
				check(t, os.WriteFile(filepath.Join(dir, wrong), []byte("a file"), 0o666))
			} else {
				check(t, os.Mkdir(filepath.Join(dir, wrong), 0o777))
			}
		}
		_ = loadError(t, dir, source.Ref(scheme+":"+wrong))
	})
}

// checkSyntax checks the methods of a reference that only use its text.
func (ex example) checkSyntax(t *testing.T, ref source.Ref, rest string) {
	check(t, ref.Check())
	scheme, _, _ := strings.Cut(string(ref), ":")
	dir, image := ref.Argument()
	if (image == string(ref)) != ex.image || dir != "" && (dir != rest || ex.image) {
		t.Errorf("%s: as an argument directory %q, image %q", ref, dir, image)
	}
	moved := ref.MapPath(func(p string) string { return "moved/" + p })
	if _, is := ref.Path(); is == ref.IsRemote() || (moved == source.Ref(scheme+":moved/"+rest)) != is || !is && moved != ref {
		t.Errorf("%s: mapped to %s", ref, moved)
	}
	if is, ok := ref.Directory(); ok && (is != rest || ex.image) {
		t.Errorf("%s: directory %q", ref, is)
	}
	for _, bad := range []source.Ref{source.Ref(scheme), source.Ref(scheme + ":"), source.Ref(scheme + ": " + rest), "x" + ref, source.Ref(rest)} {
		if bad.Check() == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	d := catalog.DigestOf(nil)
	if at := ref.AtDigest(d); ref.IsRemote() != (at != ref) || at != ref && at != source.ImageRef(strings.TrimSuffix(rest, ":v1")+"@"+string(d)) {
		t.Errorf("%s with a digest is %s", ref, at)
	}
}

// checkDirRef checks the reference of a directory that is given without a scheme.
func (ex example) checkDirRef(t *testing.T, dir string, ref source.Ref, rest string) {
	info, err := os.Stat(filepath.Join(dir, rest))
	if err != nil || !info.IsDir() {
		if _, is := ref.Directory(); is || ex.claimed {
			t.Errorf("%s is not a directory", rest)
		}
		return
	}
	if got, err := source.DirRef(os.DirFS(filepath.Join(dir, rest)), rest); err != nil || (got == ref) != ex.claimed {
		t.Errorf("DirRef of %s returns %s (%v)", ref, got, err)
	}
}

// checkBundles checks that all bundles of a catalog are found, and that nonexistent bundles are not found.
func checkBundles(t *testing.T, c *source.OpenedCatalog) {
	t.Helper()
	for _, v := range versions() {
		fsys, err := c.Bundle(t.Context(), "lamp", "lamp.v"+v, nil)
		check(t, err)
		b, err := bundle.Load(fsys)
		check(t, err)
		if b.CSV.Version != v {
			t.Errorf("lamp.v%s has version %s", v, b.CSV.Version)
		}
	}
	for _, no := range [][2]string{{"lamp", "lamp.v2.0.0"}, {"torch", "lamp.v1.0.0"}} {
		if _, err := c.Bundle(t.Context(), no[0], no[1], nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("bundle %s of %s: %v", no[1], no[0], err)
		}
	}
}

// laterClock returns a time one minute from now, so that files that were just written are old enough for an index.
func laterClock() time.Time { return time.Now().Add(time.Minute) }

// checkIndexed opens a catalog twice: the first run stores an index, and the second run uses it. Both results
// must equal the content of the catalog.
func checkIndexed(t *testing.T, dir string, ref source.Ref) {
	kept, err := store.Open(t.TempDir())
	check(t, err)
	c := &cache.Cache{Store: kept, Resolver: newResolver(dir), Version: "test", Now: laterClock}
	id := catalog.ID{Name: "lamps"}
	pick := func(what cache.Picker) *catalog.Catalog {
		sh := c.Open(t.Context(), []cache.CatalogSpec{{ID: id, Source: ref, At: ref}}, true)
		defer sh.Close()
		check(t, sh.Broken(id))
		x, err := sh.Pick(t.Context(), what)
		check(t, err)
		return x.Catalogs()[0]
	}
	everything := cache.PickClosure(catalog.Needs{Anything: true})
	want, err := open(t, dir, ref).Content(t.Context())
	check(t, err)
	want.ID, want.Source, want.Digest = id, string(ref), digest(t, dir, ref)
	whole, err := catalog.New(want)
	check(t, err)
	for _, when := range []string{"at first", "again"} {
		got := pick(everything)
		if d := cmp.Diff(data(whole), data(got)); d != "" || got.Digest() != want.Digest {
			t.Errorf("%s (-catalog +index), digest %s, want %s:\n%s", when, got.Digest(), want.Digest, d)
		}
	}
	if part := pick(cache.PickNames()); len(part.Packages()) != 0 || !slices.Equal(part.Names(), []string{"lamp"}) {
		t.Error("the catalog was loaded without its index")
	}
	contents, err := c.OpenContents(t.Context(), ref)
	check(t, err)
	defer contents.Close()
	if _, err := contents.Bundle(t.Context(), "lamp", "lamp.v1.0.0"); err != nil {
		t.Errorf("a bundle by the index: %v", err)
	}
}

func data(c *catalog.Catalog) (out []catalog.PackageData) {
	for _, p := range c.Packages() {
		out = append(out, p.Data())
	}
	return out
}

// TestRefs checks references without a valid scheme.
func TestRefs(t *testing.T) {
	for ref, want := range map[source.Ref]string{
		"":                "missing",
		"catalog":         `"catalog" does not start with one of image:, oci:, `,
		"directory:x":     `does not start with one of`,
		"oic:x":           `(did you mean "oci"?)`,
		"OCI:x":           `(did you mean "oci"?)`,
		"oci":             `does not start with one of`,
		"oci:":            "has no location after the colon",
		"dir: ":           "has no location after the colon",
		"dir:x ":          "has no location after the colon",
		"quay.io/x/y:tag": "does not start with one of",

		"helm:https://ada:secret@example.com/charts":                                          `"helm:https://***@example.com/charts" must not have a user name`,
		"https://token@example.com/catalog.json":                                              "must not have a user name",
		"manifests:https://ada:secret@example.com/{version}.yaml#package=lamp&versions=1.0.0": "must not have a user name",
		"manifests:git+https://ada:secret@example.com/lamp.git#package=lamp&path=.&tags=v*":   "must not have a user name",
	} {
		if err := ref.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", ref, err, want)
		}
	}
	for _, ref := range []source.Ref{"catalog", "directory:x"} {
		_ = loadError(t, t.TempDir(), ref)
		dir, image := ref.Argument()
		if _, is := ref.Path(); is || dir+image+ref.Prefix() != "" || ref.IsRemote() || ref.MapPath(strings.ToUpper) != ref {
			t.Errorf("%q is accepted", ref)
		}
	}
	at := source.ImageRef("quay.io/x/y@" + string(catalog.DigestOf(nil)))
	if got := at.AtDigest(catalog.DigestOf([]byte("other"))); got != at {
		t.Errorf("%s with another digest is %s", at, got)
	}
	for bundle, want := range map[string]source.Ref{"dir:x": "bundles:x", "oci:x": "oci:x", "image:quay.io/x": "image:quay.io/x"} {
		if got := source.BundleRef(bundle); got != want {
			t.Errorf("bundle %s is accepted as catalog %s", bundle, got)
		}
	}
}

// TestBundles checks that Ref.Argument supports every scheme that a declaration accepts for a bundle.
func TestBundles(t *testing.T) {
	accepted := 0
	for _, s := range source.Schemes() {
		text := "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: lamp, namespace: lamps}\nspec: {bundle: \"" + s.Name + ":x\"}\n"
		_, err := declare.LoadFS(newMapFS("subscriptions/", map[string]string{"lamp.yaml": text}), declare.LoadOptions{Paths: []declare.Path{{Path: "subscriptions"}}})
		if err == nil {
			accepted++
		}
		if dir, image := source.Ref(s.Name + ":x").Argument(); err == nil && dir+image == "" {
			t.Errorf("declarations accept %s: for a bundle, but it is not a scheme for bundles", s.Name)
		}
	}
	if accepted == 0 {
		t.Error("no scheme is accepted: the test is ineffective")
	}
}

func newResolver(dir string) source.Resolver {
	cache, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		panic(err)
	}
	return source.Resolver{
		Lookup: source.LookupIn(dir),
		Image: func(ctx context.Context, ref string) (*image.Image, error) {
			return image.Open(ctx, &oci.Client{Lookup: filetree.LookupIn(dir), Store: cache}, ref, image.OpenOptions{})
		},
	}
}

func open(t *testing.T, dir string, ref source.Ref) *source.OpenedCatalog {
	t.Helper()
	c, err := source.Open(t.Context(), newResolver(dir), ref)
	check(t, err)
	t.Cleanup(c.Close)
	return c
}

func digest(t *testing.T, dir string, ref source.Ref) catalog.Digest {
	t.Helper()
	d, err := open(t, dir, ref).Digest()
	check(t, err)
	if _, err := catalog.ParseDigest(string(d)); err != nil {
		t.Error(err)
	}
	return d
}

// loadError loads a catalog and returns the error, which must not be nil.
func loadError(t *testing.T, dir string, ref source.Ref) error {
	t.Helper()
	c, err := source.Open(t.Context(), newResolver(dir), ref)
	if err == nil {
		defer c.Close()
		_, err = c.Content(t.Context())
	}
	if err == nil {
		t.Errorf("%s is loaded without an error", ref)
	}
	return err
}

// faultsOf returns the faults of a catalog, with file names as in messages.
func faultsOf(t *testing.T, dir string, ref source.Ref) (faults diag.List) {
	t.Helper()
	c, err := source.Open(t.Context(), newResolver(dir), ref)
	if err == nil {
		defer c.Close()
		_, err = c.Content(t.Context())
		err = diag.PrefixPositions(ref.Prefix(), err)
	}
	if !errors.As(err, &faults) {
		t.Errorf("%v: not a list of faults", err)
	}
	return faults
}

func newMapFS(prefix string, files map[string]string) fs.FS {
	dir := fstest.MapFS{}
	for name, data := range files {
		dir[prefix+name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(name), 0o777))
		check(t, os.WriteFile(name, []byte(data), 0o666))
	}
}

// tarOf returns a tar file with all files.
func tarOf(t *testing.T, fsys fs.FS) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	check(t, w.AddFS(fsys))
	check(t, w.Close())
	return buf.Bytes()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestServed opens the same file-based catalog in a directory and on a server: online, offline, and changed.
func TestServed(t *testing.T) {
	served, requests := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/all" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(served))))
		requests++
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(served))
	}))
	defer server.Close()
	kept, err := store.Open(t.TempDir())
	check(t, err)
	at, offline := newResolver(t.TempDir()), newResolver(t.TempDir())
	at.Download = (&oci.Client{Store: kept}).Download
	offline.Download = (&oci.Client{Store: kept, Offline: true}).Download
	ref := source.Ref(server.URL + "/api/v1/all")
	check(t, ref.Check())
	digests := map[catalog.Digest]bool{}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		served = lampCatalog(version)
		for _, at := range []source.Resolver{at, offline} {
			c, content := openCatalog(t, at, ref)
			if p := content.Packages; len(p) != 1 || len(p[0].Bundles) != 1 || p[0].Bundles[0].Name != "lamp.v"+version {
				t.Errorf("packages are %+v", p)
			}
			files, err := c.Bundle(t.Context(), "lamp", "lamp.v"+version, nil)
			check(t, err)
			if names, err := fs.Glob(files, "manifests/*"); err != nil || len(names) != 1 {
				t.Errorf("manifests of the bundle are %q, error %v", names, err)
			}
			d, err := c.Digest()
			check(t, err)
			digests[d] = true
			c.Close()
		}
	}
	if len(digests) != 2 || requests != 2 {
		t.Errorf("digests are %v, want one for each content; %d requests, want one for each", digests, requests)
	}
	for _, bad := range []source.Ref{"https://", "https:host", "https://user:secret@host/x", "http://example.com/x", source.Ref(server.URL + "/nowhere")} {
		if _, err := source.Find(t.Context(), at, bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// lampCatalog returns a file-based catalog with one bundle that is embedded.
func lampCatalog(version string) string {
	csv := fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v%[1]s"},"spec":{"version":"%[1]s"}}`, version)
	return fmt.Sprintf(`{"schema":"olm.package","name":"lamp","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v%[1]s"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v%[1]s","image":"","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"%[1]s"}},{"type":"olm.bundle.object","value":{"data":%[2]q}}]}
`, version, base64.StdEncoding.EncodeToString([]byte(csv)))
}
