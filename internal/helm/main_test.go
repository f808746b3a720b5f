package helm

import (
	"os"
	"testing"

	"github.com/quayside/quayside/internal/helm/engine"
)

// TestMain serves as the child process if the pool started the test program again.
func TestMain(m *testing.M) {
	if engine.Asked() {
		os.Exit(engine.Serve(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// newPool returns a pool whose child processes are this test program.
func newPool(t testing.TB) *Pool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(program)
	t.Cleanup(p.Close)
	return p
}
