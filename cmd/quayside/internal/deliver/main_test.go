package deliver

import (
	"flag"
	"os"
	"testing"
)

// TestMain fixes the seed of the property tests and runs few of them, because they are slow.
// -rapid.seed=0 chooses a random seed, -rapid.checks=1000 runs more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "2"); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.checks", "6"); err != nil {
		panic(err)
	}
	var err error
	if repository.dir, err = os.MkdirTemp("", "quayside-deliver-"); err != nil {
		panic(err)
	}
	m.Run()
	_ = os.RemoveAll(repository.dir)
}
