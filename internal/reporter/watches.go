package reporter

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// store contains the latest known objects of one kind.
type store interface {
	// synced returns a channel that is closed when the store contains all existing objects.
	synced() <-chan struct{}
	// object returns an object, or nil if it does not exist. The caller must not modify it.
	object(ctx context.Context, name types.NamespacedName) (map[string]any, error)
}

// watchCallbacks are called by a watch and must not block.
type watchCallbacks struct {
	changed func(types.NamespacedName) // called when an object is added, changed or deleted after the start
	fault   func(error)                // called when a request failed; the watch continues to retry
}

// openFunc starts a watch of a kind. The watch continues after interruptions, until ctx ends.
type openFunc func(ctx context.Context, kind schema.GroupVersionKind, o watchCallbacks) (store, error)

// watches runs one watch for every kind that an Installation lists. It is safe for concurrent use.
type watches struct {
	open          openFunc
	kindChanged   func(schema.GroupVersionKind)                       // called when a kind has been read or cannot be read any more
	objectChanged func(schema.GroupVersionKind, types.NamespacedName) // called when an object changed
	log           logr.Logger

	mu    sync.Mutex
	ctx   context.Context // context of the watches; nil before the start
	count int             // number of kinds that are watched or retried
	kinds map[schema.GroupVersionKind]*kindWatch
	wg    sync.WaitGroup
}

// kindWatch is the watch of one kind. It has one of three states: synced (objects
// is set), failed (reason is set), or starting (neither is set).
type kindWatch struct {
	users    int // number of Installations that list the kind
	cancel   context.CancelFunc
	retryNow chan struct{} // receives a value to retry at once

	objects         store
	reason, message string
	since           time.Time // time at which the kind started
}

func newWatches(open openFunc, kindChanged func(schema.GroupVersionKind), objectChanged func(schema.GroupVersionKind, types.NamespacedName), log logr.Logger) *watches {
	return &watches{open: open, kindChanged: kindChanged, objectChanged: objectChanged, log: log, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// run runs until ctx ends, and returns when all watches have ended.
func (w *watches) run(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for kind, k := range w.kinds {
		w.launch(kind, k)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.wg.Wait()
	return nil
}

// acquire adds one user to each of the kinds, and starts their watches if necessary.
func (w *watches) acquire(kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		k := w.kinds[kind]
		if k == nil {
			k = &kindWatch{retryNow: make(chan struct{}, 1), since: time.Now()}
			w.kinds[kind] = k
			w.launch(kind, k)
		}
		k.users++
	}
}

// release removes one user from each of the kinds. A watch without users ends.
func (w *watches) release(kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		k := w.kinds[kind]
		if k == nil {
			continue
		}
		if k.users--; k.users > 0 {
			continue
		}
		delete(w.kinds, kind)
		if k.cancel != nil {
			k.cancel()
			w.count--
		}
		w.log.Info("no longer watching", "kind", kind.String())
	}
	for kind, k := range w.kinds { // start kinds that exceeded the limit before
		if k.cancel == nil && w.count < maxKinds {
			k.since = time.Now()
			w.launch(kind, k)
		}
	}
}

// maxKinds is the maximum number of watched kinds. The Installations of operators list some dozens, but a user
// can write an Installation with any number.
const maxKinds = 300

const tooManyKinds = "more kinds than the reporter's limit"

// launch starts the watch of a kind after run was called. If there are maxKinds watches, it records an error instead.
func (w *watches) launch(kind schema.GroupVersionKind, k *kindWatch) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	if w.count >= maxKinds {
		k.reason, k.message = v1alpha1.ReasonError, tooManyKinds
		return
	}
	w.count++
	k.reason, k.message = "", ""
	ctx, cancel := context.WithCancel(w.ctx)
	k.cancel = cancel
	w.wg.Go(func() {
		defer cancel()
		w.watchKind(ctx, kind, k)
	})
}

// retry retries, at once, every unread kind for which which(kind) is true.
func (w *watches) retry(which func(schema.GroupVersionKind) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, k := range w.kinds {
		if k.objects == nil && which(kind) {
			select {
			case k.retryNow <- struct{}{}:
			default:
			}
		}
	}
}

// missingMessage is the message for a missing object. It mentions the label, because the reporter does not
// watch objects without this label.
const missingMessage = "it does not exist, or does not have the label " + k8s.LabelPackage

// observe returns one observation for each of the objects, in the same order. It returns false while the watch
// of one of their kinds is starting.
func (w *watches) observe(ctx context.Context, objects []v1alpha1.ObjectReference) ([]v1alpha1.Observed, bool, error) {
	kinds := w.snapshot()
	out := make([]v1alpha1.Observed, 0, len(objects))
	for _, ref := range objects {
		k, ok := kinds[kindOf(ref)]
		if !ok || k.objects == nil && k.reason == "" {
			return nil, false, nil
		}
		o := v1alpha1.Observed{Ref: ref, Reason: k.reason, Message: k.message}
		if k.objects != nil {
			var err error
			if o.Object, err = k.objects.object(ctx, nameOf(ref)); err != nil {
				return nil, false, err
			}
			if o.Object == nil {
				o.Message = missingMessage
			}
		}
		out = append(out, o)
	}
	return out, true, nil
}

func (w *watches) snapshot() map[schema.GroupVersionKind]kindWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[schema.GroupVersionKind]kindWatch, len(w.kinds))
	for kind, k := range w.kinds {
		out[kind] = *k
	}
	return out
}

// States of a kind in metrics. For a kind that cannot be read, the state is the reason.
const (
	stateWatched  = "Watched"
	stateStarting = "Starting"
)

// countByState returns the number of kinds by state.
func (w *watches) countByState() map[string]int {
	out := map[string]int{stateWatched: 0, stateStarting: 0, v1alpha1.ReasonForbidden: 0, v1alpha1.ReasonNoKind: 0, v1alpha1.ReasonError: 0}
	for _, k := range w.snapshot() {
		switch {
		case k.objects != nil:
			out[stateWatched]++
		case k.reason != "":
			out[k.reason]++
		default:
			out[stateStarting]++
		}
	}
	return out
}

// starting returns the kinds whose watches have been starting for at least grace.
func (w *watches) starting(grace time.Duration) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for kind, k := range w.snapshot() {
		if k.objects == nil && k.reason == "" && time.Since(k.since) >= grace {
			out = append(out, kind)
		}
	}
	return out
}
