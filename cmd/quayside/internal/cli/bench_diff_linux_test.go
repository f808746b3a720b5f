package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkDiff measures the CPU time and the peak memory of comparing the committed corpus with
// a work tree in which no, one or three operators were upgraded. The cost should depend on the
// number of changes.
func BenchmarkDiff(b *testing.B) {
	bin := programPath(b)
	dir := b.TempDir()
	subscribeToAll(b, dir)
	put(b, dir, "quayside.yaml", read(b, dir, "quayside.yaml")+"  policy: {failOn: \"off\"}\n")
	moves := []struct{ pkg, from, to string }{
		{"rabbitmq-cluster-operator", "2.22.1", "2.22.3"}, {"grafana-operator", "5.22.2", "5.24.0"}, {"argocd-operator", "0.14.0", "0.18.0"},
	}
	for _, m := range moves {
		subscribe(b, dir, m.pkg, m.from)
	}
	cache := b.TempDir()
	settle := func() {
		// The small catalog has no upgrade edge between the versions, so the lock is deleted and resolved anew.
		// .git is moved away, because resolve rejects the deletion of a lock that HEAD has.
		git, aside := filepath.Join(dir, ".git"), filepath.Join(cache, "git")
		if os.Rename(git, aside) == nil {
			defer func() {
				if err := os.Rename(aside, git); err != nil {
					b.Fatal(err)
				}
			}()
		}
		if err := os.RemoveAll(filepath.Join(dir, "quayside.lock")); err != nil {
			b.Fatal(err)
		}
		for _, args := range [][]string{{"resolve", "--offline"}, {"render", "--offline"}} {
			if got := quaysideIn(b, dir, cache, args...); got.code != 0 {
				b.Fatalf("quayside %q: exit code %d\n%s", args, got.code, got.stderr)
			}
		}
	}
	settle()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "start"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			b.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	moved := 0
	for _, n := range []int{0, 1, 3} {
		for ; moved < n; moved++ {
			subscribe(b, dir, moves[moved].pkg, moves[moved].to)
		}
		settle()
		for _, from := range []string{"auto", "lock"} {
			b.Run(fmt.Sprintf("%d-moved/from-%s", n, from), func(b *testing.B) {
				var total resourceUsage
				for b.Loop() {
					one := runMeasured(b, cache, bin, "-C", dir, "diff", "--offline", "--exit-zero", "--from", from)
					total.cpu += one.cpu
					total.rss = max(total.rss, one.rss)
				}
				b.ReportMetric(total.cpu.Seconds()/float64(b.N), "cpu-s/op")
				b.ReportMetric(float64(total.rss>>20), "peak-MB")
			})
		}
	}
}

// subscribe declares a version of a package of the corpus.
func subscribe(b *testing.B, dir, pkg, version string) {
	b.Helper()
	if _, err := os.Stat(filepath.Join(dir, "subscriptions", pkg+".yaml")); err != nil {
		b.Fatalf("%s is not in the workspace", pkg)
	}
	put(b, dir, "subscriptions/"+pkg+".yaml", fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[1]s, version: %[2]q}\n", pkg, version))
}
