package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkFleet measures the CPU time and the peak memory of the commands that process every
// cluster, with the operators of the corpus. Either all clusters have the same config, or each has
// its own. Before some of the commands, the benchmark changes the config of one cluster.
func BenchmarkFleet(b *testing.B) {
	bin, cache, top := programPath(b), b.TempDir(), b.TempDir()
	subscribeToAll(b, top)
	if got := quaysideIn(b, top, cache, "resolve", "--offline"); got.code != 0 {
		b.Fatalf("quayside resolve: exit code %d\n%s", got.code, got.stderr)
	}
	for _, own := range []bool{false, true} {
		for _, n := range []int{1, 10, 100, 1000, 5000} {
			shape := map[bool]string{false: "equal", true: "own"}[own]
			b.Run(fmt.Sprintf("%s-%d", shape, n), func(b *testing.B) {
				benchFleet(b, bin, cache, top, fleetSettings(read(b, top, "quayside.yaml"), n, own))
			})
		}
	}
}

// benchFleet measures the commands in the workspace at dir, after writing settings to its quayside.yaml.
func benchFleet(b *testing.B, bin, cache, dir, settings string) {
	b.Helper()
	for _, name := range []string{"rendered", ".git"} {
		check(b, os.RemoveAll(filepath.Join(dir, name)))
	}
	before := read(b, dir, "quayside.yaml")
	defer put(b, dir, "quayside.yaml", before)
	run := func(args ...string) resourceUsage {
		return runMeasured(b, cache, bin, append([]string{"-C", dir}, append(args, "--offline")...)...)
	}
	turn := 0
	change := func() { // the last cluster
		turn++
		put(b, dir, "quayside.yaml", strings.TrimSuffix(settings, "}\n")+fmt.Sprintf(", config: {nodeSelector: {turn: t%d}}}\n", turn))
	}
	put(b, dir, "quayside.yaml", settings)
	measure(b, "render-new", 0, func() resourceUsage {
		check(b, os.RemoveAll(filepath.Join(dir, "rendered")))
		return run("render")
	})
	measure(b, "render-check", 0, func() resourceUsage { return run("render", "--check") })
	measure(b, "verify", 0, func() resourceUsage { return run("verify") })
	measure(b, "images", 0, func() resourceUsage { return run("images") })
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "gc.auto=0", "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "start"}, {"gc", "-q"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	measure(b, "render-one", 0, func() resourceUsage {
		change()
		return run("render")
	})
	measure(b, "diff-one", 0, func() resourceUsage { return run("diff", "--exit-zero") })
}

// fleetSettings returns settings with n clusters. If own is true, each cluster except the last has
// its own config.
func fleetSettings(settings string, n int, own bool) string {
	settings, _, _ = strings.Cut(settings, "  clusters:\n")
	var out strings.Builder
	out.WriteString(settings + "  policy: {failOn: \"off\"}\n  clusters:\n")
	for i := range n {
		fmt.Fprintf(&out, "  - {name: c%[1]d, server: \"https://c%[1]d.example.com:6443\"", i)
		if own && i < n-1 {
			fmt.Fprintf(&out, ", config: {env: [{name: SITE, value: c%[1]d}], nodeSelector: {site: c%[1]d}}", i)
		}
		out.WriteString("}\n")
	}
	return out.String()
}
