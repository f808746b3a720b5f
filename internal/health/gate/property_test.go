package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/health/gate"
)

// history contains the bundle and the health of one cluster by hour.
type history struct {
	bundle  []string
	healthy []bool
}

// good reports whether a cluster had this bundle and was healthy in every hour from the first to the last.
func (h history) good(bundle string, from, to int) bool {
	for i := max(from, 0); i <= to; i++ {
		if h.bundle[i] != bundle || !h.healthy[i] {
			return false
		}
	}
	return from >= 0
}

// since returns the hour since which the cluster has been healthy with the bundle that it runs at hour.
func (h history) since(hour int) int {
	from := hour
	for from > 0 && h.bundle[from-1] == h.bundle[hour] && h.healthy[from-1] {
		from--
	}
	return from
}

// ring is an environment whose clusters upgrade to its pin at random times.
type ring struct {
	pin      string
	clusters []history
	seen     []gate.Observation
}

func (r *ring) names() (out []string) {
	for i := range r.clusters {
		out = append(out, fmt.Sprint("c", i))
	}
	return out
}

// live simulates an hour: clusters upgrade, fail and recover, and some of them are observed.
func (r *ring) live(t *rapid.T, hour int) {
	for i := range r.clusters {
		h := &r.clusters[i]
		bundle, healthy := r.pin, true
		if hour > 0 {
			bundle, healthy = h.bundle[hour-1], h.healthy[hour-1]
			if bundle != r.pin && rapid.IntRange(0, 3).Draw(t, "upgrades") > 0 {
				bundle = r.pin
			}
			if rapid.IntRange(0, 9).Draw(t, "turns") == 0 {
				healthy = !healthy
			}
		}
		h.bundle, h.healthy = append(h.bundle, bundle), append(h.healthy, healthy)
		if rapid.IntRange(0, 3).Draw(t, "looked at") == 0 {
			continue
		}
		o := gate.Observation{Cluster: fmt.Sprint("c", i), Operator: "ops/db", At: hours(float64(hour)), Bundle: bundle, Healthy: healthy}
		if healthy {
			o.Since = hours(float64(h.since(hour)))
		}
		r.seen = append(r.seen, o)
	}
}

// suffices is the model of the gate: it decides the promotion of bundle from the history of the clusters.
// From the observations, it uses only clusters and times.
func (r *ring) suffices(rule gate.Criteria, bundle string, hour int) bool {
	within, soak := int(time.Duration(rule.Within)/time.Hour), int(time.Duration(rule.Soak)/time.Hour)
	good := 0
	for i, h := range r.clusters {
		for looked := hour; looked >= max(hour-within, 0); looked-- {
			if slices.ContainsFunc(r.seen, func(o gate.Observation) bool {
				return o.Cluster == fmt.Sprint("c", i) && o.At.Equal(hours(float64(looked)))
			}) {
				if h.good(bundle, looked-soak, looked) {
					good++
				}
				break
			}
		}
	}
	return good >= rule.Clusters && float64(good) >= float64(rule.Healthy)/100_000*float64(len(r.clusters))-1e-9
}

func drawRule(t *rapid.T) gate.Criteria {
	return gate.Criteria{
		Healthy:  gate.Share(1000 * rapid.IntRange(40, 100).Draw(t, "healthy")),
		Soak:     gate.Span(rapid.IntRange(0, 6).Draw(t, "soak")) * gate.Span(time.Hour),
		Clusters: rapid.IntRange(1, 3).Draw(t, "at least"),
		Within:   gate.Span(rapid.IntRange(1, 5).Draw(t, "within")) * gate.Span(time.Hour),
	}
}

// TestRollouts promotes bundles through several environments and compares the gate with the model. The gate
// must pass only healthy environments. Any other verdict must list the clusters that prevent the promotion.
func TestRollouts(t *testing.T) {
	promoted, held, runs := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		rule := drawRule(t)
		rings := make([]*ring, 3)
		for i := range rings {
			rings[i] = &ring{pin: "sha256:0", clusters: make([]history, rapid.IntRange(1, 4).Draw(t, "clusters"))}
		}
		for hour := range rapid.IntRange(6, 20).Draw(t, "hours") {
			if rapid.IntRange(0, 7).Draw(t, "release") == 0 {
				rings[0].pin = fmt.Sprint("sha256:", hour+1)
			}
			for _, r := range rings {
				r.live(t, hour)
			}
			for i := len(rings) - 2; i >= 0; i-- { // last environment first, so that a bundle advances one step at a time
				from, to := rings[i], rings[i+1]
				if from.pin == to.pin {
					continue
				}
				v := gate.Judge(rule, gate.Pin{Operator: "ops/db", Bundle: from.pin, Clusters: from.names()}, from.seen, hours(float64(hour)))
				if want := from.suffices(rule, from.pin, hour); v.Pass != want {
					t.Fatalf("hour %d, ring %d: pass %t, model %t: %s", hour, i, v.Pass, want, v.Text(rule, ""))
				}
				if !v.Pass {
					held++
					if !slices.ContainsFunc(v.Reasons, func(r gate.Reason) bool { return len(r.Clusters) > 0 }) {
						t.Fatalf("held for no cluster: %+v", v)
					}
					continue
				}
				promoted++
				to.pin = from.pin
			}
		}
	})
	if runs >= 100 && (promoted == 0 || held == 0) {
		t.Errorf("%d promoted, %d held: the test proves nothing", promoted, held)
	}
}

