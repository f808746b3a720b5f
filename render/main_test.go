package render

import (
	"flag"
	"runtime/debug"
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests and lowers the number of their checks, because each check
// builds whole trees. "make properties" runs more checks, with -rapid.seed=0 and -rapid.checks. Except in
// benchmarks, garbage is collected less often: kustomize allocates so much that collection would take half of
// the tests' time.
func TestMain(m *testing.M) {
	propertytest.FixSeed(1)
	propertytest.DefaultChecks(15)
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	m.Run()
}
