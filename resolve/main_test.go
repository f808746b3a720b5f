package resolve_test

import (
	"flag"
	"testing"
)

// TestMain fixes the seed of the property tests and lowers the number of their checks; make properties
// runs more, with -rapid.seed=0 and -rapid.checks.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	m.Run()
}
