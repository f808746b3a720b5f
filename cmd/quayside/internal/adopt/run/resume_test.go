package run_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// killed is the panic value that simulates a kill of the program.
type killed struct{}

// untilKilled runs a plan, and reports whether the run was killed.
func (s *scene) untilKilled(t testing.TB) (err error, dead bool) { //nolint:revive // the error is that of the run
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	_, err = s.run(t, nil)
	return err, false
}

// killAfter kills the program at the nth write, to the cluster or to a file. If taken is false, the request is
// not sent. If taken is true, it is executed, but the response is lost.
func (s *scene) killAfter(n int, taken bool) {
	left := n
	count := func() {
		left--
		if left == 0 {
			panic(killed{})
		}
	}
	s.cluster.Before, s.cluster.After, s.files.Before = nil, nil, nil
	if n == 0 {
		return
	}
	hook := func(c runtest.Call) error {
		if c.Writes() {
			count()
		}
		return nil
	}
	if taken {
		s.cluster.After = hook
	} else {
		s.cluster.Before = hook
	}
	s.files.Before = func(string) error { count(); return nil }
}

// countEvents returns for each object the number of events of the kind what. It ignores the namespace olm.
func countEvents(events []runtest.Event, what string) map[k8s.Key]int {
	out := map[k8s.Key]int{}
	for _, e := range events {
		if e.What == what && e.Key.Namespace != "olm" {
			out[e.Key]++
		}
	}
	return out
}

// TestKilledAnywhere repeatedly kills a run after a random number of requests and writes. The final cluster
// must equal that of a run without kills. No object may be deleted or created twice.
func TestKilledAnywhere(t *testing.T) {
	whole := newScene(t)
	if _, err := whole.run(t, nil); err != nil {
		t.Fatal(err)
	}
	want, wanted := state(whole.cluster), whole.cluster.Events()
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		var events []runtest.Event
		for {
			s.killAfter(rapid.IntRange(0, 40).Draw(rt, "requests"), rapid.Bool().Draw(rt, "taken"))
			err, dead := s.untilKilled(t)
			events = append(events, s.cluster.Events()...)
			if err != nil {
				rt.Fatal(err)
			}
			if !dead {
				break
			}
			if rapid.Bool().Draw(rt, "time passes") {
				s.cluster.Settle()
			}
		}
		if d := cmp.Diff(want, state(s.cluster)); d != "" {
			rt.Fatalf("another cluster (-want +got):\n%s", d)
		}
		for _, what := range []string{"deleted", "created"} {
			if d := cmp.Diff(countEvents(wanted, what), countEvents(events, what)); d != "" {
				rt.Fatalf("%s (-want +got):\n%s", what, d)
			}
		}
	})
}

// TestLostAnswers loses the response to a random request, or makes the server busy. The run must succeed
// without being started again.
func TestLostAnswers(t *testing.T) {
	whole := newScene(t)
	if _, err := whole.run(t, nil); err != nil {
		t.Fatal(err)
	}
	want := state(whole.cluster)
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		lost := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 6).Draw(rt, "lost")
		code := rapid.SampledFrom([]int{http.StatusTooManyRequests, http.StatusInternalServerError}).Draw(rt, "code")
		n := 0
		hook := func(c runtest.Call) error {
			if !c.Writes() {
				return nil
			}
			n++
			for _, l := range lost {
				if n == l {
					status := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "lost", 0, false)
					return &cluster.RequestError{Verb: c.Verb, Object: c.Object, Err: status}
				}
			}
			return nil
		}
		if code == http.StatusTooManyRequests || rapid.Bool().Draw(rt, "not taken") {
			s.cluster.Before = hook
		} else {
			s.cluster.After = hook
		}
		if _, err := s.run(t, nil); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(want, state(s.cluster)); d != "" {
			rt.Fatalf("another cluster (-want +got):\n%s", d)
		}
	})
}
