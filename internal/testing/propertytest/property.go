// Package propertytest makes property tests repeatable: their inputs depend only on the sources.
//
// Start from [Main].
package propertytest

import (
	"flag"
	"strconv"
	"testing"
)

// Main runs the tests of a package with a fixed seed; call it from TestMain. -rapid.seed=0 selects a
// random seed.
func Main(m *testing.M) {
	FixSeed(1)
	m.Run()
}

// FixSeed is for a TestMain that does more.
func FixSeed(seed int) { set("rapid.seed", seed) }

// DefaultChecks sets the number of inputs of the property tests of a package, which is 100
// otherwise. -rapid.checks has precedence.
func DefaultChecks(n int) { set("rapid.checks", n) }

// LimitChecks limits the inputs of one property test, unless -rapid.checks is set.
func LimitChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		set("rapid.checks", n)
		t.Cleanup(func() { _ = checks.Value.Set(before) })
	}
}

// set panics if the test program has no property test, which defines the flags.
func set(name string, n int) {
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
