package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// store holds the objects of one kind, as they were seen last.
type store interface {
	// synced returns a channel that is closed once everything that was there at
	// the start is in the store.
	synced() <-chan struct{}
	// object returns an object, or nil where it is not there. The caller must
	// not modify it.
	object(ctx context.Context, name types.NamespacedName) (map[string]any, error)
}

// opening is whom a watch tells what. Neither may be kept waiting.
type opening struct {
	changed func(types.NamespacedName) // an object came, went or turned after the start
	fault   func(error)                // the answer to a request; the watch goes on trying
}

// opener starts to watch a kind. The watch ends with ctx, however often it
// breaks.
type opener func(ctx context.Context, kind schema.GroupVersionKind, o opening) (store, error)

// watches keeps one watch for every kind that is wanted. Its methods may be
// called from any goroutine.
type watches struct {
	open    opener
	settled func(schema.GroupVersionKind)                       // what is known of a kind has turned
	changed func(schema.GroupVersionKind, types.NamespacedName) // an object has
	log     logr.Logger

	mu    sync.Mutex
	ctx   context.Context // of everything that runs; nil before start
	count int             // kinds that are watched or tried
	kinds map[schema.GroupVersionKind]*kindWatch
	wg    sync.WaitGroup
}

// kindWatch is one kind. It is in one of three states: read (objects is set),
// refused (reason is set), or neither yet.
type kindWatch struct {
	wanted int // how many Installations want it
	cancel context.CancelFunc
	again  chan struct{} // try now, do not wait

	objects         store
	reason, message string
	since           time.Time // when it began to be neither
}

func newWatches(open opener, settled func(schema.GroupVersionKind), changed func(schema.GroupVersionKind, types.NamespacedName), log logr.Logger) *watches {
	return &watches{open: open, settled: settled, changed: changed, log: log, kinds: map[schema.GroupVersionKind]*kindWatch{}}
}

// run watches until ctx ends and returns once all watches have.
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

// acquire says that one Installation more wants each of the kinds.
func (w *watches) acquire(kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		k := w.kinds[kind]
		if k == nil {
			k = &kindWatch{again: make(chan struct{}, 1), since: time.Now()}
			w.kinds[kind] = k
			w.launch(kind, k)
		}
		k.wanted++
	}
}

// release takes back what acquire said. A kind that nobody wants any longer is
// no longer watched.
func (w *watches) release(kinds []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		k := w.kinds[kind]
		if k == nil {
			continue
		}
		if k.wanted--; k.wanted > 0 {
			continue
		}
		delete(w.kinds, kind)
		if k.cancel != nil {
			k.cancel()
			w.count--
		}
		w.log.Info("no longer watching", "kind", kind.String())
	}
	for kind, k := range w.kinds { // those for which there was no room
		if k.cancel == nil && w.count < maxKinds {
			k.since = time.Now()
			w.launch(kind, k)
		}
	}
}

// maxKinds bounds the kinds that are watched: what operators are made of is a
// few dozen, and an Installation can be written by hand.
const maxKinds = 300

const tooMany = "more kinds are expected than the reporter watches"

// launch starts to watch a kind, if anything is to run already and there are
// not too many.
func (w *watches) launch(kind schema.GroupVersionKind, k *kindWatch) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	if w.count >= maxKinds {
		k.reason, k.message = v1alpha1.ReasonError, tooMany
		return
	}
	w.count++
	k.reason, k.message = "", ""
	ctx, cancel := context.WithCancel(w.ctx)
	k.cancel = cancel
	w.wg.Go(func() {
		defer cancel()
		w.keep(ctx, kind, k)
	})
}

// retry asks again at once for those of the kinds that are not read.
func (w *watches) retry(which func(schema.GroupVersionKind) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, k := range w.kinds {
		if k.objects == nil && which(kind) {
			select {
			case k.again <- struct{}{}:
			default:
			}
		}
	}
}

// notSeen is what is said of an object that no watch shows, for watches see
// what bears the label only.
const notSeen = "it does not exist, or not with the label " + kobj.LabelPackage

// observe returns what is known of the objects, in their order. It returns
// false while a kind among them is still to be read.
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
				o.Message = notSeen
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

// The states of a kind, for people; or the reason why it is not read.
const (
	stateWatched  = "Watched"
	stateStarting = "Starting"
)

// states counts the kinds by their state.
func (w *watches) states() map[string]int {
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

// starting returns the kinds that have been neither read nor refused for
// longer than grace.
func (w *watches) starting(grace time.Duration) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for kind, k := range w.snapshot() {
		if k.objects == nil && k.reason == "" && time.Since(k.since) >= grace {
			out = append(out, kind)
		}
	}
	return out
}
