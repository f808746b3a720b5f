package survey_test

import (
	"os"
	"testing"

	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/helm/engine"
	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests. It serves as the child process that templates charts,
// if newCharts started the test program again.
func TestMain(m *testing.M) {
	if engine.Asked() {
		os.Exit(engine.Serve(os.Stdin, os.Stdout))
	}
	propertytest.Main(m)
}

// newCharts returns a Charts whose child processes are this test program.
func newCharts(t *testing.T) *helm.Charts {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return helm.NewCharts(program).For(func() (string, []string, error) { return "1.34.0", nil, nil })
}
