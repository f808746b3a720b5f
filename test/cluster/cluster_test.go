package cluster_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/quayside/quayside/test/cluster/harness"
)

// within returns a context that ends with the test or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func applier(t *testing.T, cluster *harness.Cluster) *harness.Applier {
	t.Helper()
	a, err := harness.NewApplier(cluster.RESTConfig, "quayside-test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func client(t *testing.T, cluster *harness.Cluster) *kubernetes.Clientset {
	t.Helper()
	c, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func objects(t *testing.T, stream string) []*unstructured.Unstructured {
	t.Helper()
	list, err := harness.Objects([]byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func names(list []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range list {
		all = append(all, harness.Name(o))
	}
	return all
}

// showEvents logs the warning events of a namespace.
func showEvents(t *testing.T, cluster *harness.Cluster, namespace string) {
	t.Helper()
	list, err := client(t, cluster).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, e := range list.Items {
		if e.Type == corev1.EventTypeWarning {
			t.Logf("event on %s %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
}
