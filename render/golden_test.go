package render

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

// goldenCase is the content of a case's pin.yaml.
type goldenCase struct {
	Pins []struct {
		Namespace, OperatorGroup string
		Watch                    []string
		Config                   json.RawMessage
	}
	Namespaces []lockfile.Namespace
	Options    Options
}

// goldenLock returns the lock and the options that a case's pin.yaml defines, and a function that opens its bundles.
func goldenLock(t *testing.T, dir string) (*lockfile.File, Options, func(lockfile.Pin) (fs.FS, error)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c goldenCase
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(filepath.Dir(dir), "bundle")
	b := loadBundle(t, content)
	lock := &lockfile.File{Namespaces: c.Namespaces}
	for _, p := range c.Pins {
		lock.Pins = append(lock.Pins, lockfile.Pin{
			Namespace: p.Namespace, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: p.OperatorGroup,
			InstallMode: catalog.ModeFor(p.Namespace, p.Watch), WatchNamespaces: p.Watch, Config: p.Config,
		})
	}
	return lock, c.Options, func(lockfile.Pin) (fs.FS, error) { return os.DirFS(content), nil }
}

func goldenCases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*", "pin.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for i, f := range files {
		files[i] = filepath.Dir(f)
	}
	return files
}

// TestGolden compares rendered trees with the golden files in testdata.
func TestGolden(t *testing.T) {
	for _, dir := range goldenCases(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(dir), "testdata/"), func(t *testing.T) {
			lock, opt, open := goldenLock(t, dir)
			res, err := All(lock, opt, open)
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(lock.Pins)
			again, err := All(lock, opt, open)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(contents(res.Tree), contents(again.Tree)); d != "" {
				t.Errorf("the result depends on the order of pins:\n%s", d)
			}
			var warnings strings.Builder
			for _, w := range res.Warnings {
				warnings.WriteString(w.String() + "\n")
			}
			if err := res.Tree.Add("warnings.txt", []byte(warnings.String())); err != nil {
				t.Fatal(err)
			}
			want := filepath.Join(dir, "want")
			if goldentest.Update() {
				if err := os.RemoveAll(want); err != nil {
					t.Fatal(err)
				}
				for name, data := range res.Tree.All() {
					if _, err := filetree.WriteFile(filepath.Join(want, name), data); err != nil {
						t.Fatal(err)
					}
				}
			}
			have, err := filetree.Read(os.DirFS(want))
			if err != nil {
				t.Fatal(err)
			}
			expected := contents(have)
			if d := cmp.Diff(expected, contents(res.Tree)); d != "" {
				t.Errorf("out of date: run with -update and check the difference:\n%s", d)
			}
		})
	}
}

func contents(t *filetree.Tree) map[string]string {
	out := map[string]string{}
	for name, data := range t.All() {
		out[name] = string(data)
	}
	return out
}
