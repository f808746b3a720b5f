package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/health/gate"
)

const (
	bundleA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	bundleB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func hours(n float64) time.Time { return noon().Add(time.Duration(n * float64(time.Hour))) }

// pin returns a pin with bundle B in the clusters c1, c2, …
func pin(clusters int) gate.Pin {
	p := gate.Pin{Operator: "ops/db", Bundle: bundleB, Checksum: bundleA}
	for i := range clusters {
		p.Clusters = append(p.Clusters, fmt.Sprint("c", i+1))
	}
	return p
}

// good returns an hour-old observation of a cluster that has been healthy with the pin for a day. edit may
// change the observation.
func good(cluster string, edit func(o *gate.Observation)) gate.Observation {
	o := gate.Observation{Cluster: cluster, Operator: "ops/db", At: hours(-1), Since: hours(-25), Version: "2.0.0", Bundle: bundleB, Healthy: true, Upgradeable: "True"}
	if edit != nil {
		edit(&o)
	}
	return o
}

func all(verdict gate.Verdict) string {
	var text []string
	for _, r := range verdict.Reasons {
		text = append(text, r.String())
	}
	return strings.Join(text, "; ")
}

// TestJudge varies the observation of one of two clusters.
func TestJudge(t *testing.T) {
	rule := gate.Criteria{Healthy: 100_000, Soak: gate.Span(24 * time.Hour), Clusters: 1, Within: gate.Span(6 * time.Hour)}
	at := func(hour float64) func(o *gate.Observation) {
		return func(o *gate.Observation) { o.At, o.Since = hours(hour), time.Time{} }
	}
	bad := func(hour float64) func(o *gate.Observation) {
		return func(o *gate.Observation) { at(hour)(o); o.Healthy, o.Message = false, "Failed: no pods" }
	}
	row := func(edits ...func(o *gate.Observation)) (out []gate.Observation) {
		for _, edit := range edits {
			out = append(out, good("c1", edit))
		}
		return out
	}
	for name, c := range map[string]struct {
		seen []gate.Observation
		want string // the reasons; empty if the pin passes
	}{
		"good":                       {row(nil), ""},
		"exactly old enough":         {row(func(o *gate.Observation) { o.At, o.Since = hours(-6), hours(-30) }), ""},
		"too old":                    {row(func(o *gate.Observation) { o.At = hours(-6.01) }), "observation too old: c1 (at 2026-11-22T05:59:24Z)"},
		"no time":                    {row(func(o *gate.Observation) { o.At = time.Time{} }), "observation too old: c1 (no observation time)"},
		"never":                      {nil, "not observed: c1"},
		"another operator":           {row(func(o *gate.Observation) { o.Operator = "ops/cache" }), "not observed: c1"},
		"later than now":             {row(at(0.1)), "not observed: c1"},
		"later than now, too":        {row(at(0.1), nil), ""},
		"old bundle":                 {row(func(o *gate.Observation) { o.Version, o.Bundle = "1.0.0", bundleA }), "not at the pinned version: c1 (1.0.0 sha256:aaaaaaaaaaaa)"},
		"same name, other":           {row(func(o *gate.Observation) { o.Bundle = bundleA }), "not at the pinned version: c1 (2.0.0 sha256:aaaaaaaaaaaa)"},
		"no digest":                  {row(func(o *gate.Observation) { o.Bundle = "" }), "not at the pinned version: c1 (2.0.0 without the digest of its bundle)"},
		"by checksum":                {row(func(o *gate.Observation) { o.Bundle, o.Checksum = "", bundleA }), ""},
		"digest over checksum":       {row(func(o *gate.Observation) { o.Bundle, o.Checksum = bundleA, bundleA }), "not at the pinned version: c1 (2.0.0 sha256:aaaaaaaaaaaa)"},
		"unhealthy":                  {row(bad(-1)), "unhealthy: c1 (Failed: no pods)"},
		"not soaked":                 {row(func(o *gate.Observation) { o.Since = hours(-24.5) }), "healthy for too short a time: c1 (since 2026-11-21T11:30:00Z)"},
		"seen once":                  {row(at(-1)), "healthy for too short a time: c1 (since 2026-11-22T11:00:00Z)"},
		"seen again and again":       {row(at(-25), at(-19), at(-13), at(-7), at(-1)), ""},
		"a gap":                      {row(at(-25), at(-18), at(-13), at(-7), at(-1)), "healthy for too short a time: c1 (since 2026-11-21T18:00:00Z)"},
		"over the gap":               {row(at(-25), at(-18), at(-13), func(o *gate.Observation) { o.At, o.Since = hours(-7), hours(-26) }, at(-1)), ""},
		"a break":                    {row(at(-25), at(-19), bad(-14), at(-13), at(-7), at(-1)), "healthy for too short a time: c1 (since 2026-11-21T23:00:00Z)"},
		"reported interruption":      {row(func(o *gate.Observation) { o.At, o.Since = hours(-2), hours(-30) }, func(o *gate.Observation) { o.Since = hours(-1.5) }), "healthy for too short a time: c1 (since 2026-11-22T10:30:00Z)"},
		"contradicts an observation": {row(bad(-3), at(-2), func(o *gate.Observation) { o.Since = hours(-30) }), "healthy for too short a time: c1 (since 2026-11-22T10:00:00Z)"},
		"other before":               {row(func(o *gate.Observation) { at(-3)(o); o.Bundle = bundleA }, nil), "healthy for too short a time: c1 (since 2026-11-22T11:00:00Z)"},
		"recovered":                  {row(bad(-26), nil), ""},
		"both at once":               {row(nil, func(o *gate.Observation) { o.Healthy = false }), "unhealthy: c1"},
		"not upgradeable":            {row(func(o *gate.Observation) { o.Upgradeable, o.UpgradeMessage = "False", "migrating" }), "upgrade blocked by the operator: c1 (Upgradeable=False: migrating)"},
		"unknown":                    {row(func(o *gate.Observation) { o.Upgradeable = "Unknown" }), "upgrade blocked by the operator: c1 (Upgradeable=Unknown)"},
		"Upgradeable not reported":   {row(func(o *gate.Observation) { o.Upgradeable = "" }), ""},
		"Upgradeable again":          {row(func(o *gate.Observation) { at(-2)(o); o.Upgradeable = "False" }, nil), ""},
		"a field is missing":         {row(func(o *gate.Observation) { at(-2)(o); o.Upgradeable = "False" }, func(o *gate.Observation) { o.Upgradeable = "" }), "upgrade blocked by the operator: c1 (Upgradeable=False, observed at 2026-11-22T10:00:00Z)"},
		"blocked, undated":           {row(func(o *gate.Observation) { o.At, o.Upgradeable = time.Time{}, "False" }, nil), "upgrade blocked by the operator: c1 (Upgradeable=False, observed at an unknown time)"},
		"blocked, in the future":     {row(nil, func(o *gate.Observation) { o.At, o.Upgradeable = hours(9), "False" }), "upgrade blocked by the operator: c1 (Upgradeable=False)"},
		"unblocked, in the future":   {row(func(o *gate.Observation) { o.Upgradeable = "False" }, func(o *gate.Observation) { o.At = hours(9) }), "upgrade blocked by the operator: c1 (Upgradeable=False, observed at 2026-11-22T11:00:00Z)"},
		"unblocked, undated":         {row(func(o *gate.Observation) { o.Upgradeable = "False" }, func(o *gate.Observation) { o.At = time.Time{} }), "upgrade blocked by the operator: c1 (Upgradeable=False)"},
		"unblocked long ago":         {row(func(o *gate.Observation) { at(-9002)(o); o.Upgradeable = "False" }, at(-9001), func(o *gate.Observation) { o.Upgradeable = "" }), "upgrade blocked by the operator: c1 (Upgradeable=False, observed at 2025-11-12T10:00:00Z)"},
		"elsewhere":                  {row(func(o *gate.Observation) { o.Upgradeable = "False" }, func(o *gate.Observation) { o.At, o.Environment = noon(), "other" }), "upgrade blocked by the operator: c1 (Upgradeable=False)"},
		"without the operator": {row(at(-2), func(o *gate.Observation) {
			*o = gate.Observation{Cluster: "c1", Operator: "ops/db", At: hours(-1), Absent: true}
		}), "not observed: c1 (without the operator at 2026-11-22T11:00:00Z)"},
		"blocked long ago": {row(func(o *gate.Observation) { at(-60)(o); o.Upgradeable = "False" }), "upgrade blocked by the operator: c1 (Upgradeable=False); observation too old: c1 (at 2026-11-20T00:00:00Z)"},
	} {
		seen := append(slices.Clone(c.seen), good("c2", nil))
		v := gate.Judge(rule, pin(2), seen, noon())
		if got := all(v); got != c.want || v.Pass != (c.want == "") {
			t.Errorf("%s: pass %t, %q, want %q", name, v.Pass, got, c.want)
		}
		slices.Reverse(seen)
		if again := gate.Judge(rule, pin(2), seen, noon()); all(again) != all(v) || again.Pass != v.Pass {
			t.Errorf("%s: got %q in another order, want %q", name, all(again), all(v))
		}
	}
}

// TestThousandClusters evaluates 1,000 clusters, 1% of which are unhealthy.
func TestThousandClusters(t *testing.T) {
	record := func(edits map[int]func(o *gate.Observation), missing ...int) (out []gate.Observation) {
		for i := range 1000 {
			edit := edits[i]
			if i%100 == 99 {
				edit = func(o *gate.Observation) { o.Healthy, o.Message = false, "Progressing" }
			}
			if !slices.Contains(missing, i) {
				out = append(out, good(fmt.Sprint("c", i+1), edit))
			}
		}
		return out
	}
	slow := func(o *gate.Observation) { o.Since = hours(-20) }
	behind := func(o *gate.Observation) { o.Bundle, o.Version = bundleA, "1.0.0" }
	old := func(o *gate.Observation) { o.At, o.Since = hours(-30), hours(-90) }
	refuses := func(o *gate.Observation) { o.Upgradeable = "False" }
	const unhealthy = "unhealthy: c100 (Progressing), c200 (Progressing), c300 (Progressing), c400 (Progressing), c500 (Progressing), and 5 more"
	for name, c := range map[string]struct {
		healthy gate.Share
		seen    []gate.Observation
		pass    bool
		good    int
		want    string
	}{
		"one percent unhealthy": {99_000, record(nil), true, 990, unhealthy},
		"a little more is asked": {
			99_001, record(nil), false, 990, unhealthy,
		},
		"a slow cluster": {
			99_000, record(map[int]func(o *gate.Observation){4: slow}), false, 989,
			unhealthy + "; healthy for too short a time: c5 (since 2026-11-21T16:00:00Z)",
		},
		"one that is behind": {
			99_000, record(map[int]func(o *gate.Observation){4: behind}), false, 989, "not at the pinned version: c5 (1.0.0 sha256:aaaaaaaaaaaa); " + unhealthy,
		},
		"a missing one": {99_000, record(nil, 6), false, 989, "not observed: c7; " + unhealthy},
		"an old one": {
			99_000, record(map[int]func(o *gate.Observation){7: old}), false, 989, "observation too old: c8 (at 2026-11-21T06:00:00Z); " + unhealthy,
		},
		"all of these, and less is asked": {
			98_700, record(map[int]func(o *gate.Observation){4: slow, 7: old}, 6), true, 987,
			"not observed: c7; observation too old: c8 (at 2026-11-21T06:00:00Z); " + unhealthy + "; healthy for too short a time: c5 (since 2026-11-21T16:00:00Z)",
		},
		"one that upgrade blocked by the operator": {
			50_000, record(map[int]func(o *gate.Observation){8: refuses}), false, 990, "upgrade blocked by the operator: c9 (Upgradeable=False); " + unhealthy,
		},
		"no observations": {1, nil, false, 0, "not observed: c1, c2, c3, c4, c5, and 995 more"},
	} {
		rule := gate.Criteria{Healthy: c.healthy, Soak: gate.Span(24 * time.Hour), Clusters: 10, Within: gate.Span(24 * time.Hour)}
		v := gate.Judge(rule, pin(1000), c.seen, noon())
		if v.Pass != c.pass || v.Healthy != c.good || v.Clusters != 1000 || all(v) != c.want {
			t.Errorf("%s: pass %t, good %d, %q; want %t, %d, %q", name, v.Pass, v.Healthy, all(v), c.pass, c.good, c.want)
		}
	}
}

// TestNumbers varies the required number and share of healthy clusters, up to more clusters than the pin has.
func TestNumbers(t *testing.T) {
	seen := []gate.Observation{good("c1", nil), good("c2", nil)}
	for _, c := range []struct {
		clusters, asked int
		healthy         gate.Share
		want            string
	}{
		{2, 2, 100_000, "healthy in 2 of 2 clusters"},
		{2, 3, 100_000, "healthy in 2 of 2 clusters; 100% required, at least 3; too few clusters: c1, c2"},
		{3, 3, 60_000, "healthy in 2 of 3 clusters; 60% required, at least 3; not observed: c3"},
		{3, 2, 66_666, "healthy in 2 of 3 clusters; not observed: c3"},
		{3, 2, 66_667, "healthy in 2 of 3 clusters; 66.667% required, at least 2; not observed: c3"},
		{0, 1, 100_000, "not installed in any cluster"},
	} {
		rule := gate.DefaultCriteria()
		rule.Healthy, rule.Clusters = c.healthy, c.asked
		v := gate.Judge(rule, pin(c.clusters), seen, noon())
		if got := v.Text(rule, ""); got != c.want || v.Pass == (strings.Contains(got, " required, ") || c.clusters == 0) {
			t.Errorf("%d of %d: pass %t, %s, want %s", c.asked, c.clusters, v.Pass, got, c.want)
		}
	}
}

// TestEvidence forges the observation of one of two clusters. The rule requires identified and signed
// observations. Each forged observation is judged alone, and together with an observation of a blocked upgrade.
func TestEvidence(t *testing.T) {
	rule := gate.Criteria{Healthy: 100_000, Soak: gate.Span(4 * time.Hour), Clusters: 1, Within: gate.Span(6 * time.Hour), Identified: true, Signed: true}
	full := func(cluster, uid string, edit func(o *gate.Observation)) gate.Observation {
		o := good(cluster, func(o *gate.Observation) { o.Environment, o.ClusterUID = "dev", uid })
		edit(&o)
		return o
	}
	second := full("c2", "u2", func(*gate.Observation) {})
	refuses := full("c1", "u1", func(o *gate.Observation) { o.Upgradeable, o.At, o.Since = "False", hours(-2), time.Time{} })
	p := pin(2)
	p.Environment = "dev"
	for name, c := range map[string]struct {
		forge func(o *gate.Observation)
		want  string // the reasons; none: it passes
	}{
		"nothing":             {func(*gate.Observation) {}, ""},
		"no environment":      {func(o *gate.Observation) { o.Environment = "" }, "unidentified observation: c1 (no environment)"},
		"no UID":              {func(o *gate.Observation) { o.ClusterUID = "" }, "unidentified observation: c1 (no UID of kube-system)"},
		"another environment": {func(o *gate.Observation) { o.Environment = "lab" }, "not observed: c1"},
		"not signed":          {func(o *gate.Observation) { o.Unsigned = "no signature" }, "unsigned observation: c1 (no signature)"},
		"a year old":          {func(o *gate.Observation) { o.At = o.At.AddDate(-1, 0, 0) }, "observation too old: c1 (at 2025-11-22T11:00:00Z)"},
		"undated":             {func(o *gate.Observation) { o.At = time.Time{} }, "observation too old: c1 (no observation time)"},
		"future":              {func(o *gate.Observation) { o.At = hours(1) }, "not observed: c1"},
		"another cluster":     {func(o *gate.Observation) { o.ClusterUID = "u2" }, "observation of another cluster: c2 (has the UID of c1)"},
		"another Upgradeable": {func(o *gate.Observation) { o.Upgradeable = "" }, ""},
	} {
		forged := full("c1", "u1", c.forge)
		if v := gate.Judge(rule, p, []gate.Observation{forged, second}, noon()); all(v) != c.want || v.Pass != (c.want == "") {
			t.Errorf("%s: pass %t, %q, want %q", name, v.Pass, all(v), c.want)
		}
		v := gate.Judge(rule, p, []gate.Observation{refuses, forged, second}, noon())
		if hidden := !strings.Contains(all(v), "upgrade blocked by the operator: c1"); hidden != (name == "nothing") {
			t.Errorf("%s: the blocked upgrade is hidden: %t, %q", name, hidden, all(v))
		}
	}
	rebuilt := full("c1", "u3", func(o *gate.Observation) { o.At, o.Since = noon(), time.Time{} })
	v := gate.Judge(rule, p, []gate.Observation{full("c1", "u1", func(*gate.Observation) {}), rebuilt, second}, noon())
	if want := "healthy for too short a time: c1 (since 2026-11-22T12:00:00Z)"; v.Pass || all(v) != want {
		t.Errorf("another cluster of that name: %q, want %q", all(v), want)
	}
	unsigned := full("c1", "u1", func(o *gate.Observation) { o.Unsigned = "no signature" })
	signed := full("c1", "u1", func(o *gate.Observation) { o.At, o.Since = noon(), time.Time{} })
	if v := gate.Judge(rule, p, []gate.Observation{unsigned, signed, second}, noon()); v.Pass {
		t.Errorf("an unsigned observation counts for the soak time: %q", all(v))
	}
}

// TestLeft judges observations of a cluster that is no longer in the environment.
func TestLeft(t *testing.T) {
	p := pin(1)
	p.Environment = "dev"
	for name, c := range map[string]struct {
		edit func(o *gate.Observation)
		want string
		pass bool
	}{
		"healthy":                 {func(*gate.Observation) {}, "observed with the operator, but no longer gets it: c2", true},
		"unhealthy":               {func(o *gate.Observation) { o.Healthy, o.Message = false, "no pods" }, "observed with the operator, but no longer gets it: c2 (unhealthy: no pods)", false},
		"not upgradeable":         {func(o *gate.Observation) { o.Upgradeable = "False" }, "observed with the operator, but no longer gets it: c2 (Upgradeable=False)", false},
		"undated, unupgradeable":  {func(o *gate.Observation) { o.At, o.Upgradeable = time.Time{}, "False" }, "observed with the operator, but no longer gets it: c2 (Upgradeable=False)", false},
		"before it began":         {func(o *gate.Observation) { o.At, o.Upgradeable = hours(-300), "False" }, "", true},
		"of another environment":  {func(o *gate.Observation) { o.Environment, o.Upgradeable = "lab", "False" }, "", true},
		"of no known environment": {func(o *gate.Observation) { o.Environment, o.Upgradeable = "", "False" }, "", true},
	} {
		seen := []gate.Observation{good("c1", nil), good("c2", func(o *gate.Observation) { o.Environment = "dev"; c.edit(o) })}
		if v := gate.Judge(gate.DefaultCriteria(), p, seen, noon()); all(v) != c.want || v.Pass != c.pass {
			t.Errorf("%s: pass %t, %q, want %q", name, v.Pass, all(v), c.want)
		}
	}
}
