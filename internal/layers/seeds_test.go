package layers

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestSeedsAreFixed holds that a package with property tests fixes their seed,
// so that a run of the tests depends on nothing but the sources. `make
// properties` takes fresh ones.
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
		fixes[pkg] = fixes[pkg] || bytes.Contains(src, []byte(`flag.Set("rapid.seed", `))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, yes := range draws {
		if yes && !fixes[pkg] {
			t.Errorf("%s: its property tests take another seed each time; fix it in TestMain", pkg)
		}
	}
}
