package bundledir_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog/bundledir"
)

// countingFS counts calls of Open.
type countingFS struct {
	fs.FS
	opened int
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.opened++
	return c.FS.Open(name)
}

// TestFindAt checks that the number of files that FindAt opens does not depend on the number of bundles. It
// also checks files that are in no bundle.
func TestFindAt(t *testing.T) {
	costs := map[int]int{}
	for _, n := range []int{5, 50} {
		files := fstest.MapFS{}
		for i := range n {
			dir := fmt.Sprintf("op%d/1.0.0/", i)
			files[dir+"metadata/annotations.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "annotations: {operators.operatorframework.io.bundle.package.v1: op%d}", i)}
			files[dir+"manifests/csv.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: op%d.v1.0.0}\nspec: {version: 1.0.0, installModes: [{type: AllNamespaces, supported: true}], install: {strategy: deployment, spec: {deployments: []}}}\n", i)}
		}
		all := &countingFS{FS: files}
		for _, file := range []string{"op3/1.0.0/manifests/csv.yaml", "gone/csv.yaml", "", "../op3"} {
			all.opened = 0
			dir, err := bundledir.FindAt(all, "op3", "op3.v1.0.0", file)
			if err != nil {
				t.Fatalf("%q: %v", file, err)
			}
			if data, err := fs.ReadFile(dir, "metadata/annotations.yaml"); err != nil || string(data) != string(files["op3/1.0.0/metadata/annotations.yaml"].Data) {
				t.Errorf("%q: got %s, %v", file, data, err)
			}
			if file == "op3/1.0.0/manifests/csv.yaml" {
				costs[n] = all.opened
			}
		}
	}
	if costs[5] == 0 || costs[5] != costs[50] {
		t.Errorf("files opened, by number of bundles: %v", costs)
	}
}
