package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/lockfile"
)

// proposals is the output of quayside propose.
type proposals struct {
	Split struct {
		PullRequests []struct {
			Branch    string
			Operators []string
			Updated   bool
		}
		Obsolete []string
		Kept     []struct{ Branch, Reason string }
	}
	Left     []struct{ Operator, Code, Reason string }
	Warnings []struct{ Code, Subject, Message string }
}

// promotions is the output of quayside propose --promote.
type promotions struct {
	Steps []struct {
		To       string
		Proposed *struct{ Branch string }
		Obsolete string
		Kept     struct{ Branch, Reason string }
		Changes  []struct{ Operator, From, To string }
	}
}

// propose runs the nightly job in a new clone.
func (f *nightFleet) propose(seen observations) (got proposals, promoted promotions) {
	check(f.t, os.RemoveAll(filepath.Join(f.dir, "ci")))
	f.git(".", "clone", "-q", "origin.git", "ci")
	args := []string{"propose", "--offline", "--push", "origin", "--pr-body", filepath.Join(f.dir, "bodies")}
	upgrade := args
	for _, name := range seen.tonight {
		upgrade = append(upgrade, "--observed", name)
	}
	f.mustDecode(&got, "ci/envs/dev", upgrade...)
	promote := append(slices.Clone(args), "--promote", "--now", f.clock().Format(time.RFC3339))
	if len(f.files) > 0 {
		promote = append(promote, "--observed", filepath.Join(f.dir, "observed"))
	}
	f.mustDecode(&promoted, "ci", promote...)
	return got, promoted
}

// checkProposals checks the branches of a night.
func (f *nightFleet) checkProposals(with faults, seen observations, before map[string]string, got proposals, promoted promotions) {
	main := f.lockAt("main", "dev")
	open := f.branches("upgrade/", "promote/")
	named := map[string]bool{}
	proposed := map[string]string{} // branches by operator
	for _, p := range got.Split.PullRequests {
		named[p.Branch] = true
		next := f.lockAt(open[p.Branch], "dev")
		for _, c := range lockfile.Diff(main, next) {
			proposed[c.Namespace+"/"+c.Package] = p.Branch
		}
		f.checkHops(with, seen, main, next, p.Branch)
	}
	for _, k := range got.Split.Kept {
		named[k.Branch] = true
		f.seen["kept"]++
		if strings.Contains(k.Reason, "currently has no upgrade from") {
			f.seen["kept without an upgrade"]++
		}
	}
	for _, branch := range got.Split.Obsolete {
		named[branch] = true
		f.seen["obsolete"]++
		f.checkObsolete(branch, before[branch], "dev", proposed)
	}
	for _, s := range promoted.Steps {
		named[s.Kept.Branch] = true
		if s.Obsolete != "" {
			named[s.Obsolete] = true
			f.checkObsolete(s.Obsolete, before[s.Obsolete], s.To, nil)
		}
		if s.Proposed == nil {
			continue
		}
		named[s.Proposed.Branch] = true
		f.seen["promotions"]++
		from := map[string]string{"stage": "dev", "prod": "stage"}[s.To]
		upstream, have, next := f.lockAt("main", from), f.lockAt("main", s.To), f.lockAt(open[s.Proposed.Branch], s.To)
		f.noLower(s.To, have, next, s.Proposed.Branch)
		for _, pin := range next.Pins {
			old, had := have.Pin(pin.Namespace, pin.Package)
			theirs, ok := upstream.Pin(pin.Namespace, pin.Package)
			switch {
			case had && old.Bundle == pin.Bundle:
			case !ok || theirs.Bundle != pin.Bundle:
				f.fatalf("%s promotes %s to %s, which %s does not have", s.Proposed.Branch, pin.Key(), pin.Bundle, from)
			case seen.refused[from+" "+pin.Key()] || had && seen.refused[s.To+" "+pin.Key()]:
				f.fatalf("%s promotes %s to %s, which reports Upgradeable=False tonight", s.Proposed.Branch, pin.Key(), pin.Bundle)
			}
		}
	}
	for branch := range open {
		if !named[branch] {
			f.fatalf("the output does not mention the open branch %s\n%+v\n%+v", branch, got, promoted)
		}
	}
	f.checkMoves(with, seen, got, main, proposed)
}

