package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/live/livetest"
	"github.com/quayside/quayside/report/v1alpha1"
)

// installed returns a server with n operators of 66 objects each, and what to
// ask it for.
func installed(b *testing.B, n int) (*livetest.Server, []v1alpha1.ObjectReference) {
	b.Helper()
	kinds := [][2]string{
		{"v1", "ServiceAccount"},
		{"v1", "Service"},
		{"v1", "ConfigMap"},
		{"apps/v1", "Deployment"},
		{"rbac.authorization.k8s.io/v1", "Role"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding"},
	}
	s := livetest.New(b)
	var refs []v1alpha1.ObjectReference
	for i := range n {
		for j := range 11 {
			for _, k := range kinds {
				o := ours(k[0], k[1], fmt.Sprintf("ns%d", i), fmt.Sprintf("object%d", j))
				s.Put(o)
				refs = append(refs, refTo(o))
			}
		}
	}
	return s, refs
}

// BenchmarkRead reads what 300 operators of 66 objects each have in a cluster.
// The server's own work is in it.
func BenchmarkRead(b *testing.B) {
	s, refs := installed(b, 300)
	c, err := live.Open(live.Options{File: written(b, s.Kubeconfig())})
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

// BenchmarkReadBesideLibrary reads what 30 operators have by this package and by
// client-go's dynamic client, in turns: the same pages of the same lists, as many
// at once. The server's own work is in both.
func BenchmarkReadBesideLibrary(b *testing.B) {
	s, refs := installed(b, 30)
	file := written(b, s.Kubeconfig())
	var took [2]time.Duration
	for b.Loop() {
		start := time.Now()
		c, err := live.Open(live.Options{File: file})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(b.Context(), refs); err != nil {
			b.Fatal(err)
		}
		took[0] += time.Since(start)

		start = time.Now()
		if n, err := readByLibrary(b.Context(), file, refs); err != nil || n != len(refs) {
			b.Fatal(n, err)
		}
		took[1] += time.Since(start)
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-library")
}

// readByLibrary returns how many of refs are there.
func readByLibrary(ctx context.Context, kubeconfig string, refs []v1alpha1.ObjectReference) (int, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1 // unlimited
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, ref := range refs {
		kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)] = true
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	there := map[string]bool{}
	name := func(gvk schema.GroupVersionKind, namespace, name string) string {
		return gvk.String() + " " + namespace + "/" + name
	}
	for gvk := range kinds {
		wg.Go(func() {
			err := listByLibrary(ctx, found, client, gvk, func(o metav1.Object) {
				mu.Lock()
				defer mu.Unlock()
				there[name(gvk, o.GetNamespace(), o.GetName())] = true
			})
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	n := 0
	for _, ref := range refs {
		if there[name(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)] {
			n++
		}
	}
	return n, errors.Join(errs...)
}

func listByLibrary(ctx context.Context, found discovery.DiscoveryInterface, client dynamic.Interface, gvk schema.GroupVersionKind, keep func(metav1.Object)) error {
	served, err := found.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == gvk.Kind && !strings.Contains(r.Name, "/")
	})
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(gvk.GroupVersion().WithResource(served.APIResources[i].Name)).List(ctx, opts)
	})
	pages.PageSize = 250
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "quayside.dev/package"}, func(o runtime.Object) error {
		keep(o.(metav1.Object))
		return nil
	})
}
