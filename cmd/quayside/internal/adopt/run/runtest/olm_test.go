package runtest_test

import (
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

const olm = "operators.coreos.com"

// newOLMCluster returns a cluster with OLM and an operator. The operator has an APIService, a copy of its
// ClusterServiceVersion, and a CRD with its component label.
func newOLMCluster() (c *runtest.Cluster, csv, api k8s.Ref) {
	with := func(o k8s.Object, v any, path ...string) k8s.Object { return k8s.With(o, v, path...) }
	operator := with(k8s.New("apps/v1", "Deployment", "olm", "olm-operator"), any(int64(1)), "spec", "replicas")
	one := with(k8s.New(olm+"/v1alpha1", "ClusterServiceVersion", "ops", "x.v1"), any([]any{olm + "/csv-cleanup"}), "metadata", "finalizers")
	copied := with(k8s.New(olm+"/v1alpha1", "ClusterServiceVersion", "team", "x.v1"), any("ops"), "metadata", "labels", "olm.copiedFrom")
	service := with(k8s.New("apiregistration.k8s.io/v1", "APIService", "", "v1.x.example.com"), any(map[string]any{
		"olm.owner": "x.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ops",
	}), "metadata", "labels")
	crd := with(k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "xs.example.com"), any(""), "metadata", "labels", olm+"/x.ops")
	c = runtest.New(operator, one, copied, service, crd)
	c.OLM = true
	c.Settle()
	return c, k8s.RefTo(one), k8s.RefTo(service)
}

// deleteCSV deletes the ClusterServiceVersion without OLM's finalizer and without its dependents.
func deleteCSV(t *testing.T, c *runtest.Cluster, csv k8s.Ref) {
	t.Helper()
	if _, err := c.Patch(t.Context(), csv, cluster.Patch{JSON: []cluster.Operation{{Op: "remove", Path: "/metadata/finalizers"}}}, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), csv, cluster.DeleteOptions{Orphan: true}, false); err != nil {
		t.Fatal(err)
	}
	c.Settle()
	if c.Object(csv) != nil {
		t.Fatal("the ClusterServiceVersion still exists")
	}
}

func scale(c *runtest.Cluster, n int64) {
	c.Edit(k8s.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "olm", Name: "olm-operator"}, func(o k8s.Object) {
		o["spec"].(map[string]any)["replicas"] = n
	})
	c.Settle()
}

// TestAPIServicesOfCluster deletes a ClusterServiceVersion. OLM must delete its copies and the APIServices whose
// labels name it, but only some seconds after the next start of OLM. An APIService without labels must be kept.
func TestAPIServicesOfCluster(t *testing.T) {
	for _, live := range []bool{false, true} {
		for _, labelled := range []bool{true, false} {
			c, csv, api := newOLMCluster()
			copied := csv
			copied.Namespace = "team"
			if !labelled {
				c.Edit(api, func(o k8s.Object) { delete(o["metadata"].(map[string]any), "labels") })
			}
			if !live {
				scale(c, 0)
			}
			deleteCSV(t, c, csv)
			c.AdvanceTime(time.Hour)
			if c.Object(api) == nil || c.Object(copied) == nil {
				t.Errorf("live %v: deleted without a start of OLM", live)
			}
			if live {
				scale(c, 0)
			}
			scale(c, 1)
			c.AdvanceTime(time.Second)
			if c.Object(api) == nil || c.Object(copied) == nil {
				t.Errorf("live %v: deleted before OLM has processed every object", live)
			}
			c.AdvanceTime(5 * time.Second)
			if deleted := c.Object(api) == nil; deleted != labelled || c.Object(copied) != nil {
				t.Errorf("live %v, labelled %v: deleted %v; the copy is %v", live, labelled, deleted, c.Object(copied))
			}
		}
	}
}

// TestOperator checks that OLM recreates an Operator as long as an object has the component label.
func TestOperator(t *testing.T) {
	c, _, _ := newOLMCluster()
	operator, crd := k8s.Ref{APIVersion: olm + "/v1", Kind: "Operator", Name: "x.ops"}, k8s.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "xs.example.com"}
	for _, labelled := range []bool{true, false} {
		if !labelled {
			c.Edit(crd, func(o k8s.Object) { delete(o["metadata"].(map[string]any), "labels") })
		}
		c.Remove(operator)
		c.AdvanceTime(time.Second)
		if exists := c.Object(operator) != nil; exists != labelled {
			t.Errorf("labelled %v: the Operator exists: %v", labelled, exists)
		}
	}
}
