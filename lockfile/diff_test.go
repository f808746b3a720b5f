package lockfile_test

import (
	"testing"

	"github.com/quayside/quayside/lockfile"
)

// TestMoves checks that a change of a pin is Moved only if the name or the version of its bundle differs.
func TestMoves(t *testing.T) {
	was := lockfile.Pin{Namespace: "ops", Package: "a", Bundle: "a.v1", Version: "1.0.0"}
	for name, tt := range map[string]struct {
		now  lockfile.Pin
		want lockfile.ChangeKind
	}{
		"bundle":  {lockfile.Pin{Namespace: "ops", Package: "a", Bundle: "a-v1", Version: "1.0.0"}, lockfile.Moved},
		"version": {lockfile.Pin{Namespace: "ops", Package: "a", Bundle: "a.v1", Version: "1.0.1"}, lockfile.Moved},
		"image":   {lockfile.Pin{Namespace: "ops", Package: "a", Bundle: "a.v1", Version: "1.0.0", Image: "quay.io/a:1"}, lockfile.Changed},
	} {
		got := lockfile.Diff(lockfile.New([]lockfile.Pin{was}), lockfile.New([]lockfile.Pin{tt.now}))
		if len(got) != 1 || got[0].Kind != tt.want || got[0].From != "1.0.0" || got[0].To != tt.now.Version {
			t.Errorf("%s: %+v, want one change of kind %s", name, got, tt.want)
		}
	}
}
