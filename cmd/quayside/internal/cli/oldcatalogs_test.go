package cli_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// lamp is an operator in two versions.
const lamp = "../../../../testdata/lamp"

// writeDatabase writes a SQLite catalog that contains the manifests of its bundles.
func writeDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), read(t, lamp, "index.sql"))
	check(t, err)
	for _, v := range []string{"1.0.0", "1.1.0"} {
		csv, err := yaml.YAMLToJSON([]byte(read(t, lamp, v+"/lamp.clusterserviceversion.yaml")))
		check(t, err)
		_, err = db.ExecContext(t.Context(), "UPDATE operatorbundle SET csv = ?, bundle = ? WHERE version = ?", csv, csv, v)
		check(t, err)
	}
}

// TestDatabaseCatalog resolves and renders with a SQLite catalog, as a file and as an image like
// those of opm.
func TestDatabaseCatalog(t *testing.T) {
	server := ocitest.New(t)
	files := t.TempDir()
	writeDatabase(t, filepath.Join(files, "index.db"))
	packed, err := oci.Pack(os.DirFS(files), oci.PackOptions{
		Prefix: "database", Labels: map[string]string{"operators.operatorframework.io.index.database.v1": "/database/index.db"},
	})
	check(t, err)
	image := server.Host + "/old/index:v1"
	check(t, (&oci.Client{}).Push(context.Background(), image, packed))

	for name, source := range map[string]string{"file": "sqlite:index.db", "image": "image:" + image} {
		t.Run(name, func(t *testing.T) {
			dir, cache := t.TempDir(), t.TempDir()
			writeDatabase(t, filepath.Join(dir, "index.db"))
			put(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs: [{name: old, source: \""+source+"\"}]\n")
			put(t, dir, "subscriptions/lamp.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: lamp, namespace: lamps}\nspec: {package: lamp}\n")
			for _, args := range [][]string{{"catalog", "validate", source}, {"resolve"}, {"render"}, {"verify", "--offline"}, {"render", "--check", "--offline"}} {
				if got := quaysideIn(t, dir, cache, args...); got.code != 0 {
					t.Fatalf("%s: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
				}
			}
			if got := read(t, dir, "rendered/operators/lamps.lamp/deployment-lamp.yaml"); !strings.Contains(got, "example.com/lamp:1.1.0") {
				t.Error(got)
			}
		})
	}
}

// TestOldCatalogIndex reads catalogs of old formats from their index. The results must be the same as without
// an index. The catalog must be read again only after a change.
func TestOldCatalogIndex(t *testing.T) {
	filler := strings.Repeat("filler ", 300_000)
	for source, c := range map[string]struct {
		file string // file with most of the content
		make func(dir string)
	}{
		"sqlite:old/index.db": {"old/index.db", func(dir string) {
			path := filepath.Join(dir, "old/index.db")
			put(t, dir, "old/README", "")
			writeDatabase(t, path)
			db, err := sql.Open("sqlite", path)
			check(t, err)
			_, err = db.ExecContext(t.Context(), "CREATE TABLE filler (text TEXT); INSERT INTO filler VALUES (?)", filler)
			check(t, err)
			check(t, db.Close())
		}},
		"docker-archive:old/image.tar:old:v1": {"old/image.tar", func(dir string) {
			layer := tarOf(t, map[string]string{"configs/catalog.json": strings.ReplaceAll(shopPackage(0, 1, 1), "p0", "lamp"), "etc/filler": filler})
			config := fmt.Sprintf(`{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":"/configs"}},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer))
			id := fmt.Sprintf("%x.json", sha256.Sum256([]byte(config)))
			put(t, dir, "old/image.tar", string(tarOf(t, map[string]string{
				"manifest.json": `[{"Config":"` + id + `","RepoTags":["old:v1"],"Layers":["layer.tar"]}]`, id: config, "layer.tar": string(layer),
			})))
		}},
		"package-manifests:old": {"old/1.1.0/filler.yaml", func(dir string) {
			check(t, os.CopyFS(filepath.Join(dir, "old"), os.DirFS(lamp)))
			put(t, dir, "old/1.1.0/filler.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: filler}\ndata: {text: \""+filler+"\"}\n")
		}},
	} {
		t.Run(source, func(t *testing.T) {
			dir, cache := t.TempDir(), t.TempDir()
			c.make(dir)
			put(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs: [{name: old, source: \""+source+"\"}]\n")
			put(t, dir, "subscriptions/lamp.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: lamp, namespace: lamps}\nspec: {package: lamp}\n")
			settleFiles()
			show, resolve := []string{"catalog", "show", "lamp", "-o", "yaml"}, []string{"resolve", "--check"}
			list, search := []string{"catalog", "list"}, []string{"catalog", "search", "lamp"}
			ask := func(commands ...[]string) string {
				t.Helper()
				var all strings.Builder
				for _, args := range commands {
					got := quaysideIn(t, dir, cache, args...)
					if got.code != 0 {
						t.Fatalf("%q: exit code %d\n%s", args, got.code, got.stderr)
					}
					all.WriteString(got.stdout + got.stderr)
				}
				return all.String()
			}
			mustRun(t, dir, "resolve")
			want := ask(show, resolve) + ask(list, search)
			if indexFile(t, cache) == "" {
				t.Fatal("no index was written")
			}
			before := readSoFar(t)
			got := ask(list, search)
			n := readSoFar(t) - before
			if d := cmp.Diff(want, ask(show, resolve)+got); d != "" {
				t.Errorf("catalog against index (-catalog +index):\n%s", d)
			}
			if n > 1<<20 { // the catalog has 2.1 MB, and two commands read it; show and resolve also read the content of a bundle
				t.Errorf("read %d bytes: the catalog was read again", n)
			}

			// Other content with the same size and modification time.
			name := filepath.Join(dir, filepath.FromSlash(c.file))
			info, err := os.Stat(name)
			check(t, err)
			check(t, os.WriteFile(name, []byte(strings.Replace(read(t, "", name), "filler filler", "filled filler", 1)), 0o666))
			check(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
			settleFiles()
			before = readSoFar(t)
			changed := quaysideIn(t, dir, cache, "catalog", "show", "lamp")
			if n := readSoFar(t) - before; n < 2<<20 {
				t.Errorf("read %d bytes: the change was not detected", n)
			}
			if archive := strings.HasPrefix(source, "docker-archive:"); (changed.code == 0) == archive { // an archive has a digest
				t.Errorf("exit code %d: %s", changed.code, changed.stderr)
			}
		})
	}
}

// tarOf returns a tar file.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(files[name]))
		check(t, err)
	}
	check(t, w.Close())
	return buf.Bytes()
}

// TestCorpusPackageManifests renders the etcd operator from package manifests and from bundles. Only
// the CRDs may differ; those of package manifests are converted to the current version.
func TestCorpusPackageManifests(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	t.Setenv("QUAYSIDE_ALLOW_OUTSIDE", root)
	rendered := map[string]string{}
	for _, source := range []string{"package-manifests:" + root + "/package-manifests/etcd", "bundles:" + root + "/bundles/etcd"} {
		dir := t.TempDir()
		put(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  kubernetesVersion: \"1.34\"\n  catalogs: [{name: old, namespace: olm, source: \""+source+"\"}]\n")
		put(t, dir, "subscriptions/etcd.yaml", `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: my-etcd}
spec: {targetNamespaces: [my-etcd]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: etcd, namespace: my-etcd}
spec: {name: etcd, channel: singlenamespace-alpha, source: old, sourceNamespace: olm, startingCSV: etcdoperator.v0.9.4}
`)
		mustRun(t, dir, "resolve")
		mustRun(t, dir, "render")
		rendered[source] = strings.ReplaceAll(snapshot(t, filepath.Join(dir, "rendered", "operators")), dir, "")
		crds, err := filepath.Glob(filepath.Join(dir, "rendered", "crds", "etcd", "customresourcedefinition-*.yaml"))
		check(t, err)
		if len(crds) != 3 {
			t.Errorf("%s: %d CRDs, want 3", source, len(crds))
		}
		for _, crd := range crds {
			if text := read(t, "", crd); !strings.Contains(text, "apiVersion: apiextensions.k8s.io/v1\n") {
				t.Errorf("%s does not have the current version", crd)
			}
		}
		if lock := read(t, dir, "quayside.lock"); !strings.Contains(lock, "etcdoperator.v0.9.4") {
			t.Errorf("%s: %s", source, lock)
		}
	}
	var trees []string
	for _, tree := range rendered {
		trees = append(trees, tree)
	}
	if trees[0] != trees[1] {
		t.Error("the trees differ")
	}
}
