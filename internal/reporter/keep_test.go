package reporter

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

func configMaps() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

// fakeServer simulates the watches of one kind in an API server.
type fakeServer struct {
	mu     sync.Mutex
	answer error          // the result of opening a watch; nil: permitted
	open   watchCallbacks // of the watch that runs

	opened, closed, settled atomic.Int32 // how often
}

// setAnswer sets the result of all following requests.
func (s *fakeServer) setAnswer(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = err
}

// fault reports an error to the open watch.
func (s *fakeServer) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.fault(err)
}

func (s *fakeServer) opener(ctx context.Context, _ schema.GroupVersionKind, o watchCallbacks) (store, error) {
	s.opened.Add(1)
	context.AfterFunc(ctx, func() { s.closed.Add(1) })
	done := make(chan struct{})
	s.mu.Lock()
	answer := s.answer
	s.open = o
	s.mu.Unlock()
	if answer == nil {
		close(done)
	} else {
		o.fault(answer)
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

// runWatches runs watches of s with fake time (testing/synctest), and with one Installation that expects
// ConfigMaps.
func runWatches(t *testing.T, s *fakeServer, test func(w *watches)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatches(s.opener, func(schema.GroupVersionKind) { s.settled.Add(1) }, func(schema.GroupVersionKind, types.NamespacedName) {}, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			_ = w.run(ctx)
			close(done)
		}()
		w.acquire([]schema.GroupVersionKind{configMaps()})
		synctest.Wait()
		test(w)
		cancel()
		<-done
	})
}

// observed returns the observation of one ConfigMap. It returns false while the watch of ConfigMaps is starting.
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

func TestForbiddenIsReportedAfterDelay(t *testing.T) {
	s := &fakeServer{answer: forbidden()}
	runWatches(t, s, func(w *watches) {
		if _, ok := observed(t, w); ok || len(w.starting(0)) != 1 {
			t.Error("the first refusal is reported")
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != v1alpha1.ReasonForbidden || s.settled.Load() != 1 {
			t.Errorf("after 4 s: %+v, %v, settled %d times", o, ok, s.settled.Load())
		}
		before := s.opened.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := s.opened.Load() - before; asked > 20 || asked < 10 {
			t.Errorf("%d watches were opened in an hour", asked)
		}
		if s.settled.Load() != 1 {
			t.Errorf("settled %d times, want 1", s.settled.Load())
		}
		s.setAnswer(nil)
		w.retry(func(schema.GroupVersionKind) bool { return true })
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" || o.Object == nil || s.settled.Load() != 2 {
			t.Errorf("once permitted: %+v, %v, settled %d times", o, ok, s.settled.Load())
		}
	})
	if s.closed.Load() != s.opened.Load() {
		t.Errorf("%d watches were opened, %d closed", s.opened.Load(), s.closed.Load())
	}
}

func TestBriefRefusalIsNoVerdict(t *testing.T) {
	s := &fakeServer{}
	runWatches(t, s, func(w *watches) {
		s.setAnswer(forbidden())
		s.fault(forbidden()) // the server is starting, and briefly refuses requests
		synctest.Wait()
		if _, ok := observed(t, w); ok {
			t.Error("the previous observation is still returned")
		}
		s.setAnswer(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" {
			t.Errorf("after the refusal: %+v, %v", o, ok)
		}
	})
}

func TestResumingWatchIsNotRestarted(t *testing.T) {
	s := &fakeServer{}
	runWatches(t, s, func(w *watches) {
		for _, err := range []error{
			errors.New("connection refused"), apierrors.NewResourceExpired("too old"), apierrors.NewTooManyRequests("busy", 1),
			apierrors.NewUnauthorized("token"), apierrors.NewTimeoutError("slow", 1),
		} {
			s.fault(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if o, ok := observed(t, w); !ok || o.Reason != "" || s.opened.Load() != 1 || s.settled.Load() != 1 {
			t.Errorf("%+v, %v, opened %d times, settled %d times", o, ok, s.opened.Load(), s.settled.Load())
		}
	})
}

func TestUnusedWatchIsClosed(t *testing.T) {
	s := &fakeServer{}
	runWatches(t, s, func(w *watches) {
		kinds := []schema.GroupVersionKind{configMaps()}
		w.acquire(kinds)
		w.release(kinds)
		synctest.Wait()
		if s.closed.Load() != 0 {
			t.Error("the watch was closed while still in use")
		}
		w.release(kinds)
		synctest.Wait()
		if s.closed.Load() != 1 || w.countByState()[stateWatched] != 0 {
			t.Errorf("closed %d times, states %v", s.closed.Load(), w.countByState())
		}
		w.acquire(kinds)
		synctest.Wait()
		if s.opened.Load() != 2 || w.countByState()[stateWatched] != 1 {
			t.Errorf("acquired again: opened %d times, states %v", s.opened.Load(), w.countByState())
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
			var row failureStreak
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

func TestCountByStateListsAllStates(t *testing.T) {
	w := newWatches(nil, nil, nil, logr.Discard())
	want := []string{v1alpha1.ReasonError, v1alpha1.ReasonForbidden, v1alpha1.ReasonNoKind, stateStarting, stateWatched}
	if got := slices.Sorted(maps.Keys(w.countByState())); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
