package lockfile_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/lockfile"
)

// minorVersions holds the minor version of each pinned operator.
type minorVersions map[string]int

func (v minorVersions) lock() *lockfile.File {
	var pins []lockfile.Pin
	for pkg, minor := range v {
		pins = append(pins, lockfile.Pin{Namespace: "ns", Package: pkg, Version: fmt.Sprintf("0.%d.0", minor), Bundle: fmt.Sprintf("%s.v0.%d.0", pkg, minor)})
	}
	return lockfile.New(pins)
}

// drawMoves returns a copy of v in which some versions are raised by a number from the interval [from, to]. It
// also adds some operators or, if the parameter from is negative, removes some.
func drawMoves(t *rapid.T, v minorVersions, name string, from, to int) minorVersions {
	out := minorVersions{}
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

func loweredOperators(settled, base minorVersions, sides ...minorVersions) []string {
	var out []string
	var of []lockfile.Side
	for i, s := range sides {
		of = append(of, lockfile.Side{Name: fmt.Sprint(i), Lock: s.lock()})
	}
	for _, l := range lockfile.Downgrades(settled.lock(), base.lock(), of...) {
		out = append(out, l.Pin.Package)
	}
	return out
}

// TestLoweringsOfSide checks merges in which one side contains all changes of the other. If the merged lock
// equals the first side, Downgrades must return nothing.
func TestLoweringsOfSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawMoves(t, nil, "base", 1, 20)
		ours := drawMoves(t, base, "ours", -5, 5)
		theirs := drawMoves(t, ours, "theirs", 0, 5)
		if got := loweredOperators(theirs, base, ours, theirs); got != nil {
			t.Errorf("base %v, ours %v, theirs %v: lowered: %v", base, ours, theirs, got)
		}
	})
}

// TestLoweringsOfCleanMerge checks that Downgrades returns nothing if the two sides upgrade or downgrade
// different operators.
func TestLoweringsOfCleanMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawMoves(t, nil, "base", 1, 20)
		ours, theirs, merged := minorVersions{}, minorVersions{}, minorVersions{}
		moves := drawMoves(t, base, "moves", -5, 5)
		for _, pkg := range slices.Sorted(maps.Keys(moves)) {
			by, mine := moves[pkg], rapid.Bool().Draw(t, "mine"+pkg)
			for side, is := range map[*minorVersions]bool{&ours: mine, &theirs: !mine, &merged: true} {
				if old, ok := base[pkg]; is {
					(*side)[pkg] = by
				} else if ok {
					(*side)[pkg] = old
				}
			}
		}
		if got := loweredOperators(merged, base, ours, theirs); got != nil {
			t.Errorf("base %v, ours %v, theirs %v, merged %v: lowered: %v", base, ours, theirs, merged, got)
		}
	})
}

// TestLoweringsOfAny compares Downgrades with its definition for each operator. After all downgrades are
// allowed, Downgrades must return nothing.
func TestLoweringsOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawMoves(t, nil, "base", 1, 20)
		ours, theirs := drawMoves(t, base, "ours", -5, 5), drawMoves(t, base, "theirs", -5, 5)
		settled := drawMoves(t, base, "settled", -5, 5)
		got := loweredOperators(settled, base, ours, theirs)
		for pkg, v := range settled {
			was, known := base[pkg]
			raised, onPurpose := -1, false
			for _, side := range []minorVersions{ours, theirs} {
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
		for _, l := range lockfile.Downgrades(f, base.lock(), sides...) {
			i := slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Key() == l.Pin.Key() })
			pins[i] = l.AllowedPin()
		}
		if again := lockfile.Downgrades(f.With(pins), base.lock(), sides...); again != nil {
			t.Errorf("still lowered after acceptance: %+v", again)
		}
	})
}

// TestVanished checks that RemovedPins returns each operator that a side pins but the merged lock does not,
// with the highest version and the first side that has this version.
func TestVanished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs, settled := drawMoves(t, nil, "ours", 1, 9), drawMoves(t, nil, "theirs", 1, 9), drawMoves(t, nil, "settled", 1, 9)
		want := minorVersions{}
		for _, pkg := range operators() {
			if _, ok := settled[pkg]; !ok && max(ours[pkg], theirs[pkg]) > 0 {
				want[pkg] = max(ours[pkg], theirs[pkg])
			}
		}
		var got []lockfile.Pin
		for _, l := range lockfile.RemovedPins(settled.lock(), lockfile.Side{Name: "ours", Lock: ours.lock()}, lockfile.Side{Name: "theirs", Lock: theirs.lock()}) {
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
