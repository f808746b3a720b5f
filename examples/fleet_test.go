package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFleet makes the trees of the fleet anew from its locks, which answer the
// declarations, and follows its README.
func TestFleet(t *testing.T) {
	work := t.TempDir()
	for _, dir := range []string{"fleet", "quickstart/catalog"} {
		if err := os.CopyFS(filepath.Join(work, dir), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(work, ".git"), 0o777); err != nil { // shared files are those of a repository
		t.Fatal(err)
	}
	work = filepath.Join(work, "fleet")
	for _, env := range []string{"dev", "stage", "prod-east", "prod-west"} {
		dir, tree := filepath.Join(work, "envs", env), filepath.Join("envs", env, "rendered")
		if err := os.RemoveAll(filepath.Join(work, tree)); err != nil {
			t.Fatal(err)
		}
		run(t, "-C", dir, "resolve", "--check", "--offline")
		run(t, "-C", dir, "render", "--offline")
		compare(t, filepath.Join("fleet", tree), filepath.Join(work, tree))
	}
	text, err := os.ReadFile("fleet/README.md")
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "    quayside ")
		if !ok {
			continue
		}
		followed++
		args := strings.Fields(command)
		if args[0] == "-C" {
			args[1] = filepath.Join(work, args[1])
		} else {
			args = append([]string{"-C", work}, args...)
		}
		run(t, args...)
	}
	if followed < 5 {
		t.Errorf("the README has %d commands", followed)
	}
	for env, version := range map[string]string{"stage": "0.0.2", "prod-east": "0.0.1", "prod-west": "0.0.1"} {
		lock, err := os.ReadFile(filepath.Join(work, "envs", env, "quayside.lock"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(lock), "bundle: memcached-operator.v"+version+"\n") {
			t.Errorf("%s: not at %s after one step", env, version)
		}
	}
}
