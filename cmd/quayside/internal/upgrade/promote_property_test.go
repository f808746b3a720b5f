package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/internal/testing/propertytest"
	"pgregory.net/rapid"
)

// drawnPromotion describes operators a, b, … with three versions each, in two environments.
type drawnPromotion struct {
	names     []string
	needs     map[string][]drawnNeed // by "a@2"
	from, to  map[string]int         // pinned versions
	declared  []string               // operators declared in the target environment
	below     map[string]int         // declared upper limits of new operators
	unhealthy []string
}

// drawnNeed requires another operator, at a minimum or an exact version.
type drawnNeed struct {
	of    string
	at    int
	exact bool
}

func (n drawnNeed) String() string {
	if n.exact {
		return fmt.Sprintf("%s=%d", n.of, n.at)
	}
	return fmt.Sprintf("%s@%d", n.of, n.at)
}

func drawPromotion(t *rapid.T) drawnPromotion {
	d := drawnPromotion{names: []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(t, "operators")], needs: map[string][]drawnNeed{}, below: map[string]int{}}
	for _, name := range d.names {
		for v := 1; v <= 3; v++ {
			for _, other := range d.names {
				if other != name && rapid.IntRange(0, 4).Draw(t, "needs") == 0 {
					key := fmt.Sprintf("%s@%d", name, v)
					d.needs[key] = append(d.needs[key], drawnNeed{other, rapid.IntRange(1, 3).Draw(t, "at"), rapid.Bool().Draw(t, "exact")})
				}
			}
		}
	}
	d.from, d.to = d.lock(t, "from"), d.lock(t, "to")
	for _, name := range d.names {
		if rapid.IntRange(0, 3).Draw(t, "healthy") == 0 {
			d.unhealthy = append(d.unhealthy, name)
		}
		if d.to[name] > 0 || rapid.Bool().Draw(t, "declared") {
			d.declared = append(d.declared, name)
			if d.to[name] == 0 && rapid.Bool().Draw(t, "below") {
				d.below[name] = rapid.IntRange(2, 3).Draw(t, "version")
			}
		}
	}
	return d
}

// lock draws consistent pins.
func (d drawnPromotion) lock(t *rapid.T, label string) map[string]int {
	var sound []map[string]int
	d.forEach(3, func(at map[string]int) {
		if len(at) > 0 && d.met(at) {
			sound = append(sound, maps.Clone(at))
		}
	})
	if len(sound) == 0 {
		t.Skip("nothing goes together")
	}
	return rapid.SampledFrom(sound).Draw(t, label)
}

// forEach calls f with every combination of versions from 1 to most, also without some of the operators.
func (d drawnPromotion) forEach(most int, f func(map[string]int)) {
	at := map[string]int{}
	var next func(i int)
	next = func(i int) {
		if i == len(d.names) {
			f(at)
			return
		}
		next(i + 1)
		for v := 1; v <= most; v++ {
			at[d.names[i]] = v
			next(i + 1)
		}
		delete(at, d.names[i])
	}
	next(0)
}

// met reports whether the pins meet all requirements.
func (d drawnPromotion) met(at map[string]int) bool {
	for name, v := range at {
		for _, n := range d.needs[fmt.Sprintf("%s@%d", name, v)] {
			if have := at[n.of]; have == 0 || have < n.at || n.exact && have != n.at {
				return false
			}
		}
	}
	return true
}

func (d drawnPromotion) environment(pins map[string]int, declared []string) environment {
	var e environment
	for _, name := range d.names {
		for v := 1; v <= 3; v++ {
			key := fmt.Sprintf("%s@%d", name, v)
			e.bundles += key
			for _, n := range d.needs[key] {
				e.bundles += " " + n.String()
			}
			e.bundles += "\n"
		}
		if pins[name] > 0 {
			e.pins += fmt.Sprintf(" %s@%d", name, pins[name])
		}
	}
	e.declares = strings.Join(declared, " ")
	return e
}

// promotable returns the operators that could be promoted if there were no requirements.
func (d drawnPromotion) promotable() []string {
	return slices.DeleteFunc(slices.Clone(d.names), func(name string) bool {
		below, limited := d.below[name]
		return d.from[name] <= d.to[name] || limited && d.from[name] >= below || slices.Contains(d.unhealthy, name) || !slices.Contains(d.declared, name)
	})
}

// promote returns the target pins after a promotion of some operators.
func (d drawnPromotion) promote(operators []string) map[string]int {
	out := maps.Clone(d.to)
	for _, name := range operators {
		out[name] = d.from[name]
	}
	return out
}

// TestPromotionIsMaximal promotes between small random environments. The resulting pins must be consistent, and
// changes must come from the upstream environment. It must be impossible to promote a further operator.
func TestPromotionIsMaximal(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	propertytest.LimitChecks(t, 40)
	rapid.Check(t, func(t *rapid.T) {
		d := drawPromotion(t)
		n++
		base := filepath.Join(dir, strconv.Itoa(n))
		defer func() { _ = os.RemoveAll(base) }()
		from := d.environment(d.from, slices.Sorted(maps.Keys(d.from))).open(t, base, "dev")
		var declares []string
		for _, name := range d.declared {
			if below, limited := d.below[name]; limited {
				name = fmt.Sprintf("%s<%d", name, below)
			}
			declares = append(declares, name)
		}
		to := d.environment(d.to, declares).open(t, base, "stage")
		opt := upgrade.PromotionOptions{Now: now()}
		if len(d.unhealthy) > 0 {
			opt.Rule, opt.Observed = defaultRule(), newObservation(t, from, d.unhealthy...)
		}
		got, err := upgrade.PromotionStep{From: from, To: to}.Promote(context.Background(), opt)
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		var promoted []string
		for _, r := range got.Operators {
			if r.Outcome == upgrade.OutcomeUpgraded || r.Outcome == upgrade.OutcomeAdded {
				promoted = append(promoted, strings.TrimPrefix(r.Operator, "ops/"))
			}
		}
		if want := d.environment(d.promote(promoted), nil).pins; got.Resolution != nil && " "+lockedVersions(got.Resolution.Lock) != want {
			t.Fatalf("%v: lock is %s, with %v taken over it is%s", d, lockedVersions(got.Resolution.Lock), promoted, want)
		}
		if !d.met(d.promote(promoted)) {
			t.Fatalf("%v: %v do not go together", d, promoted)
		}
		may := d.promotable()
		for set := range 1 << len(may) {
			var more []string
			for i, name := range may {
				if set>>i&1 == 1 {
					more = append(more, name)
				}
			}
			within := !slices.ContainsFunc(promoted, func(name string) bool { return !slices.Contains(more, name) })
			if within && len(more) > len(promoted) && d.met(d.promote(more)) {
				t.Fatalf("%v: took over %v, and could %v:\n%s", d, promoted, more, strings.Join(formatReport(got), "\n"))
			}
		}
	})
}
