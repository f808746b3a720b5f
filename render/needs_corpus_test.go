package render_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// TestCorpus renders each operator of the corpus alone, for Kubernetes with cert-manager and for
// OpenShift, and logs the unmet needs by kind. An eighth of the operators is enough with -short.
func TestCorpus(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles under %s: %v", root, err)
	}
	for _, openshift := range []bool{false, true} {
		name := map[bool]string{false: "Kubernetes", true: "OpenShift"}[openshift]
		count, affected, operators := map[needs.Kind]int{}, map[needs.Kind][]string{}, 0
		for i, dir := range dirs {
			if testing.Short() && i%8 > 0 {
				continue
			}
			unmet, err := unmetAlone(os.DirFS(dir), openshift)
			if err != nil {
				continue // reported by the tests of render
			}
			operators++
			for _, n := range unmet {
				if count[n.Kind]++; !slices.Contains(affected[n.Kind], dir) {
					affected[n.Kind] = append(affected[n.Kind], dir)
				}
				t.Logf("%s: %s: %s %v by %s %s", name, filepath.Base(filepath.Dir(dir)), n.ID(), n.Kinds, strings.Join(n.By[:min(len(n.By), 2)], "; "), strings.Join(n.Why, ", "))
			}
		}
		for kind, n := range count {
			t.Logf("%s: %s: %d unmet needs of %d of %d operators", name, kind, n, len(affected[kind]), operators)
		}
	}
}

// unmetAlone returns the unmet needs of a bundle as the only operator of a cluster, either OpenShift or
// Kubernetes with cert-manager.
func unmetAlone(fsys fs.FS, openshift bool) ([]needs.Need, error) {
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, err
	}
	pin := lockfile.Pin{Namespace: "op-ns", Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: "og", InstallMode: catalog.AllNamespaces}
	if !slices.Contains(b.CSV.Modes, catalog.AllNamespaces) {
		pin.InstallMode, pin.WatchNamespaces = catalog.OwnNamespace, []string{pin.Namespace}
	}
	opt := render.Options{OpenShift: openshift, Certificates: certificates.Default(openshift), ObjectsOnly: true}
	res, err := render.All(&lockfile.File{Pins: []lockfile.Pin{pin}}, opt, func(lockfile.Pin) (fs.FS, error) { return fsys, nil })
	if err != nil {
		return nil, err
	}
	operators, shared, err := res.ClusterObjects("default")
	if err != nil {
		return nil, err
	}
	supply := needs.NewSupply(openshift)
	if openshift {
		supply.AddAPIs(provided.OpenShiftAPIs()...)
	} else {
		supply.AddAPIs("cert-manager.io/v1")
	}
	supply.AddObjects(slices.Concat(shared, operators[0].Objects)...)
	return supply.Unmet(needs.Find(operators[0], slices.DeleteFunc(shared, k8s.IsCRD), openshift)), nil
}