// drawSeen draws observations of a few clusters.
func drawSeen(t *rapid.T) []gate.Observation {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gate.Observation {
		o := gate.Observation{
			Cluster: rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "cluster"), Operator: "ops/db",
			At:      hours(float64(-rapid.IntRange(-1, 12).Draw(t, "ago"))),
			Bundle:  rapid.SampledFrom([]string{bundleB, bundleB, bundleB, bundleA, ""}).Draw(t, "bundle"),
			Healthy: rapid.IntRange(0, 4).Draw(t, "healthy") > 0, Upgradeable: rapid.SampledFrom([]string{"", "True", "True", "True", "False"}).Draw(t, "upgradeable"),
		}
		if rapid.Bool().Draw(t, "says since") {
			o.Since = o.At.Add(-time.Duration(rapid.IntRange(0, 10).Draw(t, "since")) * time.Hour)
		}
		return o
	}), 0, 12).Draw(t, "seen")
}

// TestMonotone adds an observation to a set of observations. A good observation must not turn a pass into a failure.
// Any other observation must not turn a failure into a pass. A weaker rule must not turn a pass into a failure.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, p, seen := drawRule(t), pin(rapid.IntRange(1, 3).Draw(t, "clusters")), drawSeen(t)
		before := gate.Judge(rule, p, seen, noon())
		check := func(name string, v gate.Verdict, pass bool) {
			if before.Pass == pass && v.Pass != pass {
				t.Fatalf("%s: %s, before %s", name, v.Text(rule, ""), before.Text(rule, ""))
			}
		}
		cluster := rapid.SampledFrom(p.Clusters).Draw(t, "cluster")
		ago := rapid.IntRange(0, 12).Draw(t, "ago")
		better := good(cluster, func(o *gate.Observation) { o.At, o.Since = hours(float64(-ago)), time.Time{} })
		check("one more good one", gate.Judge(rule, p, append(slices.Clone(seen), better), noon()), true)
		better.Since = hours(-100)
		check("one more that was long good", gate.Judge(rule, p, append(slices.Clone(seen), better), noon()), true)
		worse := better
		switch rapid.IntRange(0, 2).Draw(t, "worse") {
		case 0:
			worse.Healthy = false
		case 1:
			worse.Bundle = bundleA
		default:
			worse.Upgradeable = "False"
			worse.At = noon()
		}
		worse.Since = time.Time{}
		if worse.Upgradeable == "True" {
			check("one more bad one", gate.Judge(rule, p, append(slices.Clone(seen), worse), noon()), false)
		} else if v := gate.Judge(rule, p, append(slices.Clone(seen), worse), noon()); v.Pass {
			t.Fatalf("the pin passes, but the observed operator blocks upgrades: %s", v.Text(rule, ""))
		}
		less := rule
		less.Healthy, less.Soak, less.Clusters = max(rule.Healthy-10_000, 1), rule.Soak/2, 1
		check("less is asked", gate.Judge(less, p, seen, noon()), true)
		for _, r := range before.Reasons {
			if len(r.Clusters) == 0 {
				t.Fatalf("%s names no cluster", r.Cause)
			}
		}
	})
}

// TestRefusalIsNotHidden adds random observations to an observation of a blocked upgrade (Upgradeable=False).
// The pin must not pass unless a newer, recent observation has Upgradeable=True.
func TestRefusalIsNotHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, p, seen := drawRule(t), pin(3), drawSeen(t)
		refuses := good("c1", func(o *gate.Observation) {
			o.At, o.Upgradeable = hours(float64(-rapid.IntRange(-1, 12).Draw(t, "ago"))), "False"
		})
		v := gate.Judge(rule, p, append(slices.Clone(seen), refuses), noon())
		withdrawn := slices.ContainsFunc(seen, func(o gate.Observation) bool {
			return o.Cluster == "c1" && o.Upgradeable == "True" && o.At.After(refuses.At) && !o.At.After(noon()) && noon().Sub(o.At) <= time.Duration(rule.Within)
		})
		if v.Pass && !withdrawn {
			t.Fatalf("it passes: %s", v.Text(rule, ""))
		}
	})
}
