package reporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

// emptyStore is a synced store without objects.
type emptyStore struct{ done chan struct{} }

func (n emptyStore) synced() <-chan struct{} { return n.done }

func (emptyStore) object(context.Context, types.NamespacedName) (map[string]any, error) {
	return nil, nil
}

// startWatches returns running watches of kinds without objects.
func startWatches(t *testing.T) *watches {
	t.Helper()
	open := func(context.Context, schema.GroupVersionKind, watchCallbacks) (store, error) {
		n := emptyStore{make(chan struct{})}
		close(n.done)
		return n, nil
	}
	w := newWatches(open, func(schema.GroupVersionKind) {}, func(schema.GroupVersionKind, types.NamespacedName) {}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ctx != nil })
	return w
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timeout")
		}
	}
}

// TestKindsAreBounded acquires more kinds than maxKinds. The excess kinds must report an error. They must be
// watched after the same number of other kinds is released.
func TestKindsAreBounded(t *testing.T) {
	const beyond = 7
	var kinds []schema.GroupVersionKind
	for i := range maxKinds + beyond {
		kinds = append(kinds, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("K%d", i)})
	}
	w := startWatches(t)
	w.acquire(kinds)
	eventually(t, func() bool { return w.countByState()[stateWatched] == maxKinds })
	if got := w.countByState(); got[v1alpha1.ReasonError] != beyond || got[stateStarting] != 0 {
		t.Errorf("states: %v", got)
	}
	last := v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: kinds[len(kinds)-1].Kind, Name: "x"}
	got, all, err := w.observe(t.Context(), []v1alpha1.ObjectReference{last})
	if err != nil || !all || got[0].Reason != v1alpha1.ReasonError || got[0].Message != tooManyKinds {
		t.Errorf("above the limit: %+v, %v, %v", got, all, err)
	}
	w.release(kinds[:beyond])
	eventually(t, func() bool {
		return w.countByState()[stateWatched] == maxKinds && w.countByState()[v1alpha1.ReasonError] == 0
	})
	got, _, err = w.observe(t.Context(), []v1alpha1.ObjectReference{last})
	if err != nil || got[0].Reason != "" || got[0].Object != nil || got[0].Message != missingMessage {
		t.Errorf("after the release: %+v, %v", got, err)
	}
	w.release(kinds[beyond:])
	if w.count != 0 || len(w.kinds) != 0 {
		t.Errorf("%d watches of %d kinds remain", w.count, len(w.kinds))
	}
}