// checkHops checks that a branch upgrades only along edges of tonight's catalogs, and upgrades no operator that
// is held back.
func (f *nightFleet) checkHops(with faults, seen observations, main, next *lockfile.File, branch string) {
	f.noLower("dev", main, next, branch)
	for _, pin := range next.Pins {
		old, had := main.Pin(pin.Namespace, pin.Package)
		if had && old.Bundle == pin.Bundle {
			continue
		}
		d := f.declared[pin.Package]
		i := slices.IndexFunc(f.offered(pin.Package, with), func(e channelEntry) bool { return e.version == pin.Version && e.hasEdgeFrom(old.Version) })
		if had && i < 0 {
			f.fatalf("%s upgrades %s from %s to %s, which is no edge tonight", branch, pin.Key(), old.Version, pin.Version)
		}
		if !d.absent && (d.hold || d.manual) || seen.held[pin.Key()] || with.empty[pin.Package] == pin.Version {
			f.fatalf("%s upgrades %s, which is held back tonight: %+v", branch, pin.Key(), d)
		}
	}
}

// checkObsolete checks that every upgrade of an obsolete branch is on the main branch or on another proposed branch.
func (f *nightFleet) checkObsolete(branch, tip, env string, proposed map[string]string) {
	if _, conflicts := f.mergeTree("main", tip, "try"); conflicts != "" {
		return
	}
	base := f.git("origin.git", "merge-base", "main", tip)
	start, main, next := f.lockAt(base, env), f.lockAt("main", env), f.lockAt(tip, env)
	for _, l := range start.Leaving {
		_, still := main.LeavingOperator(l.Key())
		if _, kept := next.LeavingOperator(l.Key()); still && !kept && proposed[l.Key()] == "" {
			f.fatalf("%s is declared obsolete, but the main branch still has leftover objects of %s", branch, l.Key())
		}
	}
	for _, c := range lockfile.Diff(start, next) {
		if other := proposed[c.Namespace+"/"+c.Package]; other != "" && other != branch {
			return // it conflicts with the other branch
		}
	}
	for _, c := range lockfile.Diff(start, next) {
		key := c.Namespace + "/" + c.Package
		now, pinned := main.Pin(c.Namespace, c.Package)
		then, changed := next.Pin(c.Namespace, c.Package)
		if pinned && changed && now.CompareVersions(then) < 0 && (proposed[key] == "" || proposed[key] == branch) {
			f.fatalf("%s is declared obsolete, but %s is at %s on the main branch, at %s there, and on no other branch", branch, key, now.Version, then.Version)
		}
	}
}

// checkMoves checks that every operator with a possible upgrade has a branch, or that the output lists the
// operator as skipped.
func (f *nightFleet) checkMoves(with faults, seen observations, got proposals, main *lockfile.File, proposed map[string]string) {
	left, unreadable, declined := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, l := range got.Left {
		left[l.Operator] = true
		declined[l.Operator] = l.Code == "declined"
		unreadable[l.Operator] = l.Code == "not-rendered" && strings.Contains(l.Reason, "opening bundle")
	}
	waits := map[string]bool{}
	for _, w := range got.Warnings {
		waits[w.Subject] = waits[w.Subject] || w.Code == "upgrade-waits" || w.Code == "held"
	}
	for _, pin := range main.Pins {
		key, d := pin.Key(), f.declared[pin.Package]
		offered := f.offered(pin.Package, with)
		if d.absent || d.hold || d.manual || seen.held[key] {
			continue
		}
		if len(offered) == 0 {
			if !left[key] {
				f.fatalf("%s has no catalog tonight, but the output does not list it as skipped: %+v", key, got)
			}
			continue
		}
		var next []string
		for _, e := range offered {
			if e.hasEdgeFrom(pin.Version) {
				next = append(next, e.version)
			}
		}
		switch {
		case len(next) == 0 || proposed[key] != "":
		case unreadable[key]: // the content of this or another operator in the tree is lost
			f.seen["operators with lost content"]++
		case declined[key]:
			f.seen["nights after a revert"]++
		case f.h.isCoupled(pin.Package) && (left[key] || waits[key]):
			f.seen["coupled operators that wait"]++
		case slices.Contains(next, with.empty[pin.Package]):
			if !left[key] {
				f.fatalf("%s cannot be fetched, but the output does not list it as skipped: %+v", key, got)
			}
		default:
			f.fatalf("%s is at %s and may be upgraded to %v, and no branch does: %+v", key, pin.Version, next, got)
		}
	}
}

