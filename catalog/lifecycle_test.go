package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
)

func phases(days ...string) []catalog.SupportPhase {
	var out []catalog.SupportPhase
	for i := 0; i+1 < len(days); i += 2 {
		out = append(out, catalog.SupportPhase{Name: fmt.Sprintf("phase %d", i/2+1), Start: days[i], End: days[i+1]})
	}
	return out
}

// TestSupportOn checks the support on days in, before and after the phases.
func TestSupportOn(t *testing.T) {
	v := &catalog.SupportedVersion{Name: "1.2", Phases: phases("2025-01-01", "2025-06-30", "2025-07-01", "2026-02-28")}
	for _, c := range []struct{ day, want string }{
		{"2024-12-31", "upcoming  2026-02-28 (from 2025-01-01)"},
		{"2025-01-01", "supported phase 1 2026-02-28 (phase 1)"},
		{"2025-06-30", "supported phase 1 2026-02-28 (phase 1)"},
		{"2025-07-01", "supported phase 2 2026-02-28 (phase 2)"},
		{"2026-02-28", "supported phase 2 2026-02-28 (phase 2)"},
		{"2026-03-01", "endOfLife  ended 2026-02-28"},
	} {
		s := v.SupportOn(c.day)
		if got := fmt.Sprint(s.State, " ", s.Phase, " ", s); got != c.want {
			t.Errorf("%s: got %q, want %q", c.day, got, c.want)
		}
	}
	if s := (*catalog.SupportedVersion)(nil).SupportOn("2025-01-01"); s != nil || s.String() != "" {
		t.Errorf("no lifecycle: got %v", s)
	}
	if end, none := v.LastDay(), (*catalog.SupportedVersion)(nil).LastDay()+(&catalog.SupportedVersion{}).LastDay(); end != "2026-02-28" || none != "" {
		t.Errorf("last day %q, without phases %q", end, none)
	}
	if s := v.SupportOn("soon"); s != nil {
		t.Errorf("invalid day: got %v", s)
	}
}

func TestEndsWithin(t *testing.T) {
	v := &catalog.SupportedVersion{Name: "1.2", Phases: phases("2025-01-01", "2025-06-30")}
	for day, want := range map[string]bool{"2024-12-31": false, "2025-04-01": false, "2025-04-02": true, "2025-06-30": true, "2025-07-01": false} {
		if got := v.EndsWithin(day, 90); got != want {
			t.Errorf("%s: got %t, want %t", day, got, want)
		}
	}
}

func TestMinor(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "1.2", "4.20": "4.20", "1.2.0-rc.1+b": "1.2", "10.0.1": "10.0", "1.2-x": "1.2",
		"": "", "1": "", "v1.2.3": "", "01.2.0": "", "1.x": "", "1..2": "",
	} {
		if got := catalog.Minor(version); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	all := []catalog.SupportedVersion{{Name: "1.20"}, {Name: "1.2"}, {Name: "1.30"}}
	for version, want := range map[string]string{"1.2.9": "1.2", "1.20.0": "1.20", "1.3.0": "", "1.31.0": "", "one": ""} {
		got := ""
		if v := catalog.FindSupport(all, version); v != nil {
			got = v.Name
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}

func TestFits(t *testing.T) {
	v := &catalog.SupportedVersion{Platforms: []catalog.SupportedPlatform{{Name: "openshift", Version: "4.2"}, {Name: "openshift", Version: "4.16"}, {Name: "other", Version: "1.0"}}}
	for _, c := range []struct {
		v                 *catalog.SupportedVersion
		platform, version string
		said              []string
		fits              bool
	}{
		{v, "openshift", "4.16", []string{"4.2", "4.16"}, true},
		{v, "openshift", "4.16.3", []string{"4.2", "4.16"}, true},
		{v, "openshift", "4.20", []string{"4.2", "4.16"}, false},
		{v, "openshift", "4.1", []string{"4.2", "4.16"}, false},
		{v, "openshift", "4.10", []string{"4.2", "4.16"}, false},
		{v, "openshift", "1.0", []string{"4.2", "4.16"}, false},
		{v, "openshift", "", []string{"4.2", "4.16"}, true},
		{v, "third", "1.0", nil, true},
		{&catalog.SupportedVersion{}, "openshift", "4.16", nil, true},
		{nil, "openshift", "4.16", nil, true},
	} {
		said, fits := c.v.SupportsPlatform(c.platform, c.version)
		if d := cmp.Diff(c.said, said); d != "" || fits != c.fits {
			t.Errorf("%s %q: %t, want %t\n%s", c.platform, c.version, fits, c.fits, d)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		v    catalog.SupportedVersion
		want string
	}{
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02")}, ""},
		{catalog.SupportedVersion{Name: "1.2.3", Phases: phases("2024-01-01", "2024-02-29")}, "must be MAJOR.MINOR"},
		{catalog.SupportedVersion{Name: "1.2"}, "has no phase"},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2023-01-01", "2023-02-29")}, `day "2023-02-29"`},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-03-01", "2024-02-29")}, "the end must be later"},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-03-01", "2024-03-01")}, "the end must be later"},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-01-01", "2024-01-31", "2024-02-02", "2024-03-01")}, "expected 2024-02-01, the day after"},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-01-01", "2024-01-31", "2024-01-31", "2024-03-01")}, "expected 2024-02-01, the day after"},
		{catalog.SupportedVersion{Name: "1.2", Phases: phases("2024-01-01", "2024-01-31"), Platforms: []catalog.SupportedPlatform{{Name: "openshift", Version: "4"}}}, `version "4"`},
	} {
		err := check(&c.v)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: got %v, want %q", c.v, err, c.want)
		}
	}
}

