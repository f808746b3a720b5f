package cli_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
)

// TestLogFlags runs every command that prints a document, half of them with -o json. It runs each one
// without log flags, with --quiet and with --verbose. Stdout and the exit code must be equal. --quiet must
// log nothing on success and otherwise a subset of the default log; --verbose must log a superset of it.
func TestLogFlags(t *testing.T) {
	cache := t.TempDir()
	spoken := 0
	if testing.Short() {
		t.Skip("runs every command three times")
	}
	commands := documentCommands()
	for n, name := range slices.Sorted(maps.Keys(commands)) {
		line := commands[name][0]
		format := []string{"text", "json"}[n%2]
		type result struct {
			code      int
			data, log string
		}
		run := func(more ...string) result {
			dir := quickstart(t)
			var stdout, stderr bytes.Buffer
			args := append([]string{"-C", dir}, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
			code := cli.Main(cli.Parts, append(append(args, "-o", format), more...), nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache})
			return result{code, strings.ReplaceAll(stdout.String(), dir, "DIR"), strings.ReplaceAll(stderr.String(), dir, "DIR")}
		}
		plain, quiet, verbose := run(), run("--quiet"), run("--verbose")
		if plain.data != quiet.data || plain.data != verbose.data || plain.code != quiet.code || plain.code != verbose.code {
			t.Errorf("%s -o %s: exit codes %d, %d, %d; with --quiet:\n%s\nwith --verbose:\n%s\nwith neither:\n%s", line, format, plain.code, quiet.code, verbose.code, quiet.data, verbose.data, plain.data)
		}
		if quiet.code == 0 && quiet.log != "" {
			t.Errorf("%s -o %s --quiet logs:\n%s", line, format, quiet.log)
		}
		if quiet.code > 1 && quiet.log == "" {
			t.Errorf("%s -o %s --quiet does not log the error", line, format)
		}
		for said := range strings.Lines(quiet.log) {
			if !strings.Contains(plain.log, said) {
				t.Errorf("%s -o %s: only --quiet logs %s", line, format, said)
			}
		}
		for said := range strings.Lines(plain.log) {
			if !strings.Contains(verbose.log, said) {
				t.Errorf("%s -o %s --verbose does not log %s", line, format, said)
			}
		}
		spoken += strings.Count(verbose.log, "s] ")
	}
	if spoken < 100 {
		t.Errorf("--verbose logs only %d steps", spoken)
	}
}
