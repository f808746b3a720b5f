package diff

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// TestLifecycles compares pins whose catalogs contain support periods, on 2026-06-01.
func TestLifecycles(t *testing.T) {
	stated := map[string]*catalog.SupportedVersion{} // lifecycles by image
	pin := func(version string, of *catalog.SupportedVersion) []lockfile.Pin {
		image := fmt.Sprintf("q/d@sha256:%d", len(stated))
		stated[image] = of
		return []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: version, Bundle: "demo.v" + version, Image: image}}
	}
	until := func(name, end string, openshift ...string) *catalog.SupportedVersion {
		v := &catalog.SupportedVersion{Name: name, Phases: []catalog.SupportPhase{{Name: "Full support", Start: "2025-01-01", End: "2025-12-31"}, {Name: "Maintenance support", Start: "2026-01-01", End: end}}}
		for _, o := range openshift {
			v.Platforms = append(v.Platforms, catalog.SupportedPlatform{Name: catalog.OpenShift, Version: o})
		}
		return v
	}
	const today = "2026-06-01"
	ended, soonEnds, good := until("1.1", "2026-05-31"), until("1.2", "2026-08-29"), until("1.3", "2026-08-30")
	for _, c := range []struct {
		name           string
		before, after  []lockfile.Pin
		old, openshift string
		today          string
		want           []string
		notes          int
	}{
		{"installed after its end", nil, pin("1.1.0", ended), "", "", today, []string{"high lifecycle.end-of-life support: - → ended 2026-05-31"}, 0},
		{"on its last day", nil, pin("1.1.0", ended), "", "", "2026-05-31", []string{"low lifecycle.ends-soon support: - → 2026-05-31 (Maintenance support)"}, 0},
		{"without the current date", nil, pin("1.1.0", ended), "", "", "", nil, 0},
		{"from unknown to ended", pin("1.0.0", nil), pin("1.1.0", ended), "", "", today, []string{"high lifecycle.end-of-life support: - → ended 2026-05-31"}, 0},
		{"from supported to ended", pin("1.2.0", soonEnds), pin("1.1.0", ended), "", "", today, []string{"high lifecycle.end-of-life support: 2026-08-29 (Maintenance support) → ended 2026-05-31"}, 0},
		{"from ended to ended", pin("1.0.0", until("1.0", "2026-03-31")), pin("1.1.0", ended), "", "", today, []string{"medium lifecycle.end-of-life support: ended 2026-03-31 → ended 2026-05-31"}, 0},
		{"within an ended version", pin("1.1.0", ended), pin("1.1.1", ended), "", "", today, []string{"medium lifecycle.end-of-life support: ended 2026-05-31 → ended 2026-05-31"}, 0},
		{"unchanged version", pin("1.1.0", ended), pin("1.1.0", ended), "", "", today, nil, 0},
		{"support becomes unknown", pin("1.1.0", ended), pin("1.1.0", nil), "", "", today, nil, 0},
		{"upgrade to unknown support", pin("1.1.0", ended), pin("1.2.0", nil), "", "", today, nil, 0},
		{"ends soon", pin("1.1.0", until("1.1", "2027-01-31")), pin("1.2.0", soonEnds), "", "", today, []string{"low lifecycle.ends-soon support: 2027-01-31 (Maintenance support) → 2026-08-29 (Maintenance support)"}, 0},
		{"ends in 90 days", pin("1.2.0", soonEnds), pin("1.3.0", good), "", "", today, nil, 0},
		{"supported again", pin("1.1.0", ended), pin("1.3.0", good), "", "", today, []string{"info lifecycle.supported support: ended 2026-05-31 → 2026-08-30 (Maintenance support)"}, 0},
		{"support not begun", nil, pin("1.3.0", good), "", "", "2024-01-01", nil, 0},
		{"fits", nil, pin("1.3.0", until("1.3", "2027-05-31", "4.18", "4.20")), "", "4.20.3", today, nil, 0},
		{"unsupported platform", nil, pin("1.3.0", until("1.3", "2027-05-31", "4.18", "4.20")), "", "4.19", today, []string{"high lifecycle.platform openshift: - → 4.18, 4.20"}, 0},
		{"platform still unsupported", pin("1.2.0", until("1.2", "2027-05-31", "4.16")), pin("1.3.0", until("1.3", "2027-05-31", "4.18")), "4.19", "4.19", today, []string{"medium lifecycle.platform openshift: 4.16 → 4.18"}, 0},
		{"did not fit before, unchanged", pin("1.2.0", until("1.2", "2027-05-31", "4.16")), pin("1.2.0", until("1.2", "2027-05-31", "4.16")), "4.19", "4.19", today, nil, 0},
		{"OpenShift upgraded", pin("1.2.0", until("1.2", "2027-05-31", "4.18")), pin("1.2.0", until("1.2", "2027-05-31", "4.18")), "4.18", "4.19", today, []string{"high lifecycle.platform openshift: 4.18 → 4.18"}, 0},
		{"platforms unknown", nil, pin("1.3.0", good), "", "4.19", today, nil, 0},
		{"no OpenShift", nil, pin("1.3.0", until("1.3", "2027-05-31", "4.18")), "", "", today, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Compare(State{Pins: c.before, OpenShiftVersion: c.old}, State{Pins: c.after, OpenShiftVersion: c.openshift}, CompareOptions{
				Today: c.today, Lifecycle: func(p lockfile.Pin) *catalog.SupportedVersion { return stated[p.Image] },
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, line := range lines(r) {
				if r.Findings[i].Family() == "lifecycle" {
					got = append(got, line)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if n := len(r.Notes); n != c.notes+1 { // there is always a note about the Kubernetes version
				t.Errorf("notes: %q", r.Notes)
			}
		})
	}
}
