package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// newLongRepository creates a packed repository with n commits on main, and a branch topic with 5
// commits that starts 20 commits before the end of main.
func newLongRepository(b *testing.B, n int) string {
	b.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip("git is not installed")
	}
	dir := b.TempDir()
	run := func(stdin string, args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run("", "init", "-q", "-b", "main")
	var s bytes.Buffer
	commit := func(branch string, i int, from string) {
		fmt.Fprintf(&s, "commit refs/heads/%s\nmark :%d\ncommitter A <a@example.com> %d +0000\ndata 2\nx\n%s", branch, i+1, 1_000_000_000+60*i, from)
		fmt.Fprintf(&s, "M 100644 inline d%d/f%d.yaml\ndata 2\nx\n\n", i%10, i%300)
	}
	for i := range n {
		commit("main", i, "")
	}
	for i := range 5 {
		from := ""
		if i == 0 {
			from = fmt.Sprintf("from :%d\n", n-20)
		}
		commit("topic", n+i, from)
	}
	run(s.String(), "fast-import", "--quiet")
	return dir
}

// BenchmarkMergeBase finds the merge base of two branches, and compares the time with go-git. The branch
// main has 20,000 commits. The commands diff and propose need a merge base.
func BenchmarkMergeBase(b *testing.B) {
	dir := newLongRepository(b, 20_000)
	var took [2]time.Duration
	for b.Loop() {
		start := time.Now()
		r, err := gitrepo.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		own, err := base(r)
		if err != nil {
			b.Fatal(err)
		}
		took[0] += time.Since(start)

		start = time.Now()
		library, err := baseByLibrary(dir)
		if err != nil {
			b.Fatal(err)
		}
		took[1] += time.Since(start)
		if own != library {
			b.Fatalf("got %s, go-git %s", own, library)
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-library")
	b.ReportMetric(took[1].Seconds()*1000/float64(b.N), "library-ms/op")
}

func base(r *gitrepo.Repo) (string, error) {
	main, err := r.Revision("main")
	if err != nil {
		return "", err
	}
	topic, err := r.Revision("topic")
	if err != nil {
		return "", err
	}
	v, err := r.MergeBase(main, topic)
	if err != nil {
		return "", err
	}
	return v.Hash(), nil
}

func baseByLibrary(dir string) (string, error) {
	r, err := gogit.PlainOpen(dir)
	if err != nil {
		return "", err
	}
	main, err := r.ResolveRevision(plumbing.Revision("main"))
	if err != nil {
		return "", err
	}
	topic, err := r.ResolveRevision(plumbing.Revision("topic"))
	if err != nil {
		return "", err
	}
	a, err := r.CommitObject(*main)
	if err != nil {
		return "", err
	}
	c, err := r.CommitObject(*topic)
	if err != nil {
		return "", err
	}
	found, err := a.MergeBase(c)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", errors.New("no unique merge base")
	}
	return found[0].Hash.String(), nil
}
