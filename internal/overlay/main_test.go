package overlay_test

import (
	"flag"
	"testing"
)

// TestMain fixes the seed of the property tests; -rapid.seed=0 selects a random one.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	m.Run()
}
