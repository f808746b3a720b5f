package cluster_test

import (
	"fmt"
	"testing"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

// newInstalledServer returns a server with n operators of 66 objects each, and references to these objects.
func newInstalledServer(b *testing.B, n int) (*clustertest.Server, []v1alpha1.ObjectReference) {
	b.Helper()
	kinds := [][2]string{
		{"v1", "ServiceAccount"},
		{"v1", "Service"},
		{"v1", "ConfigMap"},
		{"apps/v1", "Deployment"},
		{"rbac.authorization.k8s.io/v1", "Role"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding"},
	}
	s := clustertest.New(b)
	var refs []v1alpha1.ObjectReference
	for i := range n {
		for j := range 11 {
			for _, k := range kinds {
				o := managedObject(k[0], k[1], fmt.Sprintf("ns%d", i), fmt.Sprintf("object%d", j))
				s.Put(o)
				refs = append(refs, refTo(o))
			}
		}
	}
	return s, refs
}

// BenchmarkRead reads 300 operators of 66 objects each. The time includes the work of the test server.
func BenchmarkRead(b *testing.B) {
	s, refs := newInstalledServer(b, 300)
	c, err := cluster.Open(cluster.Options{File: writeKubeconfig(b, s.Kubeconfig())})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Requests()
		got, err := c.Read(b.Context(), refs)
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range got {
			if o.Object == nil {
				b.Fatal(o)
			}
		}
		b.ReportMetric(float64(len(s.Requests())), "requests")
	}
	b.ReportMetric(float64(len(refs)), "objects")
}
