package lockfile_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/lockfile"
)

// versions holds the minor version of each operator; one without is not pinned.
type versions map[string]int

func (v versions) lock() *lockfile.File {
	var pins []lockfile.Pin
	for pkg, minor := range v {
		pins = append(pins, lockfile.Pin{Namespace: "ns", Package: pkg, Version: fmt.Sprintf("0.%d.0", minor), Bundle: fmt.Sprintf("%s.v0.%d.0", pkg, minor)})
	}
	return lockfile.New(pins)
}

// moved returns versions with some operators changed by at least from and less than to,
// added and, where from is negative, removed.
func moved(t *rapid.T, v versions, name string, from, to int) versions {
	out := versions{}
	for _, pkg := range operators() {
		old, pinned := v[pkg]
		switch rapid.IntRange(0, 4).Draw(t, name+pkg) {
		case 0:
			out[pkg] = max(0, old+rapid.IntRange(from, to).Draw(t, name+pkg+"by"))
		case 1:
			if from >= 0 && pinned {
				out[pkg] = old
			}
		default:
			if pinned {
				out[pkg] = old
			}
		}
	}
	return out
}

// operators returns the packages of the random locks.
func operators() []string { return []string{"a", "b", "c", "d", "e", "f"} }

func lowered(settled, base versions, sides ...versions) []string {
	var out []string
	var of []lockfile.Side
	for i, s := range sides {
		of = append(of, lockfile.Side{Name: fmt.Sprint(i), Lock: s.lock()})
	}
	for _, l := range lockfile.Lowerings(settled.lock(), base.lock(), of...) {
		out = append(out, l.Pin.Package)
	}
	return out
}

// TestLoweringsOfSide takes a side whose moves include the other's: nothing is lowered.
func TestLoweringsOfSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := moved(t, nil, "base", 1, 20)
		ours := moved(t, base, "ours", -5, 5)
		theirs := moved(t, ours, "theirs", 0, 5)
		if got := lowered(theirs, base, ours, theirs); got != nil {
			t.Errorf("base %v, ours %v, theirs %v, taken: %v", base, ours, theirs, got)
		}
	})
}

// TestLoweringsOfCleanMerge merges sides that move different operators, in any
// direction, as Git does.
func TestLoweringsOfCleanMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := moved(t, nil, "base", 1, 20)
		ours, theirs, merged := versions{}, versions{}, versions{}
		moves := moved(t, base, "moves", -5, 5)
		for _, pkg := range slices.Sorted(maps.Keys(moves)) {
			by, mine := moves[pkg], rapid.Bool().Draw(t, "mine"+pkg)
			for side, is := range map[*versions]bool{&ours: mine, &theirs: !mine, &merged: true} {
				if old, ok := base[pkg]; is {
					(*side)[pkg] = by
				} else if ok {
					(*side)[pkg] = old
				}
			}
		}
		if got := lowered(merged, base, ours, theirs); got != nil {
			t.Errorf("base %v, ours %v, theirs %v, merged %v: %v", base, ours, theirs, merged, got)
		}
	})
}

// TestLoweringsOfAny compares with the definition, operator by operator, and accepts
// all: nothing is lowered then.
func TestLoweringsOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := moved(t, nil, "base", 1, 20)
		ours, theirs := moved(t, base, "ours", -5, 5), moved(t, base, "theirs", -5, 5)
		settled := moved(t, base, "settled", -5, 5)
		got := lowered(settled, base, ours, theirs)
		for pkg, v := range settled {
			was, known := base[pkg]
			raised, onPurpose := -1, false
			for _, side := range []versions{ours, theirs} {
				if at, ok := side[pkg]; ok && (!known || at > was) {
					raised = max(raised, at)
				} else if ok && at < was && at == v {
					onPurpose = true
				}
			}
			if want := v < raised && !onPurpose; want != slices.Contains(got, pkg) {
				t.Errorf("%s: base %v, ours %v, theirs %v, settled %v: reported %v", pkg, base, ours, theirs, settled, !want)
			}
		}
		f, sides := settled.lock(), []lockfile.Side{{Name: "ours", Lock: ours.lock()}, {Name: "theirs", Lock: theirs.lock()}}
		pins := slices.Clone(f.Pins)
		for _, l := range lockfile.Lowerings(f, base.lock(), sides...) {
			i := slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Key() == l.Pin.Key() })
			pins[i] = l.Accepted()
		}
		if again := lockfile.Lowerings(f.With(pins), base.lock(), sides...); again != nil {
			t.Errorf("accepted, and still lowered: %+v", again)
		}
	})
}

// TestVanished finds each operator that a side has and the settled lock has not, at the
// higher version, of the first side that has it.
func TestVanished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs, settled := moved(t, nil, "ours", 1, 9), moved(t, nil, "theirs", 1, 9), moved(t, nil, "settled", 1, 9)
		want := versions{}
		for _, pkg := range operators() {
			if _, ok := settled[pkg]; !ok && max(ours[pkg], theirs[pkg]) > 0 {
				want[pkg] = max(ours[pkg], theirs[pkg])
			}
		}
		var got []lockfile.Pin
		for _, l := range lockfile.Vanished(settled.lock(), lockfile.Side{Name: "ours", Lock: ours.lock()}, lockfile.Side{Name: "theirs", Lock: theirs.lock()}) {
			got = append(got, l.Higher)
			pkg := l.Higher.Package
			if _, has := ours[pkg]; (l.Side == "ours") != (has && ours[pkg] >= theirs[pkg]) {
				t.Errorf("%s: ours %v, theirs %v: side %q", pkg, ours, theirs, l.Side)
			}
		}
		if diff := lockfile.Diff(want.lock(), lockfile.New(got)); diff != nil {
			t.Errorf("ours %v, theirs %v, settled %v: %+v", ours, theirs, settled, diff)
		}
	})
}
