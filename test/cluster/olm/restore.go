package olm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/quayside/quayside/test/cluster/harness"
)

const (
	group   = "operators.coreos.com"
	manager = "quayside-test-restore"
)

// Restore creates the objects in a cluster, dependents after their owners, with their recorded status and
// managers, and with references to the new UIDs. It omits objects that Kubernetes' controllers create, such as
// ReplicaSets and default ServiceAccounts. In the namespace olm, two Deployments without effect replace OLM's
// controllers.
func Restore(ctx context.Context, config *rest.Config, services *Services, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	lookup, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	r := &restorer{
		client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(lookup)),
		services: services, uids: map[string]string{},
	}
	for _, o := range objects {
		if !isCreatedByKubernetes(o) {
			r.todo = append(r.todo, o.DeepCopy())
		}
	}
	return r.run(ctx)
}

// restorer restores objects.
type restorer struct {
	client   dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	services *Services

	todo []*unstructured.Unstructured // not created yet
	made []*unstructured.Unstructured // as in the dump

	mu   sync.Mutex
	uids map[string]string // by the UID in the dump; "" if the object does not exist yet
}

// isCreatedByKubernetes reports whether Kubernetes itself creates the object.
func isCreatedByKubernetes(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ReplicaSet" || o.GetName() == "kube-root-ca.crt" || o.GetName() == "extension-apiserver-authentication" ||
		o.GetKind() == "Service" && o.GetName() == "kubernetes"
}

// run creates the objects, one group of kinds after the other.
func (r *restorer) run(ctx context.Context) error {
	for _, o := range r.todo {
		r.uids[string(o.GetUID())] = ""
	}
	of := func(kind string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }
	}
	custom := func(o *unstructured.Unstructured) bool {
		g := o.GroupVersionKind().Group
		return strings.Contains(g, ".") && g != group && !strings.HasSuffix(g, ".k8s.io")
	}
	last := slices.DeleteFunc(slices.Clone(r.todo), func(o *unstructured.Unstructured) bool { return !custom(o) })
	r.todo = slices.DeleteFunc(r.todo, custom)
	if err := r.create(ctx, of("CustomResourceDefinition")); err != nil {
		return err
	}
	if err := r.awaitCRDs(ctx); err != nil {
		return err
	}
	for _, kind := range []string{"Namespace", "OperatorGroup"} {
		if err := r.create(ctx, of(kind)); err != nil {
			return err
		}
	}
	if err := r.labelNamespaces(ctx); err != nil {
		return err
	}
	for len(r.todo) > 0 {
		left := len(r.todo)
		if err := r.create(ctx, r.hasOwners); err != nil {
			return err
		}
		if len(r.todo) == left {
			return fmt.Errorf("%d objects own each other, %s among them", left, objectID(r.todo[0]))
		}
	}
	r.mapper.Reset()
	r.todo = last
	if err := r.create(ctx, r.hasOwners); err != nil {
		return err
	}
	if err := r.forEach(ctx, r.made, r.setStatusAndManagers); err != nil {
		return err
	}
	return r.createControllers(ctx)
}

// create creates the objects that match and are not yet created.
func (r *restorer) create(ctx context.Context, matches func(*unstructured.Unstructured) bool) error {
	var now, later []*unstructured.Unstructured
	for _, o := range r.todo {
		if matches(o) {
			now = append(now, o)
		} else {
			later = append(later, o)
		}
	}
	r.todo = later
	r.made = append(r.made, now...)
	return r.forEach(ctx, now, r.createOne)
}

// hasOwners reports whether all owners of the object exist.
func (r *restorer) hasOwners(o *unstructured.Unstructured) bool {
	for _, owner := range o.GetOwnerReferences() {
		if uid, known := r.uids[string(owner.UID)]; known && uid == "" {
			return false
		}
	}
	return true
}

