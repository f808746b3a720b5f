package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

// statusCluster returns an API server with the rendered objects of the workspace at dir, and the
// environment variables that select it.
func statusCluster(t *testing.T, dir string) (*clustertest.Server, []string) {
	t.Helper()
	objects, err := clustertest.Objects([]byte(mustRun(t, dir, "render", "--offline", "--stdout").stdout))
	check(t, err)
	s := clustertest.New(t)
	s.Put(objects...)
	s.Settle()
	home := t.TempDir()
	check(t, os.WriteFile(filepath.Join(home, "config"), []byte(s.Kubeconfig()), 0o600))
	return s, []string{"XDG_CACHE_HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "config")}
}

// TestStatusOnlyReads checks the requests of status: only reads, one list for several objects of a
// kind, and no request twice.
func TestStatusOnlyReads(t *testing.T) {
	dir := quickstart(t)
	s, env := statusCluster(t, dir)
	var out, log strings.Builder
	if code := cli.Main(cli.Parts, []string{"-C", dir, "status", "--offline"}, nil, &out, &log, env); code != 0 {
		t.Fatalf("exit code %d\n%s", code, log.String())
	}
	asked := s.Requests()
	seen := map[string]bool{}
	objects := 0
	for _, r := range asked {
		if !strings.HasPrefix(r, "GET ") || seen[r] {
			t.Errorf("%s: not a GET, or a repeated request", r)
		}
		seen[r] = true
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(line, "\tCurrent\t\n") {
			objects++
		}
	}
	if objects < 80 || len(asked) > 40 {
		t.Errorf("%d requests for %d objects:\n%s", len(asked), objects, strings.Join(asked, "\n"))
	}
	t.Logf("%d requests for %d objects", len(asked), objects)
}
