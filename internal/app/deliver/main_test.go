package deliver

import (
	"flag"
	"testing"
)

// TestMain fixes the seed of the property tests, and has them draw few nights, which take
// long; -rapid.seed=0 takes a fresh seed, -rapid.checks=1000 draws more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.checks", "6"); err != nil {
		panic(err)
	}
	m.Run()
}
