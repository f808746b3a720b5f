package diff

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// rendered returns the state with one installed bundle of the corpus.
func rendered(t testing.TB, pkg, version, replaces string) State {
	t.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	dir := os.DirFS(filepath.Join(root, "bundles", pkg, version))
	b, err := bundle.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	mode, watch := catalog.AllNamespaces, []string(nil)
	pin := lockfile.Pin{
		Namespace: "ops", Package: pkg, Version: version, Bundle: b.CSV.Name, Image: "quay.io/demo/" + pkg + "@sha256:" + version,
		InstallMode: mode, WatchNamespaces: watch, Replaces: replaces,
	}
	got, err := render.All(lockfile.New([]lockfile.Pin{pin}), render.Options{}, func(lockfile.Pin) (fs.FS, error) { return dir, nil })
	if err != nil {
		t.Fatal(err)
	}
	var files []File
	for path, data := range got.Tree.All() {
		files = append(files, File{Path: path, Data: data})
	}
	s := State{Name: b.CSV.Name, KubernetesVersion: "1.34", Pins: []lockfile.Pin{pin}}
	if s.Objects, err = Objects(BaseFiles(".", files), s.Pins); err != nil {
		t.Fatal(err)
	}
	return s
}

// upgrades returns published upgrades. Their reports were compared manually with the bundles.
func upgrades() [][3]string {
	return [][3]string{
		{"rabbitmq-cluster-operator", "2.22.1", "2.22.3"},
		{"grafana-operator", "5.22.2", "5.24.0"},
		{"cert-manager", "1.14.2", "1.15.2"},
		{"cert-manager", "1.15.2", "1.16.5"},
		{"opentelemetry-operator", "0.154.0", "0.158.0"},
		{"argocd-operator", "0.9.1", "0.14.0"},
		{"argocd-operator", "0.14.0", "0.18.0"},
	}
}

func TestGoldenPublishedUpgrades(t *testing.T) {
	for _, u := range upgrades() {
		t.Run(u[0]+"-"+u[1]+"-"+u[2], func(t *testing.T) {
			before := rendered(t, u[0], u[1], "")
			after := rendered(t, u[0], u[2], before.Name)
			r := compare(t, before, after)
			goldentest.Compare(t, filepath.Join("testdata", "upgrades", u[0]+"-"+u[1]+"-"+u[2]+".txt"), Text(r, false))
			if n := len(Markdown(r)); n >= MaxComment {
				t.Errorf("the comment has %d bytes", n)
			}
		})
	}
}
