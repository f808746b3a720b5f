package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
)

// BenchmarkCheckUpgrade measures the CPU time of checking whether 60 operators of the corpus support another
// Kubernetes version. All operators support the first version. Some do not support the second one, so that the
// command searches for upgrades.
func BenchmarkCheckUpgrade(b *testing.B) {
	bin := programPath(b)
	dir, cache := b.TempDir(), b.TempDir()
	bundles := filepath.Join(b.TempDir(), "bundles")
	clitest.Unpack(b, filepath.Join(clitest.Corpus(b), "latest.tar.zst"), bundles)
	check(b, os.RemoveAll(filepath.Join(bundles, "eventing-kogito")))         // its dependencies are not YAML
	check(b, os.RemoveAll(filepath.Join(bundles, "apicurio-api-controller"))) // has a CRD of apicurio-registry-3
	const operators = 60
	for _, pkg := range subscribeTo(b, dir, bundles)[operators:] {
		check(b, os.Remove(filepath.Join(dir, "subscriptions", pkg+".yaml")))
	}
	for _, args := range [][]string{{"resolve", "--offline"}, {"render", "--offline"}} {
		if got := quaysideIn(b, dir, cache, args...); got.code != 0 {
			b.Fatalf("quayside %q: exit code %d\n%s", args, got.code, got.stderr)
		}
	}
	for _, target := range []string{"1.37", "1.22"} {
		b.Run(target, func(b *testing.B) {
			var spent time.Duration
			code := 0
			for b.Loop() {
				cmd := exec.Command(bin, "-C", dir, "upgrade", "--check", "--kubernetes", target, "--offline")
				cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
					b.Fatalf("%v\n%.2000s", err, out)
				}
				code = cmd.ProcessState.ExitCode()
				spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(spent.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(code), "exit-code")
		})
	}
}
