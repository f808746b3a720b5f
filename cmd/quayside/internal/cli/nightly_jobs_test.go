package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/forgetest"
)

// TestNightlyJobs runs the nightly job of the GitHub action and of the GitLab component, as their files
// define them. It plays three nights in examples/fleet, and thirty in make nights. The catalog grows,
// and some of the proposed branches are merged. On main and on every branch, no environment may be
// ahead of its upstream environment. With -short, it plays one night of the action, which suffices to
// detect the fault that State.Upstream in package rules always returns nil.
func TestNightlyJobs(t *testing.T) {
	nights := 3
	switch {
	case testing.Short():
		nights = 1
	case os.Getenv("QUAYSIDE_NIGHTS") != "":
		nights = 30
	}
	if _, err := exec.LookPath("curl"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the jobs fetch with curl, on Linux")
	}
	isolateGit(t)
	t.Run("action", func(t *testing.T) {
		t.Parallel()
		f := newGrowingFleet(t, "github", nights)
		f.play(func(clone string) (string, error) {
			j := newJob(t, f.forge, clone)
			j.context["inputs.mode"] = "upgrade"
			err := j.run(t)
			return j.log.String(), err
		})
	})
	t.Run("component", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short: the commands are those of the action")
		}
		t.Parallel()
		f := newGrowingFleet(t, "gitlab", nights)
		address, sum := serveRelease(t)
		inputs := map[string]string{"version": "1.2.3", "sha256": sum, "platform": "linux_" + runtime.GOARCH, "releases": address}
		f.play(func(string) (string, error) {
			_, log, err := runLab(t, f.forge, filepath.Join(f.dir, "origin.git"), "main", forgetest.Token, inputs, "quayside-upgrade")
			return log, err
		})
	})
}

// growingFleet is a copy of examples/fleet with a catalog in the repository. Its directory has origin.git, and
// desk, the clone of a person.
type growingFleet struct {
	t     *testing.T
	dir   string
	rand  *rand.Rand
	h     *history
	forge *forgetest.Server
	past  lockHistory
	seen  map[string]int
}

func newGrowingFleet(t *testing.T, forge string, nights int) *growingFleet {
	f := &growingFleet{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(1, 3)), forge: forgetest.New(t, forge), seen: map[string]int{}}
	f.h = &history{releases: map[string][]release{}, nights: nights + 1}
	for _, pkg := range []string{"etcd", "memcached-operator"} {
		list := []release{{"0.0.1", 0, forever}}
		for night := 1; night <= nights; night++ {
			if night == 1 || f.rand.IntN(4) == 0 {
				list = append(list, release{fmt.Sprintf("0.0.%d", len(list)+1), night, forever})
			}
		}
		f.h.add(pkg, list)
	}
	desk := filepath.Join(f.dir, "desk")
	check(t, os.CopyFS(desk, os.DirFS("../../../../examples/fleet")))
	for _, env := range f.environments() {
		check(t, os.RemoveAll(filepath.Join(desk, env, "rendered")))
		check(t, os.Remove(filepath.Join(desk, env, "quayside.lock")))
	}
	base := strings.Replace(read(t, desk, "envs/base.yaml"), "oci:../../quickstart/catalog", "dir:../catalog", 1)
	put(t, desk, "envs/base.yaml", base)
	f.publish(0)
	gitIn(t, desk, "init", "-q", "-b", "main")
	mustRun(t, desk, "resolve", "--all", "--render", "--offline")
	commitAll(t, desk, "start")
	gitIn(t, f.dir, "clone", "-q", "--bare", "desk", "origin.git")
	gitIn(t, desk, "remote", "add", "origin", "../origin.git")
	f.past = lockHistory{dir: filepath.Join(f.dir, "origin.git")}
	return f
}

func (f *growingFleet) environments() []string {
	return []string{"envs/dev", "envs/stage", "envs/prod-east", "envs/prod-west"}
}

// upstream returns the upstream environment of env, or "" if env follows none.
func (f *growingFleet) upstream(env string) string {
	return map[string]string{"envs/stage": "envs/dev", "envs/prod-east": "envs/stage", "envs/prod-west": "envs/stage"}[env]
}

