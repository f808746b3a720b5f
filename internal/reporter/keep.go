package reporter

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

// A kind that cannot be read is retried after one second. The delay doubles
// after each failure, up to five minutes.
const (
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
)

// watchKind watches one kind until ctx ends and retries after errors.
func (w *watches) watchKind(ctx context.Context, kind schema.GroupVersionKind, k *kindWatch) {
	var streak failureStreak
	wait := minRetryDelay
	for {
		err := w.watchOnce(ctx, kind, k, func() { streak, wait = failureStreak{}, minRetryDelay })
		if ctx.Err() != nil {
			return
		}
		if v := streak.add(err, time.Now()); v.reason != "" {
			w.setFailure(kind, k, nil, v)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			wait = min(2*wait, maxRetryDelay)
		case <-k.retryNow:
			timer.Stop()
			wait = minRetryDelay
		}
	}
}

// watchOnce watches the kind until ctx ends, or until the watch fails with an
// error that is not temporary, and returns that error. It calls onSynced when
// the store is complete.
func (w *watches) watchOnce(ctx context.Context, kind schema.GroupVersionKind, k *kindWatch, onSynced func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faults := make(chan error, 1)
	objects, err := w.open(ctx, kind, watchCallbacks{
		changed: func(name types.NamespacedName) { w.objectChanged(kind, name) },
		fault: func(err error) {
			if failureOf(err).reason == "" {
				return // temporary: the watch resumes
			}
			select {
			case faults <- err:
			default: // one fault is enough
			}
		},
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-faults:
		return err
	case <-objects.synced():
	}
	onSynced()
	w.setFailure(kind, k, objects, readFailure{})
	select {
	case <-ctx.Done():
		return nil
	case err := <-faults:
		w.setFailure(kind, k, nil, readFailure{})
		return err
	}
}

// setFailure sets the store and the failure of a kind, and calls kindChanged if
// they changed.
func (w *watches) setFailure(kind schema.GroupVersionKind, k *kindWatch, objects store, v readFailure) {
	w.mu.Lock()
	same := k.objects == objects && k.reason == v.reason && k.message == v.message
	if !same && objects == nil && v.reason == "" {
		k.since = time.Now()
	}
	k.objects, k.reason, k.message = objects, v.reason, v.message
	current := w.kinds[kind] == k
	w.mu.Unlock()
	if same || !current {
		return
	}
	switch {
	case objects != nil:
		w.log.Info("watching", "kind", kind.String())
	case v.reason != "":
		w.log.Info("cannot be read", "kind", kind.String(), "reason", v.reason, "message", v.message)
	default:
		w.log.Info("the watch has ended", "kind", kind.String())
		return // the kind is starting: it has neither objects nor a reason
	}
	w.kindChanged(kind)
}

// readFailure is the reason why the objects of a kind cannot be read. Its zero
// value means no failure.
type readFailure struct{ reason, message string }

// failureOf converts an error of the API server to the failure of a kind. For
// temporary errors, such as those of an unreachable, busy or starting server, it
// returns the zero value.
func failureOf(err error) readFailure {
	var status apierrors.APIStatus
	switch {
	case meta.IsNoMatchError(err):
		return readFailure{v1alpha1.ReasonNoKind, "the API server does not serve the kind"}
	case !errors.As(err, &status):
		return readFailure{}
	}
	switch code := status.Status().Code; {
	case code == http.StatusForbidden:
		return readFailure{v1alpha1.ReasonForbidden, status.Status().Message}
	case code == http.StatusNotFound:
		return readFailure{v1alpha1.ReasonNoKind, "the API server does not serve the kind"}
	case code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code == http.StatusGone, code == http.StatusGatewayTimeout:
		return readFailure{}
	default:
		return readFailure{v1alpha1.ReasonError, status.Status().Message}
	}
}

// failureStreak tracks consecutive failures to read a kind.
type failureStreak struct{ since time.Time }

// add records the result of another attempt to read the kind. It returns the
// failure only after failures have continued for some seconds, because a server
// that has just started briefly refuses permitted requests.
func (t *failureStreak) add(err error, now time.Time) readFailure {
	v := failureOf(err)
	switch {
	case v.reason == "":
		*t = failureStreak{}
	case t.since.IsZero():
		t.since = now
	}
	grace := 3 * time.Second
	if v.reason == v1alpha1.ReasonError {
		grace = 15 * time.Second
	}
	if now.Sub(t.since) < grace {
		return readFailure{}
	}
	return v
}
