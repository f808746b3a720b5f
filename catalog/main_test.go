package catalog_test

import (
	"flag"
	"testing"
)

// TestMain sets a fixed seed for property tests; -rapid.seed=0 uses a random one.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	m.Run()
}
