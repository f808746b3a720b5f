package cli_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// act simulates a day of a team: somebody edits declarations, reverts a merge, upgrades by hand, or
// copies a branch to merge it days later.
func (f *nightFleet) act() {
	f.reverted = map[string]string{}
	f.git("desk", "fetch", "-q", "--prune", "origin")
	f.git("desk", "checkout", "-q", "-B", "main", "origin/main")
	if f.chance(15) {
		f.edit()
	}
	if f.merged != "" && f.chance(12) {
		f.revert()
	}
	if f.chance(5) {
		f.upgradeByHand()
	}
	open := slices.Sorted(maps.Keys(f.branches("upgrade/")))
	if len(open) > 0 && f.chance(15) {
		fork := fmt.Sprintf("person/%d", f.night)
		f.git("origin.git", "branch", fork, open[f.rand.IntN(len(open))])
		f.forks[fork] = f.night + 2 + f.rand.IntN(7)
	}
	for _, fork := range slices.Sorted(maps.Keys(f.forks)) {
		if f.forks[fork] <= f.night {
			f.mergeFork(fork)
		}
	}
}

// commit commits the work of a person to the main branch.
func (f *nightFleet) commit(what string) {
	f.git("desk", "add", "-A")
	f.git("desk", "commit", "-q", "--allow-empty", "-m", what)
	f.verify(f.push(), "a person's "+what)
}

// push pushes the main branch of the desk, and returns its commit.
func (f *nightFleet) push() string {
	f.git("desk", "push", "-q", "origin", "main")
	return f.git("desk", "rev-parse", "HEAD")
}

// undo drops the uncommitted work of a person. why is the reason, for the log.
func (f *nightFleet) undo(why string) {
	f.git("desk", "reset", "-q", "--hard", "origin/main")
	f.git("desk", "clean", "-q", "-fd")
	f.seen[why]++
}

// edit changes the declaration of one package, resolves and renders.
func (f *nightFleet) edit() {
	pkg := f.h.packages[f.rand.IntN(len(f.h.packages))]
	before := f.declared[pkg]
	d, what := before, ""
	switch n := f.rand.IntN(10); {
	case before.absent:
		d.absent, what = false, "addition"
	case n < 2:
		d.absent, what = true, "removal"
	case n < 4:
		d.hold, what = !d.hold, "hold"
	case n < 5:
		d.manual, what = !d.manual, "approval"
	default:
		d.config, what = d.config+1, "configuration"
	}
	f.declare(pkg, d)
	if got := f.run("desk", "resolve", "--all", "--render", "--offline"); got.code != 0 {
		f.t.Logf("seed %d, night %d: %s of %s: %v", f.seed, f.night, what, pkg, got)
		f.declared[pkg] = before
		f.undo("edits undone")
		return
	}
	f.seen["edits"]++
	f.commit(what + " of " + pkg)
}

// revert reverts the last merge of an upgrade of dev.
func (f *nightFleet) revert() {
	before := f.lockAt("main", "dev")
	if _, err := f.tryGit("desk", "revert", "--no-edit", "-m", "1", f.merged); err != nil {
		f.undo("reverts with conflicts")
		return
	}
	f.merged = ""
	if got := f.run("desk", "verify", "--all", "--offline"); got.code != 0 {
		f.undo("reverts refused by verify")
		return
	}
	f.verify(f.push(), "a revert")
	for _, pin := range f.lockAt("main", "dev").Pins {
		if old, ok := before.Pin(pin.Namespace, pin.Package); ok && old.CompareVersions(pin) > 0 {
			f.reverted[pin.Key()] = pin.Version
		}
	}
	f.seen["reverts"]++
}

// upgradeByHand upgrades one operator of dev on the main branch.
func (f *nightFleet) upgradeByHand() {
	pkg := f.h.packages[f.rand.IntN(len(f.h.packages))]
	got := f.run("desk/envs/dev", "resolve", "--upgrade="+f.h.operator(pkg), "--render", "--offline")
	if got.code != 0 {
		f.undo("upgrades by hand refused")
		return
	}
	f.seen["upgrades by hand"]++
	f.commit("upgrade of " + pkg)
}

// mergeFork merges a person's copy of a branch, and resolves conflicts as described in docs/lock.md.
func (f *nightFleet) mergeFork(fork string) {
	delete(f.forks, fork)
	f.git("desk", "fetch", "-q", "origin")
	before := f.lockAt("main", "dev")
	if _, err := f.tryGit("desk", "merge", "-q", "--no-edit", "origin/"+fork); err != nil {
		f.settle()
	}
	if got := f.run("desk", "verify", "--all", "--offline"); got.code != 0 {
		f.seen["merges mended"]++
		f.mustRun("desk/envs/dev", "resolve", "--render", "--offline")
		f.git("desk", "commit", "-q", "-a", "-m", "resolve")
	}
	f.verify(f.push(), "the merge of "+fork)
	f.git("origin.git", "branch", "-D", fork)
	f.noLower("dev", before, f.lockAt("main", "dev"), "the merge of "+fork)
	f.seen["forks merged"]++
}

// settle resolves a conflict in dev, and commits the merge.
func (f *nightFleet) settle() {
	f.seen["conflicts settled"]++
	const lock = "envs/dev/quayside.lock"
	if strings.Contains(f.git("desk", "diff", "--name-only", "--diff-filter=U"), lock) {
		f.git("desk", "checkout", "--theirs", lock)
	}
	args := []string{"resolve", "--offline"}
	got := f.run("desk/envs/dev", args...)
	if got.code == 2 {
		for _, m := range regexp.MustCompile(`run 'quayside resolve (--upgrade=[^']*)'`).FindAllStringSubmatch(got.stderr, -1) {
			args = append(args, m[1])
		}
		got = f.run("desk/envs/dev", args...)
	}
	if got.code != 0 {
		f.fatalf("settling a conflict with quayside %q: %v", args, got)
	}
	f.mustRun("desk/envs/dev", "render", "--offline")
	f.git("desk", "add", "-A")
	f.git("desk", "commit", "-q", "--no-edit")
}
