package kube

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/report/v1alpha1"
)

func configMaps() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

// server plays an API server's watches of one kind.
type server struct {
	answer error // to whoever asks; nil: it may read
	opened []time.Time
	open   opening // of the watch that runs
	closed int
}

func (s *server) opener(ctx context.Context, _ schema.GroupVersionKind, o opening) (store, error) {
	s.opened, s.open = append(s.opened, time.Now()), o
	context.AfterFunc(ctx, func() { s.closed++ })
	done := make(chan struct{})
	if s.answer == nil {
		close(done)
	} else {
		o.fault(s.answer)
	}
	return fakeStore{done}, nil
}

type fakeStore struct{ done chan struct{} }

func (f fakeStore) synced() <-chan struct{} { return f.done }
func (f fakeStore) object(context.Context, types.NamespacedName) (map[string]any, error) {
	return map[string]any{"kind": "ConfigMap"}, nil
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
}

// run starts watches over s, in a bubble of its own time, with one Installation
// that wants ConfigMaps.
func run(t *testing.T, s *server, test func(w *watches, settled *int)) {
	synctest.Test(t, func(t *testing.T) {
		settled := 0
		w := newWatches(s.opener, func(schema.GroupVersionKind) { settled++ }, func(schema.GroupVersionKind, types.NamespacedName) {}, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			_ = w.run(ctx)
			close(done)
		}()
		w.acquire([]schema.GroupVersionKind{configMaps()})
		synctest.Wait()
		test(w, &settled)
		cancel()
		<-done
	})
}

// observed returns what is known of one ConfigMap; false: nothing yet.
func observed(t *testing.T, w *watches) (v1alpha1.Observed, bool) {
	t.Helper()
	got, ok, err := w.observe(t.Context(), []v1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return v1alpha1.Observed{}, false
	}
	return got[0], true
}

func TestForbiddenIsAVerdictAfterAWhile(t *testing.T) {
	s := &server{answer: forbidden()}
	run(t, s, func(w *watches, settled *int) {
		if _, ok := observed(t, w); ok || len(w.starting(0)) != 1 {
			t.Error("the first refusal is taken for the last word")
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != v1alpha1.ReasonForbidden || *settled != 1 {
			t.Errorf("after 4 s: %+v, %v, told %d times", o, ok, *settled)
		}
		before := len(s.opened)
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := len(s.opened) - before; asked > 20 || asked < 10 {
			t.Errorf("asked %d times in an hour", asked)
		}
		if *settled != 1 {
			t.Errorf("told %d times of the same", *settled)
		}
		s.answer = nil
		w.retry(func(schema.GroupVersionKind) bool { return true })
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" || o.Object == nil || *settled != 2 {
			t.Errorf("once permitted: %+v, %v, told %d times", o, ok, *settled)
		}
	})
	if s.closed != len(s.opened) {
		t.Errorf("%d watches were opened, %d closed", len(s.opened), s.closed)
	}
}

func TestBriefRefusalSaysNothing(t *testing.T) {
	s := &server{}
	run(t, s, func(w *watches, settled *int) {
		s.answer = forbidden()
		s.open.fault(forbidden()) // the server starts, and refuses for a moment
		synctest.Wait()
		if _, ok := observed(t, w); ok {
			t.Error("what was read before is still shown")
		}
		s.answer = nil
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" {
			t.Errorf("after it: %+v, %v", o, ok)
		}
	})
}

func TestWatchThatResumesIsLeftAlone(t *testing.T) {
	s := &server{}
	run(t, s, func(w *watches, settled *int) {
		for _, err := range []error{
			errors.New("connection refused"), apierrors.NewResourceExpired("too old"), apierrors.NewTooManyRequests("busy", 1),
			apierrors.NewUnauthorized("token"), apierrors.NewTimeoutError("slow", 1),
		} {
			s.open.fault(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" || len(s.opened) != 1 || *settled != 1 {
			t.Errorf("%+v, %v, opened %d times, told %d times", o, ok, len(s.opened), *settled)
		}
	})
}

func TestNobodyWantsIt(t *testing.T) {
	s := &server{}
	run(t, s, func(w *watches, _ *int) {
		kinds := []schema.GroupVersionKind{configMaps()}
		w.acquire(kinds)
		w.release(kinds)
		synctest.Wait()
		if s.closed != 0 {
			t.Error("one who wants it is left, and it is closed")
		}
		w.release(kinds)
		synctest.Wait()
		if s.closed != 1 || w.states()[stateWatched] != 0 {
			t.Errorf("closed %d times, states %v", s.closed, w.states())
		}
		w.acquire(kinds)
		synctest.Wait()
		if len(s.opened) != 2 || w.states()[stateWatched] != 1 {
			t.Errorf("wanted again: opened %d times, states %v", len(s.opened), w.states())
		}
	})
}

func TestVerdicts(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Beacon"}
	for name, c := range map[string]struct {
		err  error
		want string
		wait time.Duration
	}{
		"no such kind":       {&meta.NoKindMatchError{GroupKind: kind}, v1alpha1.ReasonNoKind, 3 * time.Second},
		"no such resource":   {apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true), v1alpha1.ReasonNoKind, 3 * time.Second},
		"forbidden":          {forbidden(), v1alpha1.ReasonForbidden, 3 * time.Second},
		"conversion fails":   {apierrors.NewInternalError(errors.New("conversion webhook")), v1alpha1.ReasonError, 15 * time.Second},
		"its server is away": {apierrors.NewServiceUnavailable("error trying to reach service"), v1alpha1.ReasonError, 15 * time.Second},
		"no connection":      {errors.New("connection refused"), "", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var row trouble
			began := time.Unix(1_000_000, 0)
			if v := row.add(c.err, began); v.reason != "" {
				t.Errorf("at once: %+v", v)
			}
			if v := row.add(c.err, began.Add(c.wait-time.Millisecond)); v.reason != "" {
				t.Errorf("too early: %+v", v)
			}
			if v := row.add(c.err, began.Add(c.wait)); v.reason != c.want {
				t.Errorf("got %+v, want %q", v, c.want)
			}
		})
	}
}

func TestStatesAreAllThere(t *testing.T) {
	w := newWatches(nil, nil, nil, logr.Discard())
	want := []string{v1alpha1.ReasonError, v1alpha1.ReasonForbidden, v1alpha1.ReasonNoKind, stateStarting, stateWatched}
	if got := slices.Sorted(maps.Keys(w.states())); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
