package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

func TestAllCorpus(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "bundles", "*", "*"))
	for _, dir := range dirs {
		b, err := bundle.Load(os.DirFS(dir))
		if err != nil {
			t.Error(err)
			continue
		}
		mode := catalog.AllNamespaces
		pin := lockfile.Pin{Namespace: "op-ns", Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: "og"}
		if !catalog.Supports(b.CSV.Modes, "op-ns", nil) {
			mode = catalog.OwnNamespace
			pin.WatchNamespaces = []string{"op-ns"}
		}
		pin.InstallMode = mode
		res, err := All(&lockfile.File{Pins: []lockfile.Pin{pin}}, Options{}, func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil })
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		for _, w := range res.Warnings {
			t.Log(dir, w)
		}
		Stream(res)
	}
}
