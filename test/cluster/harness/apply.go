package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Applier applies objects server-side as one field manager, which owns the applied fields. Unknown
// and duplicate fields are errors. It is not safe for concurrent use.
type Applier struct {
	manager   string
	dynamic   dynamic.Interface
	metadata  metadata.Interface // for requests about existence and version only
	discovery discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

// Applied is the result of applying one object.
type Applied struct {
	Object   *unstructured.Unstructured // as stored by the server
	Warnings []string                   // from the server, in its order
	Changed  bool                       // created, or given a new resourceVersion
}

// NewApplier returns an applier with the credentials in config, and with manager as the field
// manager.
func NewApplier(config *rest.Config, manager string) (*Applier, error) {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warningHandler{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	light, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lookup, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(lookup)
	return &Applier{
		manager: manager, dynamic: client, metadata: light, discovery: cached,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached),
	}, nil
}

// Apply applies the objects in the given order, and returns the results up to the first error, in the same
// order. Before it applies an object that follows CRDs, it waits until these CRDs are served.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) ([]Applied, error) {
	var done []Applied
	var fresh []*unstructured.Unstructured // CRDs not yet waited for
	for _, o := range objects {
		if !isCRD(o) && len(fresh) > 0 {
			if err := a.Await(ctx, fresh); err != nil {
				return done, err
			}
			fresh = nil
			a.mapper.Reset()
		}
		applied, err := a.applyOne(ctx, o)
		if err != nil {
			return done, fmt.Errorf("applying %s: %w", Name(o), err)
		}
		if isCRD(o) {
			fresh = append(fresh, applied.Object)
		}
		done = append(done, applied)
	}
	return done, a.Await(ctx, fresh)
}

func (a *Applier) applyOne(ctx context.Context, o *unstructured.Unstructured) (Applied, error) {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return Applied{}, err
	}
	before, err := a.version(ctx, mapping, o)
	if err != nil {
		return Applied{}, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return Applied{}, err
	}
	collected := new(warnings)
	force := true
	after, err := a.scoped(mapping, o.GetNamespace()).Patch(collected.withContext(ctx), o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: a.manager, FieldValidation: metav1.FieldValidationStrict, Force: &force,
	})
	if err != nil {
		return Applied{}, err
	}
	return Applied{Object: after, Warnings: collected.all(), Changed: before != after.GetResourceVersion()}, nil
}

// version returns the object's resourceVersion, or "" if the object does not exist.
func (a *Applier) version(ctx context.Context, mapping *meta.RESTMapping, o *unstructured.Unstructured) (string, error) {
	var of metadata.ResourceInterface = a.metadata.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		of = a.metadata.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	live, err := of.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return live.ResourceVersion, nil
}

// Get returns the object of that kind and name from the server.
func (a *Applier) Get(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := a.mapping(ctx, like.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return a.scoped(mapping, like.GetNamespace()).Get(ctx, like.GetName(), metav1.GetOptions{})
}

// Delete deletes the object and its dependents. It ignores an object that does not exist, and an object of a
// kind that is no longer served.
func (a *Applier) Delete(ctx context.Context, o *unstructured.Unstructured) error {
	mapping, err := a.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = a.scoped(mapping, o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// mapping returns the resource of a kind. For an unknown kind it retries for ten seconds, because
// its CRD may have just been created.
func (a *Applier) mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	for limit := time.Now().Add(10 * time.Second); ; {
		mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			return mapping, nil
		}
		if !meta.IsNoMatchError(err) || time.Now().After(limit) {
			return nil, err
		}
		if err := sleepContext(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
		a.mapper.Reset()
	}
}

// Serves returns nil if the server has the API of an object. Otherwise it returns an error for which
// meta.IsNoMatchError is true. It does not wait for the API.
func (a *Applier) Serves(o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	_, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) { // its CRD may be new
		a.mapper.Reset()
		_, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return err
}

// Forget makes the next call ask the API server again which kinds the server has.
func (a *Applier) Forget() { a.mapper.Reset() }

// Namespaced reports whether objects of that kind belong to a namespace.
func (a *Applier) Namespaced(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	mapping, err := a.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (a *Applier) scoped(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	return a.dynamic.Resource(mapping.Resource)
}

// Name returns "Kind.group namespace/name", for messages.
func Name(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GroupVersionKind().GroupKind().String() + " " + name
}

func isCRD(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// warnings collects the warnings of the server for one request.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

func (w *warnings) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, warningsKey{}, w)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

// warningHandler passes a warning to the collector of its request, if there is one.
type warningHandler struct{}

// HandleWarningHeaderWithContext implements the client's interface for warnings.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || code != 299 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
