package kube

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/report/v1alpha1"
)

// A kind that cannot be read is asked for again after a second, then after
// twice as long each time, up to five minutes.
const (
	firstWait = time.Second
	lastWait  = 5 * time.Minute
)

// keep watches one kind until ctx ends, through all that goes wrong.
func (w *watches) keep(ctx context.Context, kind schema.GroupVersionKind, k *kindWatch) {
	var row trouble
	wait := firstWait
	for {
		err := w.once(ctx, kind, k, func() { row, wait = trouble{}, firstWait })
		if ctx.Err() != nil {
			return
		}
		if v := row.add(err, time.Now()); v.reason != "" {
			w.turn(kind, k, nil, v)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			wait = min(2*wait, lastWait)
		case <-k.again:
			timer.Stop()
			wait = firstWait
		}
	}
}

// once watches the kind until ctx ends or there is an answer for which the
// watch is given up, and returns that. It calls good when everything is read.
func (w *watches) once(ctx context.Context, kind schema.GroupVersionKind, k *kindWatch, good func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faults := make(chan error, 1)
	objects, err := w.open(ctx, kind, opening{
		changed: func(name types.NamespacedName) { w.changed(kind, name) },
		fault: func(err error) {
			if verdictOn(err).reason == "" {
				return // it resumes by itself
			}
			select {
			case faults <- err:
			default: // one is enough
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
	good()
	w.turn(kind, k, objects, verdict{})
	select {
	case <-ctx.Done():
		return nil
	case err := <-faults:
		w.turn(kind, k, nil, verdict{})
		return err
	}
}

// turn sets what is known of a kind and says so where it has turned.
func (w *watches) turn(kind schema.GroupVersionKind, k *kindWatch, objects store, v verdict) {
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
		return // it is not known yet what to say
	}
	w.settled(kind)
}

// verdict says why the objects of a kind cannot be read. The zero verdict says
// nothing.
type verdict struct{ reason, message string }

// verdictOn returns what an answer of the API server says of a kind. Answers
// that say nothing of the kind, but that the server cannot be reached, is busy
// or starts, give none.
func verdictOn(err error) verdict {
	var status apierrors.APIStatus
	switch {
	case meta.IsNoMatchError(err):
		return verdict{v1alpha1.ReasonNoKind, "the API server does not know the kind"}
	case !errors.As(err, &status):
		return verdict{}
	}
	switch code := status.Status().Code; {
	case code == http.StatusForbidden:
		return verdict{v1alpha1.ReasonForbidden, status.Status().Message}
	case code == http.StatusNotFound:
		return verdict{v1alpha1.ReasonNoKind, "the API server does not know the kind"}
	case code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code == http.StatusGone, code == http.StatusGatewayTimeout:
		return verdict{}
	default:
		return verdict{v1alpha1.ReasonError, status.Status().Message}
	}
}

// trouble is a row of answers that all say that a kind cannot be read.
type trouble struct{ began time.Time }

// add takes in one answer more, and returns the verdict once such answers have
// come long enough: a server that has just started refuses, for a moment, what
// it will allow.
func (t *trouble) add(err error, now time.Time) verdict {
	v := verdictOn(err)
	switch {
	case v.reason == "":
		*t = trouble{}
	case t.began.IsZero():
		t.began = now
	}
	patience := 3 * time.Second
	if v.reason == v1alpha1.ReasonError {
		patience = 15 * time.Second
	}
	if now.Sub(t.began) < patience {
		return verdict{}
	}
	return v
}
