package command_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/lockfile"
)

// TestImportDumps imports every dump of a cluster with OLM. The lock must have exactly the installed versions,
// be up to date, and render. A second import must change nothing.
func TestImportDumps(t *testing.T) {
	top, cache := t.TempDir(), t.TempDir()
	clitest.Unpack(t, filepath.Join(clitest.Corpus(t), "olm-clusters.tar.zst"), top)
	check(t, os.Mkdir(filepath.Join(top, ".git"), 0o755)) // the repository: workspaces may use its catalogs
	old := time.Now().Add(-time.Hour)                     // so that the catalogs are read only once
	check(t, filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		check(t, err)
		return os.Chtimes(path, old, old)
	}))
	dumps, err := filepath.Glob(filepath.Join(top, "*", "*.json"))
	check(t, err)
	operators := 0
	for _, dump := range dumps {
		if base := filepath.Base(dump); base != "before.json" && base != "after.json" {
			continue
		}
		name := filepath.Base(filepath.Dir(dump))
		t.Run("ok/"+name, func(t *testing.T) {
			dir := filepath.Join(top, "workspaces", name)
			check(t, os.MkdirAll(dir, 0o755))
			installed, catalogs := readDump(t, dump)
			args := []string{"import", dump, "--offline"}
			for _, c := range catalogs {
				args = append(args, "--catalog", c+"=dir:../../catalog-"+strings.TrimPrefix(c, "olm/"))
			}
			mustRun(t, dir, cache, args...)
			data, err := os.ReadFile(filepath.Join(dir, "quayside.lock"))
			check(t, err)
			lock, err := lockfile.Parse("quayside.lock", data)
			check(t, err)
			got := map[string]string{}
			for _, p := range lock.Pins {
				got[p.Namespace+"/"+p.Subscription()] = p.Bundle
			}
			if d := cmp.Diff(installed, got); d != "" {
				t.Errorf("installed and pinned:\n%s", d)
			}
			mustRun(t, dir, cache, "resolve", "--check", "--offline")
			provideAPIs(t, dir)
			mustRun(t, dir, cache, "render", "--offline")
			mustRun(t, dir, cache, "import", dump, "--offline", "--check")
			operators += len(got)
		})
	}
	t.Logf("%d pins of %d files", operators, len(dumps))
	if operators < 40 {
		t.Errorf("%d pins: want the whole corpus", operators)
	}
}

// provideAPIs adds to the settings the APIs that operators of the corpus need from a cluster.
func provideAPIs(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "quayside.yaml")
	text, err := os.ReadFile(file)
	check(t, err)
	const apis = "spec:\n  provides:\n    apis: [cert-manager.io/v1, operators.coreos.com/v1alpha1, monitoring.coreos.com/v1]\n"
	check(t, os.WriteFile(file, []byte(strings.Replace(string(text), "spec:\n", apis, 1)), 0o600))
}

// readDump returns the versions that the Subscriptions of a dump have installed, and the names of the catalogs.
func readDump(t *testing.T, name string) (installed map[string]string, catalogs []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	check(t, err)
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
			Status   struct{ InstalledCSV string }
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		var other *json.UnmarshalTypeError // a status of another type
		if !errors.As(err, &other) {
			t.Fatal(err)
		}
	}
	installed, found := map[string]string{}, map[string]bool{}
	for _, o := range list.Items {
		switch o.Kind {
		case "Subscription":
			installed[o.Metadata.Namespace+"/"+o.Metadata.Name] = o.Status.InstalledCSV
		case "CatalogSource":
			found[o.Metadata.Namespace+"/"+o.Metadata.Name] = true
		}
	}
	return installed, slices.Sorted(maps.Keys(found))
}
