package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/api/v1alpha1"
)

// fullInstallation returns an Installation with a value in every field.
func fullInstallation() *v1alpha1.Installation {
	return &v1alpha1.Installation{
		TypeMeta:   metav1.TypeMeta{APIVersion: "quayside.dev/v1alpha1", Kind: "Installation"},
		ObjectMeta: metav1.ObjectMeta{Name: "etcd", Namespace: "my-etcd", Generation: 2, Labels: map[string]string{"a": "b"}},
		Spec: v1alpha1.InstallationSpec{
			Package: "etcd", Version: "0.9.4", Bundle: "etcdoperator.v0.9.4", Channel: "alpha", Pin: "sha256:0", OperatorCondition: "etcd",
			Objects: []v1alpha1.ObjectReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "my-etcd", Name: "etcd-operator", Version: "0.9.4",
				Images: []v1alpha1.ContainerImage{{Container: "c", Image: "x"}},
			}},
		},
		Status: v1alpha1.InstallationStatus{
			ObservedGeneration: 2, Pin: "sha256:0", Version: "0.9.4", MoreObjects: 1, MoreImages: 1,
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: "False", Reason: "Failed", Message: "x", ObservedGeneration: 2,
				LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			}},
			Summary: v1alpha1.ObjectCounts{Total: 7, Current: 1, InProgress: 1, NotFound: 1, Failed: 1, Terminating: 1, Forbidden: 1, Unknown: 1},
			Objects: []v1alpha1.ObjectHealth{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "my-etcd", Name: "etcd-operator", Health: v1alpha1.Failed, Message: "x"}},
			Images:  []v1alpha1.RunningImage{{Kind: "Deployment", Namespace: "my-etcd", Name: "etcd-operator", Container: "c", Want: "x", Have: "y", Digests: []string{"sha256:1"}}},
		},
	}
}

// toFields encodes o as JSON and decodes the result into a map, as the API server does.
func toFields(t *testing.T, o any) map[string]any {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// decodeCRD decodes the CRD as the API server does, and rejects unknown fields.
func decodeCRD(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := json.Marshal(v1alpha1.CRD())
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]any
	if err := json.Unmarshal(back, &kept); err != nil {
		t.Fatal(err)
	}
	delete(kept, "status")
	if d := cmp.Diff(toFields(t, v1alpha1.CRD())["spec"], kept["spec"]); d != "" {
		t.Errorf("fields that no API server knows:\n%s", d)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{v1alpha1.Version} // registration sets it
	return &internal
}

// TestCRD validates the CRD with the code of the API server. It also validates an Installation with a value in
// every field: the API server must not drop any field.
func TestCRD(t *testing.T) {
	crd := decodeCRD(t)
	if errs := validation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	structural, err := schema.NewStructural(crd.Spec.Validation.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	o := toFields(t, fullInstallation())
	if dropped := pruning.PruneWithOptions(o, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(dropped) > 0 {
		t.Errorf("dropped: %v", dropped)
	}
	validator, _, err := crdvalidation.NewSchemaValidator(crd.Spec.Validation.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	if errs := crdvalidation.ValidateCustomResource(nil, o, validator); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	delete(o["spec"].(map[string]any), "pin")
	if errs := crdvalidation.ValidateCustomResource(nil, o, validator); len(errs) != 1 {
		t.Errorf("without its pin: %v", errs)
	}
}

// TestDeepCopy changes every part of a copy. The original must not change.
func TestDeepCopy(t *testing.T) {
	list := &v1alpha1.InstallationList{Items: []v1alpha1.Installation{*fullInstallation()}}
	out, ok := list.DeepCopyObject().(*v1alpha1.InstallationList)
	if !ok || cmp.Diff(list, out) != "" {
		t.Fatalf("a copy differs: %s", cmp.Diff(list, out))
	}
	in := &out.Items[0]
	in.Labels["a"] = "c"
	in.Spec.Objects[0].Name, in.Spec.Objects[0].Images[0].Image = "z", "z"
	in.Status.Conditions[0].Reason, in.Status.Objects[0].Name = "z", "z"
	in.Status.Images[0].Digests[0], in.Status.Images[0].Want = "z", "z"
	if d := cmp.Diff(fullInstallation(), &list.Items[0]); d != "" {
		t.Errorf("changed through a copy:\n%s", d)
	}
	var none *v1alpha1.Installation
	if none.DeepCopyObject() != nil || (*v1alpha1.InstallationList)(nil).DeepCopyObject() != nil {
		t.Error("a copy of nothing is something")
	}
}

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, o := range []runtime.Object{&v1alpha1.Installation{}, &v1alpha1.InstallationList{}} {
		kinds, _, err := s.ObjectKinds(o)
		if err != nil || len(kinds) != 1 || kinds[0].GroupVersion() != v1alpha1.GroupVersion() {
			t.Errorf("%T: %v, %v", o, kinds, err)
		}
	}
}
