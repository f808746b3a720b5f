package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
)

// outcome is the result of one run of the program.
type outcome struct {
	code           int
	stdout, stderr string
}

// quayside runs the program in this process, with a new store.
func quayside(t testing.TB, dir string, args ...string) outcome {
	t.Helper()
	return quaysideIn(t, dir, t.TempDir(), args...)
}

// quaysideIn is like quayside, with the store in cache.
func quaysideIn(t testing.TB, dir, cache string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache, "QUAYSIDE_ALLOW_OUTSIDE=" + os.Getenv("QUAYSIDE_ALLOW_OUTSIDE")}
	args = append([]string{"-C", dir}, args...)
	code := cli.Main(cli.Parts, args, nil, &stdout, &stderr, env)
	if err := clitest.Conforms(cli.Parts, args, stdout.Bytes()); err != nil {
		t.Errorf("quayside %q: %v", args, err)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// mustRun is like quayside, and fails the test on an error.
func mustRun(t testing.TB, dir string, args ...string) outcome {
	t.Helper()
	return mustRunIn(t, dir, t.TempDir(), args...)
}

// mustRunIn is like mustRun, with the store in cache.
func mustRunIn(t testing.TB, dir, cache string, args ...string) outcome {
	t.Helper()
	got := quaysideIn(t, dir, cache, args...)
	if got.code != 0 {
		t.Fatalf("quayside %q: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got
}

// quickstart returns a copy of examples/quickstart.
func quickstart(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file below dir.
func put(t testing.TB, dir, name, data string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// read reads a file below dir.
func read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
