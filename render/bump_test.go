package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// TestUpgradeChangesFewFiles upgrades one of two operators, or both, and counts the rendered files that change.
func TestUpgradeChangesFewFiles(t *testing.T) {
	const (
		rabbitmq = "rabbitmq-cluster-operator"
		grafana  = "grafana-operator"
		most     = 20
	)
	for _, c := range []struct {
		name          string
		before, after map[string]string // package → version
		files         int               // number of changed files
	}{
		{"a patch release", map[string]string{rabbitmq: "2.22.1", grafana: "5.22.2"}, map[string]string{rabbitmq: "2.22.2", grafana: "5.22.2"}, 2},
		{"another", map[string]string{rabbitmq: "2.22.2", grafana: "5.22.2"}, map[string]string{rabbitmq: "2.22.3", grafana: "5.22.2"}, 2},
		{"both upgraded", map[string]string{rabbitmq: "2.22.1", grafana: "5.22.2"}, map[string]string{rabbitmq: "2.22.3", grafana: "5.24.0"}, 16},
		{"patch releases of cert-manager", map[string]string{"cert-manager": "1.16.1", grafana: "5.22.2"}, map[string]string{"cert-manager": "1.16.5", grafana: "5.22.2"}, 15},
		{"a minor release with webhooks", map[string]string{"opentelemetry-operator": "0.154.0", grafana: "5.22.2"}, map[string]string{"opentelemetry-operator": "0.158.0", grafana: "5.22.2"}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := filetree.Diff(renderVersions(t, c.before), renderVersions(t, c.after))
			t.Logf("%d files", len(changes))
			if len(changes) != c.files || c.files > most {
				t.Errorf("%d files differ, want %d (maximum for any upgrade: %d)", len(changes), c.files, most)
				for _, ch := range changes {
					t.Logf("%+v", ch)
				}
			}
		})
	}
}

// renderVersions renders bundles of the corpus for two clusters, and returns the tree. versions maps each
// package to the version of its bundle.
func renderVersions(t *testing.T, versions map[string]string) *filetree.Tree {
	t.Helper()
	corpusBundles(t)
	dirs := map[string]fs.FS{}
	var pins []lockfile.Pin
	for pkg, version := range versions {
		dir := filepath.Join(os.Getenv("QUAYSIDE_CORPUS"), "bundles", pkg, version)
		dirs[pkg] = os.DirFS(dir)
		pins = append(pins, pinOf(loadBundle(t, dir), pkg))
	}
	opt := Options{Profile: "argocd", Clusters: []profile.Cluster{{Name: "c1", ArgoCDCluster: profile.ArgoCDCluster{Destination: "c1"}}, {Name: "c2", ArgoCDCluster: profile.ArgoCDCluster{Destination: "c2"}}}}
	res, err := All(lockfile.New(pins), opt, func(p lockfile.Pin) (fs.FS, error) { return dirs[p.Package], nil })
	if err != nil {
		t.Fatal(err)
	}
	return res.Tree
}
