// Package propertytest makes property tests repeatable: their inputs depend only on the sources.
//
// Start from [Main].
package propertytest

import (
	"flag"
	"strconv"
	"testing"
)

// Main runs the tests of a package with a fixed seed, unless -rapid.seed is set (0 selects a random
// seed). Call it from TestMain.
func Main(m *testing.M) {
	FixSeed(1)
	m.Run()
}

// FixSeed sets the seed of property tests. Use it instead of [Main] if TestMain also does other things.
func FixSeed(seed int) { set("rapid.seed", seed) }

// DefaultChecks sets the number of inputs for each property test of a package. Without this call, it is 100. The
// flag -rapid.checks takes precedence.
func DefaultChecks(n int) { set("rapid.checks", n) }

// LimitChecks limits the number of inputs for one property test, unless -rapid.checks is set.
func LimitChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		set("rapid.checks", n)
		t.Cleanup(func() { _ = checks.Value.Set(before) })
	}
}

// set sets a flag. It panics if the test program has no property test, because package rapid
// defines the flags.
func set(name string, n int) {
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
