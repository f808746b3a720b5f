package cli_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestNights plays many nights of propose on a repository with three environments. Catalogs, bundles, clusters
// and people have faults, all of them random with a fixed seed. The history of the catalogs is random. With
// QUAYSIDE_NIGHTS and QUAYSIDE_CORPUS, it is the history of real catalogs.
func TestNights(t *testing.T) {
	nights, operators, seed := setting(t, "QUAYSIDE_NIGHTS", 0), setting(t, "QUAYSIDE_OPERATORS", 12), uint64(setting(t, "QUAYSIDE_SEED", 1))
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	switch {
	case nights > 0 && corpus != "":
		play(t, seed, readHistory(t, corpus, operators, nights))
		return
	case nights > 0:
		t.Log("QUAYSIDE_CORPUS is not set: the history of the catalogs is random")
	case testing.Short():
		t.Skip("-short: some nights take 20 seconds")
	default:
		nights, operators, seed = 16, 4, 10 // a month takes longer than all other tests of the program
	}
	play(t, seed, newHistory(rand.New(rand.NewPCG(seed, 1)), operators, nights))
}

// setting returns the number in an environment variable, or preset if the variable is not set.
func setting(t *testing.T, name string, preset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	check(t, err)
	return n
}

// play plays the nights of a history, and then nights without faults until nothing changes.
func play(t *testing.T, seed uint64, h *history) {
	start := time.Now()
	f := newNightFleet(t, seed, h)
	for f.night = 1; f.night < h.nights; f.night++ {
		f.publish(faults{})
		f.act()
		with := f.drawFaults()
		f.publish(with)
		f.playNight(with, f.observe(false), false)
	}
	f.end()
	formats := map[string]int{}
	for _, pkg := range h.packages {
		formats[h.formatOf(pkg)]++
	}
	t.Logf("seed %d, %v: %v in %s", seed, formats, f.seen, time.Since(start).Round(time.Second))
}

// playNight proposes, and checks and merges the branches.
func (f *nightFleet) playNight(with faults, seen observations, all bool) {
	before := f.branches("upgrade/", "promote/")
	got, promoted := f.propose(seen)
	f.checkProposals(with, seen, before, got, promoted)
	if f.night%3 == 0 {
		f.checkAgain(seen, got, promoted)
	}
	f.publish(faults{})
	f.checkMerges(got)
	f.mergeSome(all)
}

// end removes all reasons to hold back operators, and plays nights until nothing changes. Then it resolves and
// renders the environments anew, and compares their trees with the old ones.
func (f *nightFleet) end() {
	f.publish(faults{})
	f.git("desk", "fetch", "-q", "origin")
	f.git("desk", "checkout", "-q", "-B", "main", "origin/main")
	for fork := range f.forks {
		f.git("origin.git", "branch", "-D", fork)
	}
	for _, pkg := range f.h.packages {
		if d := f.declared[pkg]; !d.absent {
			f.declare(pkg, declaration{config: d.config + 1}) // also ends holds after reverts
		}
	}
	f.mustRun("desk", "resolve", "--all", "--render", "--prune", "--offline")
	f.commit("release of everything")
	before := ""
	for quiet := 0; quiet < 5; f.night++ { // the longest soak time has three nights
		if f.night > f.h.nights+60 {
			f.fatalf("the fleet does not become stable")
		}
		f.playNight(faults{}, f.observe(true), true)
		quiet++
		if at := f.git("origin.git", "rev-parse", "main"); at != before {
			quiet, before = 0, at
		}
	}
	f.checkout("main")
	f.mustRun("probe", "resolve", "--all", "--render", "--prune", "--offline") // dependencies of earlier versions
	f.git("probe", "add", "-A")
	for _, env := range rings() {
		check(f.t, os.RemoveAll(filepath.Join(f.dir, "probe/envs", env, "rendered")))
		f.git("probe", "rm", "-q", "-f", "envs/"+env+"/quayside.lock")
	}
	f.git("probe", "commit", "-q", "--allow-empty", "-m", "without locks")
	for _, env := range rings() { // an environment installs the bundles of the environment that it follows
		f.mustRun("probe/envs/"+env, "resolve", "--render", "--offline")
	}
	if d := f.git("probe", "diff", "--", "envs/dev/rendered", "envs/stage/rendered", "envs/prod/rendered"); d != "" {
		f.fatalf("the trees differ from those of a new resolution:\n%s", d)
	}
}