// publish writes the catalog of a night into the clone desk.
func (f *growingFleet) publish(night int) {
	for pkg, channel := range map[string]string{"etcd": "singlenamespace-alpha", "memcached-operator": "alpha"} {
		put(f.t, f.dir, "desk/catalog/"+pkg+".json", f.h.catalog(pkg, f.h.entries(pkg, night, ""), channel, nil))
	}
}

// play plays the nights. It calls job once a night with a new clone.
func (f *growingFleet) play(job func(clone string) (log string, err error)) {
	origin, desk, clone := filepath.Join(f.dir, "origin.git"), filepath.Join(f.dir, "desk"), filepath.Join(f.dir, "clone")
	for night := 1; night < f.h.nights; night++ {
		gitIn(f.t, desk, "fetch", "-q", "origin")
		gitIn(f.t, desk, "checkout", "-q", "-B", "main", "origin/main")
		f.publish(night)
		gitIn(f.t, desk, "add", "-A")
		gitIn(f.t, desk, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("catalog of night ", night))
		gitIn(f.t, desk, "push", "-q", "origin", "main")
		check(f.t, os.RemoveAll(clone))
		gitIn(f.t, f.dir, "clone", "-q", "origin.git", "clone")
		if log, err := job(clone); err != nil {
			f.t.Fatalf("night %d: %v\n%s", night, err, log)
		}
		branches := strings.Fields(gitIn(f.t, origin, "for-each-ref", "--format=%(refname:short)", "refs/heads/upgrade/"))
		f.checkAhead(night, append(branches, "main"))
		f.rand.Shuffle(len(branches), func(i, j int) { branches[i], branches[j] = branches[j], branches[i] })
		for _, branch := range branches {
			if f.rand.IntN(3) > 0 {
				f.merge(night, branch)
			}
		}
		f.checkAhead(night, []string{"main"})
	}
	gitIn(f.t, desk, "fetch", "-q", "origin")
	gitIn(f.t, desk, "checkout", "-q", "-B", "main", "origin/main")
	mustRun(f.t, desk, "verify", "--all", "--offline")
	for _, env := range f.environments() {
		if f.seen["merged in "+env] < f.h.nights/10 {
			f.t.Errorf("the test shows little: %v", f.seen)
		}
	}
	f.t.Log(f.seen)
}

// merge merges a branch into main, and closes its pull request.
func (f *growingFleet) merge(night int, branch string) {
	origin := filepath.Join(f.dir, "origin.git")
	cmd := exec.Command("git", "merge-tree", "--write-tree", "main", branch)
	cmd.Dir = origin
	tree, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("night %d: %s does not merge: %s", night, branch, tree)
	}
	commit := strings.TrimSpace(gitIn(f.t, origin, "commit-tree", "-p", "main", "-p", branch, "-m", "Merge "+branch, strings.TrimSpace(string(tree))))
	gitIn(f.t, origin, "update-ref", "refs/heads/main", commit)
	gitIn(f.t, origin, "branch", "-q", "-D", branch)
	for _, p := range f.forge.Pulls() {
		if p.Head == branch && !p.Closed {
			f.forge.Change(p.Number, func(p *forgetest.Pull) { p.Merged, p.Closed, p.Gone = true, true, true })
		}
	}
	for _, env := range f.environments() {
		if strings.Contains(branch, "/"+filepath.Base(env)+"/") {
			f.seen["merged in "+env]++
		}
	}
}

// checkAhead fails the test if an environment is ahead in one of the branches.
func (f *growingFleet) checkAhead(night int, branches []string) {
	for _, branch := range branches {
		f.seen["branches"]++
		for _, env := range f.environments() {
			if from := f.upstream(env); from != "" {
				for _, pin := range f.past.at(f.t, branch, env).Pins {
					if !f.past.along(f.t, branch, from)[pin.BundleDigest()] {
						f.t.Errorf("night %d: on %s, %s has %s, which has not been in %s", night, branch, env, pin.Bundle, from)
					}
				}
			}
		}
	}
}
