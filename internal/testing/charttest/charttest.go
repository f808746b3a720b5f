// Package charttest templates charts in tests. The child process is the test program itself.
//
// Start from [Serve] and [New].
package charttest

import (
	"os"
	"testing"

	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/helm/engine"
)

// Serve returns at once, unless this process is a child that templates charts. In a child, it serves the
// requests and exits. Call Serve first in TestMain.
func Serve() {
	if engine.Asked() {
		os.Exit(engine.Serve(os.Stdin, os.Stdout))
	}
}

// New returns a Charts for a cluster with these APIs. TestMain of the package must call [Serve].
func New(t *testing.T, apis []string) *helm.Charts {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return helm.NewCharts(program).For(func() (string, []string, error) { return "1.34.0", apis, nil })
}