// TestPhases checks that each day of a lifecycle without gaps is in exactly one phase, and that the phases are
// in order. A gap or overlap of one day must be a fault.
func TestPhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := catalog.SupportedVersion{Name: "1.2"}
		day := catalog.AddDays("2020-01-01", rapid.IntRange(0, 3000).Draw(t, "start"))
		first, total := day, 0
		for i := range rapid.IntRange(1, 5).Draw(t, "phases") {
			days := rapid.IntRange(3, 120).Draw(t, "days")
			v.Phases = append(v.Phases, catalog.SupportPhase{Name: string(rune('a' + i)), Start: day, End: catalog.AddDays(day, days-1)})
			day, total = catalog.AddDays(day, days), total+days
		}
		if err := check(&v); err != nil {
			t.Fatal(err)
		}
		last := ""
		for i := -2; i < total+2; i++ {
			day := catalog.AddDays(first, i)
			s := v.SupportOn(day)
			want := catalog.Supported
			switch {
			case i < 0:
				want = catalog.Upcoming
			case i >= total:
				want = catalog.Ended
			}
			if s.State != want || (s.Phase != "") != (want == catalog.Supported) {
				t.Fatalf("day %d of %d, %s: %+v", i, total, day, s)
			}
			if s.State == catalog.Supported {
				if s.Phase < last {
					t.Fatalf("%s: phase %s is after phase %s", day, s.Phase, last)
				}
				last = s.Phase
			}
			if soon := v.EndsWithin(day, 30); soon != (i >= 0 && i < total && total-i <= 30) {
				t.Fatalf("day %d of %d: ends within 30 days: %t", i, total, soon)
			}
		}
		if n := len(v.Phases); n > 1 {
			i, by := rapid.IntRange(1, n-1).Draw(t, "torn"), rapid.SampledFrom([]int{-1, 1}).Draw(t, "by")
			torn := catalog.SupportedVersion{Name: v.Name, Phases: slices.Clone(v.Phases)}
			torn.Phases[i].Start = catalog.AddDays(torn.Phases[i].Start, by)
			if check(&torn) == nil {
				t.Fatalf("a gap or overlap before phase %d is not detected", i)
			}
		}
	})
}

// check returns the faults of v: an invalid name, invalid phases or platforms, or a phase that does not
// begin on the day after the previous one ends.
func check(v *catalog.SupportedVersion) error {
	errs := []error{catalog.CheckMinor(v.Name)}
	if len(v.Phases) == 0 {
		errs = append(errs, fmt.Errorf("version %s has no phase", v.Name))
	}
	for i, p := range v.Phases {
		errs = append(errs, p.Check())
		if i > 0 {
			errs = append(errs, p.CheckFollows(v.Phases[i-1]))
		}
	}
	for _, p := range v.Platforms {
		errs = append(errs, catalog.CheckMinor(p.Version))
	}
	return errors.Join(errs...)
}