// noLower checks that no pin has a lower version in after than in before, unless a person reverted the upgrade.
func (f *nightFleet) noLower(env string, before, after *lockfile.File, what string) {
	f.t.Helper()
	for _, pin := range after.Pins {
		old, ok := before.Pin(pin.Namespace, pin.Package)
		if ok && old.CompareVersions(pin) > 0 && f.reverted[pin.Key()] != pin.Version {
			f.fatalf("%s: %s lowers %s from %s to %s", env, what, pin.Key(), old.Version, pin.Version)
		}
	}
}

// snapshot returns all branches of origin, and the texts of all pull requests.
func (f *nightFleet) snapshot() string {
	out := fmt.Sprint(f.branches(""))
	err := filepath.WalkDir(filepath.Join(f.dir, "bodies"), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // no text was written yet
		}
		data, err := os.ReadFile(name)
		out += name + "\n" + string(data)
		return err
	})
	check(f.t, err)
	return out
}

// checkAgain runs the job again, which must change nothing.
func (f *nightFleet) checkAgain(seen observations, got proposals, promoted promotions) {
	before := f.snapshot()
	again, promotedAgain := f.propose(seen)
	if after := f.snapshot(); after != before {
		f.fatalf("a second run changes branches or texts:\n%s\n%s", before, after)
	}
	for i := range got.Split.PullRequests {
		got.Split.PullRequests[i].Updated = false
	}
	got.Split.Obsolete = []string{} // deleted
	for i := range promoted.Steps {
		promoted.Steps[i].Obsolete = ""
	}
	a, _ := json.Marshal([]any{got, promoted})
	b, _ := json.Marshal([]any{again, promotedAgain})
	if string(a) != string(b) {
		f.fatalf("the output of a second run differs:\n%s\n%s", a, b)
	}
}

// checkMerges checks that the open branches merge in any order, and that the result is verified.
func (f *nightFleet) checkMerges(got proposals) {
	open := f.branches("upgrade/", "promote/")
	for _, branch := range got.Split.Obsolete {
		if open[branch] != "" {
			f.fatalf("branch %s is obsolete and was not deleted", branch)
		}
	}
	if len(open) == 0 {
		return
	}
	tree := ""
	for range 2 {
		names := slices.Sorted(maps.Keys(open))
		f.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		at := "main"
		for _, name := range names {
			next, conflicts := f.mergeTree(at, open[name], "merge "+name)
			if conflicts != "" {
				f.fatalf("%s does not merge after %v:\n%s\n%+v\n%s", name, names, conflicts, got.Split, f.git("origin.git", "log", "--oneline", "--graph", "-n", "30", at, open[name]))
			}
			at = next
		}
		if now := f.git("origin.git", "rev-parse", at+"^{tree}"); tree == "" {
			tree = now
			f.verify(at, fmt.Sprintf("the merge of %v", names))
		} else if now != tree {
			f.fatalf("merging %v in another order gives another tree", names)
		}
	}
	f.seen["merge orders"]++
}

// mergeSome merges some open branches, in random order. A branch may be left for a week.
func (f *nightFleet) mergeSome(all bool) {
	open := f.branches("upgrade/", "promote/")
	names := slices.Sorted(maps.Keys(open))
	f.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	before := map[string]*lockfile.File{}
	for _, env := range rings() {
		before[env] = f.lockAt("main", env)
	}
	merged := 0
	for _, name := range names {
		until, known := f.postponed[name]
		if !known {
			until = f.night + []int{0, 0, 0, 0, 0, 1, 1, 3, 7, 9}[f.rand.IntN(10)]
			f.postponed[name] = until
		}
		if until > f.night && !all {
			f.seen["nights that a branch was left"]++
			continue
		}
		delete(f.postponed, name)
		commit, conflicts := f.mergeTree("main", open[name], "Merge "+name)
		if conflicts != "" {
			f.fatalf("%s does not merge: %s", name, conflicts)
		}
		f.git("origin.git", "update-ref", "refs/heads/main", commit)
		f.git("origin.git", "branch", "-D", name)
		if strings.HasPrefix(name, "upgrade/") {
			f.merged = commit
		}
		merged++
	}
	if merged == 0 {
		return
	}
	f.seen["merges"] += merged
	f.verify("main", "the merges of a night")
	for _, env := range rings() {
		f.noLower(env, before[env], f.lockAt("main", env), "merging "+strings.Join(names, ", "))
	}
}
