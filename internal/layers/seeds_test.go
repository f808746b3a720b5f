package layers

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestSeedsAreFixed checks that packages with property tests fix their seed, so that test results
// depend only on the sources. `make properties` uses random seeds.
func TestSeedsAreFixed(t *testing.T) {
	root := os.DirFS("../..")
	draws, fixes := map[string]bool{}, map[string]bool{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(root, name, d)
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(root, name)
		pkg := path.Dir(name)
		draws[pkg] = draws[pkg] || bytes.Contains(src, []byte("\trapid.Check("))
		fixes[pkg] = fixes[pkg] || bytes.Contains(src, []byte("\tpropertytest.FixSeed(")) || bytes.Contains(src, []byte("propertytest.Main(m)"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, yes := range draws {
		if yes && !fixes[pkg] {
			t.Errorf("%s: the property tests use a random seed: set a fixed one in TestMain", pkg)
		}
	}
}
