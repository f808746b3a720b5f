package cluster_test

import (
	"context"
	"testing"
	"time"

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
