package cluster_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// quayside is the program under test with a workspace.
type quayside struct {
	program string
	dir     string // the workspace
}

// build builds the program from this repository, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	return buildIn(t, "quayside", "./cmd/quayside")
}

// buildIn builds a program of the repository's main module, once for all tests.
func buildIn(t *testing.T, name, path string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	program := filepath.Join(programs.dir, name)
	if _, err := os.Stat(program); err == nil {
		return program
	}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, path)
	cmd.Dir = filepath.Join(root, "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return program
}

// programs is the directory of the built programs while the tests run.
var programs struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quayside-programs-")
	if err != nil {
		panic(err)
	}
	programs.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// newWorkspace returns a new workspace with these files. It does not use the user's caches and configuration.
func newWorkspace(t *testing.T, program string, files map[string]string) quayside {
	t.Helper()
	q := quayside{program: program, dir: t.TempDir()}
	q.write(t, ".gitignore", ".cache/\n")
	for name, text := range files {
		q.write(t, name, text)
	}
	return q
}

// write writes a file of the workspace.
func (q quayside) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(q.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// remove removes files of the workspace.
func (q quayside) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(q.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command in the workspace, and returns its output and exit code.
func (q quayside) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), q.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = q.dir, &out, &log
	// Catalogs of the corpus and of the examples are outside of the workspaces.
	cmd.Env = append(cmd.Environ(), "XDG_CACHE_HOME="+filepath.Join(q.dir, ".cache"), "QUAYSIDE_ALLOW_OUTSIDE=/",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com")
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that must succeed, and returns its standard output.
func (q quayside) must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := q.run(t, args...)
	if code != 0 {
		t.Fatalf("quayside %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// rendered returns all objects rendered from the lock, in the order of application. With several
// clusters, a flag selects one.
func (q quayside) rendered(t *testing.T, flags ...string) []*unstructured.Unstructured {
	t.Helper()
	list, err := harness.Objects([]byte(q.must(t, append([]string{"render", "--offline", "--stdout"}, flags...)...)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
