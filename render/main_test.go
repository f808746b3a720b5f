package render

import (
	"flag"
	"runtime/debug"
	"testing"
)

// TestMain fixes the seed of the property tests and lowers their number, because each
// builds whole trees; make properties runs more, with -rapid.seed=0 and -rapid.checks.
// kustomize leaves much behind: collected as by default, that takes half of the
// tests' time. Benchmarks are measured with the default.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	m.Run()
}