// createOne creates an object, unless it exists.
func (r *restorer) createOne(ctx context.Context, o *unstructured.Unstructured) error {
	if err := r.services.replaceCerts(o); err != nil {
		return err
	}
	fresh, err := r.withNewUIDs(o)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(fresh.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(fresh.Object, "metadata", field)
	}
	switch fresh.GetKind() {
	case "Namespace":
		labels := fresh.GetLabels()
		for key := range labels {
			if strings.HasPrefix(key, "olm.operatorgroup.uid/") {
				delete(labels, key)
			}
		}
		fresh.SetLabels(labels)
	case "Service":
		if ip, _, _ := unstructured.NestedString(fresh.Object, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(fresh.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(fresh.Object, "spec", "clusterIPs")
		}
	case "Job":
		unstructured.RemoveNestedField(fresh.Object, "spec", "selector")
		for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
			unstructured.RemoveNestedField(fresh.Object, "metadata", "labels", key)
			unstructured.RemoveNestedField(fresh.Object, "spec", "template", "metadata", "labels", key)
		}
	}
	of, err := r.resource(fresh)
	if err != nil {
		return err
	}
	live, err := of.Create(ctx, fresh, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		live, err = of.Get(ctx, fresh.GetName(), metav1.GetOptions{})
		o.SetManagedFields(nil)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uids[string(o.GetUID())] = string(live.GetUID())
	return nil
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// withNewUIDs returns an object with references to the new UIDs of created objects.
func (r *restorer) withNewUIDs(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := objectText(o)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	data = uidPattern.ReplaceAllFunc(data, func(old []byte) []byte {
		if now := r.uids[string(old)]; now != "" {
			return []byte(now)
		}
		return old
	})
	r.mu.Unlock()
	out := new(unstructured.Unstructured)
	return out, out.UnmarshalJSON(data)
}

// labelNamespaces restores OLM's labels on Namespaces, with the new UIDs of the OperatorGroups to which the
// labels refer.
func (r *restorer) labelNamespaces(ctx context.Context) error {
	return r.forEach(ctx, r.made, func(ctx context.Context, o *unstructured.Unstructured) error {
		if o.GetKind() != "Namespace" {
			return nil
		}
		whole, err := r.withNewUIDs(o)
		if err != nil {
			return err
		}
		return r.patch(ctx, whole, types.MergePatchType, map[string]any{"metadata": map[string]any{"labels": whole.GetLabels()}})
	})
}

// setStatusAndManagers sets the managers of an object. It also sets the status, unless a running controller
// does so.
func (r *restorer) setStatusAndManagers(ctx context.Context, o *unstructured.Unstructured) error {
	whole, err := r.withNewUIDs(o)
	if err != nil {
		return err
	}
	if status := whole.Object["status"]; status != nil && strings.Contains(whole.GroupVersionKind().Group, ".") && !strings.HasSuffix(whole.GroupVersionKind().Group, ".k8s.io") {
		err := r.patch(ctx, whole, types.MergePatchType, map[string]any{"status": status}, "status")
		if err != nil && !apierrors.IsNotFound(err) { // a kind may have no such subresource
			return err
		}
	}
	managed, _, _ := unstructured.NestedSlice(whole.Object, "metadata", "managedFields")
	if len(managed) == 0 {
		return nil
	}
	return r.patch(ctx, whole, types.JSONPatchType, []any{map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": managed}})
}

func (r *restorer) patch(ctx context.Context, o *unstructured.Unstructured, kind types.PatchType, patch any, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	of, err := r.resource(o)
	if err != nil {
		return err
	}
	_, err = of.Patch(ctx, o.GetName(), kind, data, metav1.PatchOptions{FieldManager: manager}, subresources...)
	return err
}

func (r *restorer) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return r.client.Resource(mapping.Resource), nil
}

// forEach calls a function for every object, for several objects concurrently, and returns the joined errors.
func (r *restorer) forEach(ctx context.Context, objects []*unstructured.Unstructured, do func(context.Context, *unstructured.Unstructured) error) error {
	errs := make([]error, len(objects))
	var wg sync.WaitGroup
	room := make(chan struct{}, 12)
	for i, o := range objects {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if err := do(ctx, o); err != nil {
				errs[i] = fmt.Errorf("restoring %s: %w", objectID(o), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// awaitCRDs waits until the custom resources are served.
func (r *restorer) awaitCRDs(ctx context.Context) error {
	for _, o := range r.made {
		of, err := r.resource(o)
		if err != nil {
			return err
		}
		for {
			live, err := of.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, _, _ := harness.Condition(live, "Established"); status == "True" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not served: %w", o.GetName(), ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	r.mapper.Reset()
	return nil
}

// createControllers creates the Deployments that replace OLM's controllers.
func (r *restorer) createControllers(ctx context.Context) error {
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		labels := map[string]any{"app": name}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "olm", "labels": labels},
			"spec": map[string]any{
				"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
					"containers": []any{map[string]any{"name": name, "image": "quay.io/operator-framework/olm:v0.38.0"}},
				}},
			},
		}}
		of, err := r.resource(o)
		if err != nil {
			return err
		}
		if _, err := of.Create(ctx, o, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			return err
		}
	}
	return nil
}
