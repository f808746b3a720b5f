package workspace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// TestSeveralObserved combines the observations of one operator in several clusters. All of them together
// decide whether the operator is held back, and whether leftover objects of the replaced operator are removed.
func TestSeveralObserved(t *testing.T) {
	pin := lockfile.Pin{Namespace: "ops", Package: "demo", Version: "1.0.0", Bundle: "demo.v1.0.0", Image: "q/d@sha256:" + strings.Repeat("0", 64)}
	observe := func(state health.State, pkg string, pin catalog.Digest, upgradeable metav1.ConditionStatus) *health.Summary {
		o := health.OperatorHealth{Namespace: "ops", Package: pkg, Pin: pin, State: state, Applied: []string{"1.0.0"}, Upgradeable: upgradeable}
		return &health.Summary{Operators: []health.OperatorHealth{o}}
	}
	ready := observe(health.StateReady, "demo", pin.Checksum(), "")
	behind := observe(health.StateReady, "demo", catalog.Digest("sha256:"+strings.Repeat("1", 64)), "")
	failing := observe(health.StateFailed, "demo", pin.Checksum(), "")
	refuses := observe(health.StateReady, "demo", pin.Checksum(), metav1.ConditionFalse)
	other := observe(health.StateFailed, "other", pin.Checksum(), "")
	empty := &health.Summary{}
	old := observe(health.StateReady, "demo", pin.Checksum(), "")
	old.Problem = "observation too old"
	for _, c := range []struct {
		name    string
		files   []*health.Summary
		settled bool
		held    bool
	}{
		{"nothing was seen", nil, false, false},
		{"ready", []*health.Summary{ready}, true, false},
		{"both ready", []*health.Summary{ready, ready}, true, false},
		{"ready, then not", []*health.Summary{ready, failing}, false, true},
		{"not, then ready", []*health.Summary{failing, ready}, false, true},
		{"ready with another pin", []*health.Summary{ready, behind}, false, true},
		{"one says that it must not be upgraded", []*health.Summary{ready, refuses}, true, true},
		{"ready, and no evidence", []*health.Summary{old}, false, true},
		{"ready, and one is no evidence", []*health.Summary{ready, old}, false, true},
		{"one does not name it", []*health.Summary{ready, empty}, true, false},
		{"one names another", []*health.Summary{other, ready}, true, false},
		{"none names it", []*health.Summary{empty, other}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pr := &workspace.Problem{Read: lockfile.New([]lockfile.Pin{pin})}
			var settled []string
			if c.settled {
				settled = []string{"ops/demo"}
			}
			if d := cmp.Diff(settled, pr.AllowRemovals(c.files, false).Options.Settled); d != "" {
				t.Errorf("settled: -want +got\n%s", d)
			}
			if held, err := pr.HoldBack(c.files...); err != nil || (len(held.Options.Held) == 1) != c.held {
				t.Errorf("held: %+v, want %t, %v", held, c.held, err)
			}

			asked := &workspace.Problem{Read: pr.Read, Options: resolve.Options{Named: []resolve.Target{{Namespace: "ops", Package: "demo"}}}}
			var refused *rules.PolicyError
			if _, err := asked.HoldBack(c.files...); errors.As(err, &refused) != c.held {
				t.Errorf("asked for by name: %v", err)
			}

			if all := pr.AllowRemovals(c.files, true).Options.Settled; len(all) == 0 || all[0] != "*" {
				t.Errorf("a person says that all run: %q", all)
			}
		})
	}
}
