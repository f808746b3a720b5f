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

// Delays before a kind that cannot be read is retried. The delay doubles after each failure.
const (
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
)

// watchKind watches one kind until ctx ends. After an error, it starts the watch again.
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

// watchOnce watches a kind until ctx ends or the watch fails with an error that is not temporary. It returns
// this error, or nil if ctx ended. It calls onSynced when the store contains all objects.
func (w *watches) watchOnce(ctx context.Context, kind schema.GroupVersionKind, k *kindWatch, onSynced func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faults := make(chan error, 1)
	objects, err := w.open(ctx, kind, watchCallbacks{
		changed: func(name types.NamespacedName) { w.objectChanged(kind, name) },
		fault: func(err error) {
			if failureOf(err).reason == "" {
				return // temporary: the watch resumes by itself
			}
			select {
			case faults <- err:
			default: // an earlier error is already reported
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

// setFailure sets the store and the failure of a kind. If the store or the failure changed, it calls
// kindChanged.
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
		return // the kind is still starting
	}
	w.kindChanged(kind)
}

// readFailure is the reason why the objects of a kind cannot be read. The zero value means no
// failure.
type readFailure struct{ reason, message string }

// failureOf converts an error of the API server to a readFailure. It returns the zero value for a temporary
// error, such as the error of an unreachable, busy or starting server.
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

// add records the result of an attempt to read the kind. It returns a failure only after the attempts have
// failed for some seconds, because a server that has just started may refuse requests that are permitted.
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
