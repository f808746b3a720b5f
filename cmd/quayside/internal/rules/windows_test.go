package rules

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// TestWindows checks changes of a lock against windows and freezes, with severities, override reasons, and a policy.
func TestWindows(t *testing.T) {
	pin := func(pkg, version, reason string) lockfile.Pin {
		return lockfile.Pin{Namespace: "ops", Package: pkg, Version: version, Bundle: pkg + ".v" + version, OutsideWindow: reason}
	}
	before := lockfile.New([]lockfile.Pin{pin("down", "1.1.0", ""), pin("gone", "1.0.0", ""), pin("same", "1.0.0", ""), pin("up", "1.0.0", ""), pin("urgent", "1.0.0", "")})
	after := lockfile.New([]lockfile.Pin{pin("down", "1.0.0", ""), pin("new", "1.0.0", ""), pin("same", "1.0.0", "r"), pin("up", "1.1.0", ""), pin("urgent", "1.1.0", "CVE")})
	const frozen = "  freeze: {until: \"2027-01-04T00:00:00Z\", reason: holidays}\n"
	const night = "  windows: [{kind: allow, schedule: \"0 22 * * *\", duration: 1h, severities: [high]}]\n"
	const until, closed = "may be merged from 2027-01-04 00:00 UTC: frozen (holidays) [outside-window]", "may be merged from 2026-12-01 22:00 UTC: spec.windows[0] is closed [outside-window]"
	for name, c := range map[string]struct {
		spec       string
		severities map[string]string
		want       string
		may        bool
	}{
		"none": {spec: "  follows: dev\n", may: true},
		"freeze": {spec: frozen, want: "windows warning quayside.yaml:5:11 ops/gone " + until + "\nwindows warning quayside.yaml:5:11 ops/new " + until +
			"\nwindows warning quayside.yaml:5:11 ops/up " + until + "\nwindows warning quayside.yaml:5:11 ops/urgent is changed outside of its windows: CVE [outside-window]\n"},
		"error by policy": {
			spec: frozen + "  policy: {severity: {outside-window: critical}, waivers: [{rule: outside-window, object: ops/gone, reason: r, expires: 2027-01-01}, {rule: outside-window, object: ops/new, reason: r, expires: 2026-11-30}]}\n",
			want: "windows error quayside.yaml:5:11 ops/gone " + until + " (waived)\nwindows error quayside.yaml:5:11 ops/new " + until +
				"\nwindows error quayside.yaml:5:11 ops/up " + until + "\nwindows warning quayside.yaml:5:11 ops/urgent is changed outside of its windows: CVE [outside-window]\n",
		},
		"unknown severities": {spec: night, want: "windows warning quayside.yaml:5:13 ops/gone " + closed + "\nwindows warning quayside.yaml:5:13 ops/new " + closed +
			"\nwindows warning quayside.yaml:5:13 ops/up " + closed + "\nwindows warning quayside.yaml:5:13 ops/urgent is changed outside of its windows: CVE [outside-window]\n"},
		"severities":     {spec: night, severities: map[string]string{"ops/up": "high", "ops/new": "medium"}, want: "windows warning quayside.yaml:5:13 ops/up " + closed + "\n"},
		"low severities": {spec: night, severities: map[string]string{"ops/up": "low"}, may: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{
				Dir: "prod", Settings: parseSettings(t, c.spec), Lock: after, Merged: before, Severities: c.severities,
				Today: "2026-12-01", Now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC),
			}
			found, err := Evaluate(s, Windows)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, list(found)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if got := MergeWindow(s); got.May != c.may {
				t.Errorf("may be merged: %v", got.May)
			}
		})
	}
}
