package reporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/quayside/quayside/api/v1alpha1"
)

const (
	// settleDelay is the delay between a change and the evaluation of an Installation. An object changes many times
	// a second during a rollout: one evaluation then covers all these changes.
	settleDelay = 200 * time.Millisecond
	// judgeInterval is the interval at which an Installation that is not ready is evaluated again,
	// even without a change, because some results depend on time.
	judgeInterval = time.Minute
	// resyncInterval is the interval at which all Installations are evaluated again from the
	// caches. Some results depend on time, such as the expiry of a certificate.
	resyncInterval = time.Hour
	// readGrace is the maximum time for reading a kind. If reading takes longer, the reporter is not ready.
	readGrace = 15 * time.Second
)

// reporter determines the status of Installations, and writes it.
type reporter struct {
	judge         StatusFunc
	now           func() time.Time
	log           logr.Logger
	installations cache.Cache
	status        client.SubResourceWriter
	events        recorder.EventRecorder

	watches *watches
	index   *installationIndex
	pods    podReader
	metrics *metricStore

	wasReady atomic.Bool
	mu       sync.Mutex
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the start
}

// register adds the reporter to the manager.
func (r *reporter) register(mgr manager.Manager) error {
	c, err := controller.New("installation", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: 4,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](settleDelay, time.Minute),
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind[client.Object](mgr.GetCache(), &v1alpha1.Installation{}, &handler.EnqueueRequestForObject{})); err != nil {
		return err
	}
	if err := c.Watch(source.Func(r.setQueue)); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(r.watches.run)); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("watches", func(req *http.Request) error { return r.ready(req.Context(), mgr.Elected()) })
}

func (r *reporter) setQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = queue
	return nil
}

// enqueue adds Installations to the queue.
func (r *reporter) enqueue(names []types.NamespacedName) {
	r.mu.Lock()
	queue := r.queue
	r.mu.Unlock()
	if queue == nil {
		return
	}
	for _, name := range names {
		queue.AddAfter(reconcile.Request{NamespacedName: name}, settleDelay)
	}
}

// kindChanged is called when the objects of a kind have been read, or cannot be read any more. It
// enqueues the Installations that list the kind.
func (r *reporter) kindChanged(kind schema.GroupVersionKind) { r.enqueue(r.index.expectingKind(kind)) }

// objectChanged is called when an object changes. It enqueues the Installations that list the object. If the
// object defines kinds, as a CRD does, objectChanged also retries the kinds of the same group that could not be
// read.
func (r *reporter) objectChanged(kind schema.GroupVersionKind, name types.NamespacedName) {
	if isDefinition(kind.GroupKind()) {
		_, group, _ := strings.Cut(name.Name, ".")
		r.watches.retry(func(k schema.GroupVersionKind) bool { return k.Group == group })
	}
	r.enqueue(r.index.expecting(kind, name))
}

// isDefinition reports whether objects of a kind define other kinds. The name of such an object
// contains the group: "etcdclusters.etcd.database.coreos.com", "v1.packages.operators.coreos.com".
func isDefinition(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"} ||
		kind == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
}

// Reconcile updates the status of one Installation.
func (r *reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	in := new(v1alpha1.Installation)
	err := r.installations.Get(ctx, req.NamespacedName, in)
	if apierrors.IsNotFound(err) {
		r.watches.release(r.index.remove(req.NamespacedName))
		r.metrics.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	m, change := r.index.update(in)
	r.watches.acquire(change.added)
	r.watches.release(change.removed)
	if change.spec { // the same upgrade may have added permissions and CRDs: retry failed kinds
		r.watches.retry(func(k schema.GroupVersionKind) bool { return slices.Contains(m.kinds, k) })
	}
	return r.report(ctx, m, in)
}

// report determines the status of an Installation. If it has changed, report writes it.
func (r *reporter) report(ctx context.Context, m *entry, in *v1alpha1.Installation) (reconcile.Result, error) {
	prev := m.currentStatus(in)
	got, all, err := r.watches.observe(ctx, in.Spec.Objects)
	if err != nil || !all {
		r.metrics.set(in, prev)
		return reconcile.Result{}, err // a kind is still being read: kindChanged enqueues the Installation again
	}
	if m.pods, err = r.pods.read(ctx, m.pods, got); err != nil {
		return reconcile.Result{}, err
	}
	status := r.judge(in.Spec, in.Generation, prev, got, m.pods.pods, r.now())
	r.metrics.set(in, status)
	if !equality.Semantic.DeepEqual(prev, status) {
		if err := r.write(ctx, m, in, status); err != nil {
			return reconcile.Result{}, err
		}
		r.recordEvents(in, prev, status)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.Ready) {
		return reconcile.Result{RequeueAfter: judgeInterval}, nil
	}
	return reconcile.Result{}, nil
}

// ready returns an error while some kinds have not been read. After its first success, it reports a new kind only if
// reading the kind takes longer than readGrace. A standby reporter is ready when it has read the Installations.
func (r *reporter) ready(ctx context.Context, elected <-chan struct{}) error {
	informer, err := r.installations.GetInformer(ctx, &v1alpha1.Installation{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if !informer.HasSynced() {
		return errors.New("the Installations are not yet synced")
	}
	select {
	case <-elected:
	default:
		return nil
	}
	grace := readGrace
	if !r.wasReady.Load() {
		var list v1alpha1.InstallationList
		if err := r.installations.List(ctx, &list); err != nil {
			return err
		}
		if have := r.index.size(); have < len(list.Items) {
			return fmt.Errorf("%d of %d Installations are not yet synced", len(list.Items)-have, len(list.Items))
		}
		grace = 0
	}
	if kinds := r.watches.starting(grace); len(kinds) > 0 {
		return fmt.Errorf("not yet synced: %v", kinds)
	}
	r.wasReady.Store(true)
	return nil
}
