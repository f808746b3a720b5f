package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// TestCheckWritesNothing runs every command with --check in a read-only work tree. Each command would have
// something to write: there are newer versions, a stale lock and an incomplete tree.
func TestCheckWritesNothing(t *testing.T) {
	t.Parallel()
	lines := map[string][]string{
		"add":          {"add etcd -n databases --check", "add memcached-operator@0.0.2 --check --render"},
		"declarations": {"declarations --check"},
		"mirror":       {"mirror 127.0.0.1:1/mirror --check"},
		"promote":      {"promote dev prod --check"},
		"propose":      {"propose --check", "propose --one-branch --branch one --check"},
		"remove":       {"remove vault/vault --check", "remove vault/vault --prune --render --check"},
		"render":       {"render --check"},
		"resolve":      {"resolve --check", "resolve --upgrade --check"},
		"upgrade":      {"upgrade --check", "upgrade --check --hops all", "upgrade --check --kubernetes 1.37"},
		"vendor":       {"vendor --check"},
	}
	var have []string
	for _, cmd := range commandsBelow(cli.Commands(nil)) {
		if cmd.Flags().Lookup("check") != nil {
			have = append(have, strings.TrimPrefix(cmd.CommandPath(), "quayside "))
		}
	}
	slices.Sort(have)
	if d := cmp.Diff(have, slices.Sorted(maps.Keys(lines))); d != "" {
		t.Fatalf("commands with --check (-have +tested):\n%s", d)
	}
	top, cache := t.TempDir(), t.TempDir()
	for _, env := range []string{"dev", "prod"} {
		dir := filepath.Join(top, "envs", env)
		check(t, os.MkdirAll(filepath.Dir(dir), 0o755))
		check(t, os.CopyFS(dir, os.DirFS("../../../../examples/quickstart")))
		mustRunIn(t, dir, cache, "resolve")
		mustRunIn(t, dir, cache, "render")
	}
	prod := filepath.Join(top, "envs/prod")
	put(t, prod, "quayside.yaml", read(t, prod, "quayside.yaml")+"\n  follows: dev\n")
	gittest.Run(t, top, "init", "-q", "-b", "main")
	gittest.Run(t, top, "add", "-A")
	gittest.Run(t, top, "commit", "-q", "-m", "all")
	put(t, prod, "subscriptions/vault.yaml", read(t, prod, "subscriptions/vault.yaml")+"  config: {nodeSelector: {disk: ssd}}\n")
	remove(t, prod, "rendered/clusters.yaml")
	setMode(t, top, 0o555, 0o444)
	t.Cleanup(func() { setMode(t, top, 0o755, 0o644) })
	before := snapshot(t, top)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, line := range lines[name] {
			got := quaysideIn(t, prod, cache, strings.Fields(line)...)
			if d := cmp.Diff(before, snapshot(t, top)); d != "" {
				t.Fatalf("%s writes:\n%s%s", line, d, got.stderr)
			}
			if strings.Contains(got.stderr, "permission denied") {
				t.Errorf("%s tries to write: %s", line, got.stderr)
			}
		}
	}
}

// commandsBelow returns a command and all its subcommands.
func commandsBelow(cmd *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		out = append(out, commandsBelow(sub)...)
	}
	return out
}

// setMode sets the modes of all directories and files below top, except those of Git.
func setMode(t *testing.T, top string, dirs, files os.FileMode) {
	t.Helper()
	check(t, filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return os.Chmod(name, dirs)
		}
		return os.Chmod(name, files)
	}))
}
