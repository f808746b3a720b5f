package v1alpha1_test

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/api/v1alpha1"
)

func ExampleInstallation() {
	answer := []byte(`{
	  "apiVersion": "quayside.dev/v1alpha1", "kind": "Installation",
	  "metadata": {"name": "etcd", "namespace": "my-etcd"},
	  "spec": {"package": "etcd", "version": "0.9.4", "pin": "sha256:12"},
	  "status": {
	    "version": "0.9.4", "pin": "sha256:12",
	    "conditions": [{"type": "Ready", "status": "False", "reason": "Failed", "message": "1 of 12 objects failed", "lastTransitionTime": "2026-11-25T12:00:00Z"}],
	    "summary": {"total": 12, "current": 11, "failed": 1},
	    "objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "my-etcd", "name": "etcd-operator", "health": "Failed", "message": "exceeded its progress deadline"}]
	  }
	}`)
	var in v1alpha1.Installation
	if err := json.Unmarshal(answer, &in); err != nil {
		fmt.Println(err)
		return
	}
	ready := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.Ready)
	fmt.Println(in.Namespace+"/"+in.Spec.Package, ready.Type, ready.Status, ready.Message)
	for _, o := range in.Status.Objects {
		fmt.Println(o.Kind, o.Name, o.Health, o.Message)
	}
	// A status is only valid for the pin that it names.
	fmt.Println("judged:", in.Status.Pin == in.Spec.Pin)
	// Output:
	// my-etcd/etcd Ready False 1 of 12 objects failed
	// Deployment etcd-operator Failed exceeded its progress deadline
	// judged: true
}

func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	kinds, _, err := scheme.ObjectKinds(&v1alpha1.InstallationList{})
	fmt.Println(kinds, err)
	// Output:
	// [quayside.dev/v1alpha1, Kind=InstallationList] <nil>
}
