package reporter

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/quayside/quayside/internal/k8s"
)

// kindInformer caches the objects of one kind that have quayside's label.
type kindInformer struct {
	kind  schema.GroupVersionKind
	cache cache.Cache
	done  <-chan struct{}
}

// openKind returns a function that creates a controller-runtime cache for a single kind. Each cache has its own
// context, and its errors do not affect other kinds.
func openKind(mgr manager.Manager, strip toolscache.TransformFunc) openFunc {
	return func(ctx context.Context, kind schema.GroupVersionKind, o watchCallbacks) (store, error) {
		rendered, err := labels.NewRequirement(k8s.LabelPackage, selection.Exists, nil)
		if err != nil {
			return nil, err
		}
		c, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient:                   mgr.GetHTTPClient(),
			Scheme:                       mgr.GetScheme(),
			Mapper:                       mgr.GetRESTMapper(),
			DefaultLabelSelector:         labels.NewSelector().Add(*rendered),
			DefaultTransform:             strip,
			NewInformer:                  newUnindexedInformer,
			DefaultUnsafeDisableDeepCopy: new(true),
			DefaultWatchErrorHandler:     func(_ context.Context, _ *toolscache.Reflector, err error) { o.fault(err) },
		})
		if err != nil {
			return nil, err
		}
		k := &kindInformer{kind: kind, cache: c}
		return k, k.start(ctx, o)
	}
}

// newUnindexedInformer creates an informer without indexes: it finds objects only by name.
func newUnindexedInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(lw, o, resync, toolscache.Indexers{})
}

func (k *kindInformer) start(ctx context.Context, o watchCallbacks) error {
	informer, err := k.cache.GetInformer(ctx, k.empty(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				o.changed(nameOfAny(obj))
			}
		},
		UpdateFunc: func(before, after any) {
			if !equalWhereJudged(before, after) {
				o.changed(nameOfAny(after))
			}
		},
		DeleteFunc: func(obj any) { o.changed(nameOfAny(obj)) },
	})
	if err != nil {
		return err
	}
	k.done = handler.HasSyncedChecker().Done()
	go func() { _ = k.cache.Start(ctx) }() // returns when ctx ends; it fails only if started twice
	return nil
}

func (k *kindInformer) synced() <-chan struct{} { return k.done }

// empty returns a new object of the kind without content. It has the Go type of the cached objects.
func (k *kindInformer) empty() client.Object {
	if metadataOnly(k.kind.GroupKind()) {
		o := new(metav1.PartialObjectMetadata)
		o.SetGroupVersionKind(k.kind)
		return o
	}
	o := new(unstructured.Unstructured)
	o.SetGroupVersionKind(k.kind)
	return o
}

func (k *kindInformer) object(ctx context.Context, name types.NamespacedName) (map[string]any, error) {
	o := k.empty()
	err := k.cache.Get(ctx, name, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return o.Object, nil
	case *metav1.PartialObjectMetadata:
		return metadataObject(k.kind, o), nil
	}
	return nil, nil
}

// nameOfAny returns the name of an object from an informer.
func nameOfAny(obj any) types.NamespacedName {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o, ok := obj.(metav1.Object)
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
