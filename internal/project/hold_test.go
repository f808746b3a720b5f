package project_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
)

// TestSeveralObserved combines what was seen of one operator in several clusters:
// of a follower, for what is left of the one before, and of any, for whether it may
// move.
func TestSeveralObserved(t *testing.T) {
	pin := lockfile.Pin{Namespace: "ops", Package: "demo", Version: "1.0.0", Bundle: "demo.v1.0.0", Image: "q/d@sha256:" + strings.Repeat("0", 64)}
	seen := func(state report.State, pkg string, pin catalog.Digest, upgradeable metav1.ConditionStatus) *report.ObservedFile {
		o := report.ObservedOperator{Standing: report.Standing{Namespace: "ops", Package: pkg, Pin: pin, State: state, Applied: []string{"1.0.0"}, Upgradeable: upgradeable}}
		return &report.ObservedFile{Operators: []report.ObservedOperator{o}}
	}
	ready := seen(report.StateReady, "demo", pin.Checksum(), "")
	behind := seen(report.StateReady, "demo", catalog.Digest("sha256:"+strings.Repeat("1", 64)), "")
	failing := seen(report.StateFailed, "demo", pin.Checksum(), "")
	refuses := seen(report.StateReady, "demo", pin.Checksum(), metav1.ConditionFalse)
	other := seen(report.StateFailed, "other", pin.Checksum(), "")
	empty := &report.ObservedFile{}
	for _, c := range []struct {
		name    string
		files   []*report.ObservedFile
		settled bool
		held    bool
	}{
		{"nothing was seen", nil, false, false},
		{"ready", []*report.ObservedFile{ready}, true, false},
		{"both ready", []*report.ObservedFile{ready, ready}, true, false},
		{"ready, then not", []*report.ObservedFile{ready, failing}, false, true},
		{"not, then ready", []*report.ObservedFile{failing, ready}, false, true},
		{"ready with another pin", []*report.ObservedFile{ready, behind}, false, true},
		{"one says that it must not be upgraded", []*report.ObservedFile{ready, refuses}, true, true},
		{"one does not name it", []*report.ObservedFile{ready, empty}, true, false},
		{"one names another", []*report.ObservedFile{other, ready}, true, false},
		{"none names it", []*report.ObservedFile{empty, other}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &project.Inputs{Read: lockfile.New([]lockfile.Pin{pin})}
			in.Settle(c.files, false)
			var settled []string
			if c.settled {
				settled = []string{"ops/demo"}
			}
			if d := cmp.Diff(settled, in.Options.Settled); d != "" {
				t.Errorf("settled: -want +got\n%s", d)
			}
			if err := in.Hold(c.files...); err != nil || (len(in.Options.Held) == 1) != c.held {
				t.Errorf("held: %v, want %t, %v", in.Options.Held, c.held, err)
			}

			asked := &project.Inputs{Read: in.Read, Options: resolve.Options{Named: []resolve.Target{{Namespace: "ops", Package: "demo"}}}}
			var refused *project.PolicyError
			if err := asked.Hold(c.files...); errors.As(err, &refused) != c.held {
				t.Errorf("asked for by name: %v", err)
			}

			in = &project.Inputs{Read: in.Read}
			if in.Settle(c.files, true); len(in.Options.Settled) == 0 || in.Options.Settled[0] != "*" {
				t.Errorf("a person says that all run: %q", in.Options.Settled)
			}
		})
	}
}
