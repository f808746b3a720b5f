package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPreCommit runs the hooks with pre-commit in a repository. A commit with an up-to-date lock and
// tree must pass, and an out-of-date one must fail.
func TestPreCommit(t *testing.T) {
	program, err := exec.LookPath("pre-commit")
	if err != nil {
		t.Skip("pre-commit is not installed")
	}
	hooks := read(t, "../../../..", ".pre-commit-hooks.yaml")
	var all []struct {
		ID, Language, Entry string
		PassFilenames       *bool `json:"pass_filenames"`
		AlwaysRun           bool  `json:"always_run"`
	}
	if err := yaml.Unmarshal([]byte(hooks), &all); err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if h.Language != "system" || !h.AlwaysRun || !strings.HasPrefix(h.Entry, "quayside ") || h.PassFilenames == nil || *h.PassFilenames {
			t.Errorf("hook %+v", h)
		}
	}
	// The hooks are in a separate repository.
	root := t.TempDir()
	source := filepath.Join(root, "hooks")
	put(t, source, ".pre-commit-hooks.yaml", hooks)
	gitIn(t, source, "init", "-q", "-b", "main")
	commitAll(t, source, "hooks")
	rev := strings.TrimSpace(gitIn(t, source, "rev-parse", "HEAD"))

	work := filepath.Join(root, "work")
	if err := os.CopyFS(filepath.Join(work, "envs", "dev"), os.DirFS("../../../../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("https://github.com/quayside/quayside", source, "v1.2.3", rev).Replace(read(t, ciFiles, "pre-commit-config.yaml"))
	if !strings.Contains(config, source) || !strings.Contains(config, rev) {
		t.Fatalf("the example is %s", config)
	}
	put(t, work, ".pre-commit-config.yaml", config)
	gitIn(t, work, "init", "-q", "-b", "main")
	run := func(want string, ok bool) {
		t.Helper()
		gitIn(t, work, "add", "-A")
		cmd := exec.CommandContext(t.Context(), program, "run", "--color", "never", "--verbose")
		cmd.Dir = work
		cmd.Env = append(cmd.Environ(), "PRE_COMMIT_HOME="+filepath.Join(root, "home"), "XDG_CACHE_HOME="+filepath.Join(root, "cache"))
		out, err := cmd.CombinedOutput()
		if (err == nil) != ok || !strings.Contains(string(out), want) {
			t.Errorf("got %v, want %q:\n%s", err, want, out)
		}
	}
	run("Passed", true)
	commitAll(t, work, "start")
	put(t, work, "README.md", "more\n")
	run("Passed", true)
	put(t, work, "envs/dev/rendered/clusters.yaml", "a: b\n")
	run("Failed", false)
	put(t, work, ".pre-commit-config.yaml", strings.ReplaceAll(config, "quayside-verify", "quayside-render"))
	run("files were modified by this hook", false)
}
