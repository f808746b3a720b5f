// Package nights_test plays many nights of 'quayside propose' on a repository with three environments.
// Catalogs, bundles, clusters and people have faults, all of them random with a fixed seed.
package nights_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	nights    = flag.Int("nights", 0, "number of nights (default: a short run for make test)")
	operators = flag.Int("operators", 12, "number of operators, with -nights")
	seed      = flag.Uint64("seed", 1, "seed of everything random, with -nights")
)

// TestNights plays nights with a random history of catalogs, or with -nights and QUAYSIDE_CORPUS with
// the history of real ones.
func TestNights(t *testing.T) {
	if *nights == 0 {
		if testing.Short() {
			t.Skip("-short: some nights take 20 seconds")
		}
		*seed, *nights, *operators = 10, 16, 4 // more nights take longer than other tests
		play(t, *seed, newHistory(rand.New(rand.NewPCG(*seed, 1)), *operators, *nights))
		return
	}
	if corpus := os.Getenv("QUAYSIDE_CORPUS"); corpus != "" {
		play(t, *seed, readHistory(t, corpus, *operators, *nights))
		return
	}
	t.Log("QUAYSIDE_CORPUS is not set: the history of the catalogs is random")
	play(t, *seed, newHistory(rand.New(rand.NewPCG(*seed, 1)), *operators, *nights))
}

// play plays the nights of a history, and then nights without faults until nothing changes.
func play(t *testing.T, seed uint64, h *history) {
	start := time.Now()
	f := newFleet(t, seed, h)
	for f.night = 1; f.night < h.nights; f.night++ {
		f.publish(faults{})
		f.act()
		with := f.drawFaults()
		f.publish(with)
		f.playNight(with, f.observe(false), false)
	}
	f.end()
	t.Logf("seed %d: %v in %s", seed, f.seen, time.Since(start).Round(time.Second))
}

// playNight proposes, and checks and merges the branches.
func (f *fleet) playNight(with faults, seen observations, all bool) {
	got, promoted := f.propose(seen)
	f.checkProposals(with, seen, got, promoted)
	if f.night%3 == 0 {
		f.checkAgain(seen, got, promoted)
	}
	f.publish(faults{})
	f.checkMerges(got, promoted)
	f.mergeSome(all)
}

// end removes what holds operators back, plays nights until nothing changes, and compares the
// environments with the ones that a run without a past gives.
func (f *fleet) end() {
	f.publish(faults{})
	f.git("desk", "fetch", "-q", "origin")
	f.git("desk", "checkout", "-q", "-B", "main", "origin/main")
	for fork := range f.forks {
		f.git("origin.git", "branch", "-D", fork)
	}
	for _, pkg := range f.h.packages {
		if d := f.declared[pkg]; !d.absent {
			f.declare(pkg, declaration{config: d.config})
		}
	}
	f.mustRun("desk", "resolve", "--all", "--render", "--prune", "--offline")
	f.commit("release of everything")
	before := ""
	for quiet := 0; quiet < 5; f.night++ { // the longest soak time has three nights
		if f.night > f.h.nights+60 {
			f.fatalf("the fleet does not come to rest")
		}
		f.playNight(faults{}, f.observe(true), true)
		quiet++
		if at := f.git("origin.git", "rev-parse", "main"); at != before {
			quiet, before = 0, at
		}
	}
	f.checkout("main")
	for _, env := range environments() {
		check(f.t, os.RemoveAll(filepath.Join(f.dir, "probe/envs", env, "rendered")))
		check(f.t, os.Remove(filepath.Join(f.dir, "probe/envs", env, "quayside.lock")))
	}
	f.mustRun("probe", "resolve", "--all", "--render", "--offline")
	if d := f.git("probe", "diff", "--", "envs/dev/rendered", "envs/stage/rendered", "envs/prod/rendered"); d != "" {
		f.fatalf("the trees differ from those of a run without a past:\n%s", d)
	}
}
