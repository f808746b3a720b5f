package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/lockfile"
)

// TestLifecycle fixes how the lock tells how long a version is supported, and
// that a lock which says nothing of it has no byte more.
func TestLifecycle(t *testing.T) {
	f := sample()
	before := string(lockfile.Format(f))
	f.Pins[1].Lifecycle = &lifecycle.Version{
		Name:   "1.2",
		Phases: []lifecycle.Phase{{Name: "Full support", Start: "2025-01-01", End: "2025-06-30"}, {Name: "Maintenance: the rest", Start: "2025-07-01", End: "2026-01-31"}},
		Platforms: []lifecycle.Platform{
			{Name: "openshift", Version: "4.18"}, {Name: "openshift", Version: "4.20"},
		},
	}
	text := string(lockfile.Format(f))
	const want = `  lifecycle:
    version: "1.2"
    phases:
    - {name: Full support, startDate: "2025-01-01", endDate: "2025-06-30"}
    - {name: "Maintenance: the rest", startDate: "2025-07-01", endDate: "2026-01-31"}
    platforms:
    - {name: openshift, version: "4.18"}
    - {name: openshift, version: "4.20"}
`
	if !strings.Contains(text, want) {
		t.Fatalf("got %s", text)
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if again := string(lockfile.Format(got)); again != text {
		t.Errorf("not canonical: %s", cmp.Diff(text, again))
	}
	changes := lockfile.Diff(sample(), got)
	if len(changes) != 1 || changes[0].Kind != lockfile.Changed || !cmp.Equal(changes[0].Fields, []string{"lifecycle"}) {
		t.Errorf("got %+v", changes)
	}
	f.Pins[1].Lifecycle = nil
	if after := string(lockfile.Format(f)); after != before {
		t.Errorf("without it: %s", cmp.Diff(before, after))
	}
	f.Pins[1].Lifecycle = &lifecycle.Version{Name: "1.2", Phases: []lifecycle.Phase{{Name: "Full support", Start: "2025-01-01", End: "2025-02-31"}}}
	if _, err := lockfile.Parse("quayside.lock", lockfile.Format(f)); err == nil || !strings.Contains(err.Error(), `lifecycle: day "2025-02-31"`) {
		t.Errorf("a day that there is not: %v", err)
	}
}
