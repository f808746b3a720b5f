package deliver

import (
	"os"
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests and runs few of them, because they are slow.
// -rapid.seed=0 chooses a random seed, -rapid.checks=1000 runs more.
func TestMain(m *testing.M) {
	propertytest.FixSeed(2)
	propertytest.DefaultChecks(6)
	var err error
	if repository.dir, err = os.MkdirTemp("", "quayside-deliver-"); err != nil {
		panic(err)
	}
	m.Run()
	_ = os.RemoveAll(repository.dir)
}
