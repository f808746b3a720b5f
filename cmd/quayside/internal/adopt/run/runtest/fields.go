package runtest

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"

	"github.com/quayside/quayside/internal/k8s"
)

// fieldTracker updates managedFields with the code of Kubernetes.
type fieldTracker struct {
	typed, deduced managedfields.TypeConverter
	scheme         *runtime.Scheme
	managers       map[schema.GroupVersionKind]*managedfields.FieldManager
}

func newFields() fieldTracker {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // impossible: the types are part of the program
		}
	}
	return fieldTracker{
		typed: applyconfigurations.NewTypeConverter(s), deduced: managedfields.NewDeducedTypeConverter(),
		scheme: s, managers: map[schema.GroupVersionKind]*managedfields.FieldManager{},
	}
}

// singleVersion is the version converter of an API server whose kinds have only one version.
type singleVersion struct{ kind schema.GroupVersionKind }

func (singleVersion) Convert(any, any, any) error { return errors.New("not converted") }

func (singleVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (singleVersion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("no field labels")
}

func (singleVersion) Default(runtime.Object) {}

func (a singleVersion) New(schema.GroupVersionKind) (runtime.Object, error) { return a.empty(), nil }

func (a singleVersion) empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(a.kind)
	return u
}

func (f fieldTracker) manager(o k8s.Object) (*managedfields.FieldManager, singleVersion, error) {
	version, err := schema.ParseGroupVersion(o.APIVersion())
	if err != nil {
		return nil, singleVersion{}, err
	}
	of := singleVersion{version.WithKind(o.Kind())}
	if m := f.managers[of.kind]; m != nil {
		return m, of, nil
	}
	types := f.deduced
	if f.scheme.Recognizes(of.kind) {
		types = f.typed
	}
	m, err := managedfields.NewDefaultCRDFieldManager(types, of, of, of, of.kind, version, "", nil)
	if err == nil {
		f.managers[of.kind] = m
	}
	return m, of, err
}

// apply applies an object server-side as a manager. old is nil for a new object.
func (f fieldTracker) apply(old, applied k8s.Object, manager string, force bool) (k8s.Object, error) {
	m, of, err := f.manager(applied)
	if err != nil {
		return nil, err
	}
	out, err := m.Apply(f.live(of, old), unstructuredOf(applied), manager, force)
	if apierrors.IsConflict(err) {
		return nil, err
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out.(*unstructured.Unstructured).Object, nil
}

// update records the changes of a manager that does not use apply. old is nil for a new object.
func (f fieldTracker) update(old, o k8s.Object, manager string) (k8s.Object, error) {
	m, of, err := f.manager(o)
	if err != nil {
		return nil, err
	}
	out, err := m.Update(f.live(of, old), unstructuredOf(o), manager)
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", k8s.RefTo(o), err)
	}
	return out.(*unstructured.Unstructured).Object, nil
}

func (fieldTracker) live(of singleVersion, old k8s.Object) runtime.Object {
	if old == nil {
		return of.empty()
	}
	return unstructuredOf(old)
}

func unstructuredOf(o k8s.Object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: k8s.Copy(map[string]any(o))}
}
