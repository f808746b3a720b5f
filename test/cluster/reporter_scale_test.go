package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quayside/quayside/test/cluster/harness"
)

// The size of a large cluster: 20,100 objects.
const (
	manyInstallations = 300
	manyNamespaces    = 10
	configMapsEach    = 45
	accountsEach      = 20
	servicesEach      = 2
	objectsEach       = configMapsEach + accountsEach + servicesEach
)

// TestReporterScale starts the reporter in a large cluster.
func TestReporterScale(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	q, program := newBeacon(t, false), buildReporter(t)
	q.must(t, "render", "--offline")
	cluster := harness.Start(t, harness.Options{APIOnly: true, AuditUsers: []string{reporterAccount}})
	ctx := within(t, 5*time.Minute) // filling the cluster takes most of it
	setUp := only(q.rendered(t), func(o *unstructured.Unstructured) bool { return isOfReporter(o) && o.GetKind() != "Installation" })
	if _, err := applier(t, cluster).Apply(ctx, setUp); err != nil {
		t.Fatal(err)
	}
	fillCluster(ctx, t, cluster)

	began := time.Now()
	r := startReporter(ctx, t, cluster, program)
	t.Logf("all objects read after %s", time.Since(began).Round(10*time.Millisecond))
	eventually(ctx, t, "all but one are ready", func() string { return checkReadyCount(ctx, t, cluster, manyInstallations-1) })
	t.Logf("all Installations evaluated after %s", time.Since(began).Round(10*time.Millisecond))
	if s, _ := statusOf(ctx, t, cluster, "many-0", "operator-0"); s.objectStatus("ConfigMap", "operator-0-0").Health != "NotFound" || s.Summary["current"] != objectsEach-1 {
		t.Errorf("status of the Installation with a missing object: %+v", s)
	}
	checkMemory(t, r)
	checkIdle(ctx, t, r)

	changed := time.Now()
	if _, err := client(t, cluster).CoreV1().ConfigMaps("many-0").Create(ctx, newConfigMap("operator-0", "operator-0-0"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "all are ready", func() string { return checkReadyCount(ctx, t, cluster, manyInstallations) })
	t.Logf("one more object observed after %s", time.Since(changed).Round(10*time.Millisecond))
	checkMemory(t, r)
	checkWrites(t, cluster.Requests(t, time.Time{}))
}

// newConfigMap returns an object of an operator.
func newConfigMap(operator, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"quayside.dev/package": operator, "quayside.dev/version": "1.0.0", "app.kubernetes.io/managed-by": "quayside",
	}}}
}

// fillCluster creates the Installations and all expected objects except one ConfigMap.
func fillCluster(ctx context.Context, t *testing.T, cluster *harness.Cluster) {
	t.Helper()
	config := rest.CopyConfig(cluster.RESTConfig)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range manyNamespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%d", i)}}
		if _, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				if err := fillOne(ctx, t, c, cluster, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range manyInstallations {
		work <- i
	}
	close(work)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func fillOne(ctx context.Context, t *testing.T, c *kubernetes.Clientset, cluster *harness.Cluster, i int) error {
	operator, ns := fmt.Sprintf("operator-%d", i), fmt.Sprintf("many-%d", i%manyNamespaces)
	var refs []any
	for j := range objectsEach {
		o := newConfigMap(operator, fmt.Sprintf("%s-%d", operator, j))
		var err error
		kind := "ConfigMap"
		switch {
		case j >= configMapsEach+accountsEach:
			kind = "Service"
			spec := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
			_, err = c.CoreV1().Services(ns).Create(ctx, &corev1.Service{ObjectMeta: o.ObjectMeta, Spec: spec}, metav1.CreateOptions{})
		case j >= configMapsEach:
			kind = "ServiceAccount"
			_, err = c.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: o.ObjectMeta}, metav1.CreateOptions{})
		case i > 0 || j > 0:
			_, err = c.CoreV1().ConfigMaps(ns).Create(ctx, o, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		refs = append(refs, map[string]any{"apiVersion": "v1", "kind": kind, "namespace": ns, "name": o.Name, "version": "1.0.0"})
	}
	_, err := installations(t, cluster).Namespace(ns).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "quayside.dev/v1alpha1", "kind": "Installation", "metadata": map[string]any{"name": operator, "namespace": ns},
		"spec": map[string]any{"package": operator, "version": "1.0.0", "pin": "sha256:" + strings.Repeat("0", 64), "objects": refs},
	}}, metav1.CreateOptions{})
	return err
}

// checkReadyCount returns "" if want Installations are ready and all others are evaluated, otherwise both counts.
func checkReadyCount(ctx context.Context, t *testing.T, cluster *harness.Cluster, want int) string {
	t.Helper()
	list, err := installations(t, cluster).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready, judged := 0, 0
	for i := range list.Items {
		switch readStatus(t, &list.Items[i]).condition("Ready").Status {
		case metav1.ConditionTrue:
			ready, judged = ready+1, judged+1
		case metav1.ConditionFalse:
			judged++
		}
	}
	if ready == want && judged == manyInstallations {
		return ""
	}
	time.Sleep(250 * time.Millisecond) // the list is long
	return fmt.Sprintf("%d are ready, %d judged", ready, judged)
}

// checkMemory checks that the peak of the resident memory is below 96 MiB: three quarters of the memory limit in
// the reporter's Deployment. The program file itself takes about 30 MiB of this memory.
func checkMemory(t *testing.T, r *reporter) {
	t.Helper()
	const most = 96 << 10
	now, peak := r.memory(t)
	t.Logf("resident: %.1f MiB, at the peak %.1f MiB", float64(now)/1024, float64(peak)/1024)
	if peak >= most {
		t.Errorf("resident: %d KiB at the peak, want less than %d", peak, most)
	}
}

// checkIdle checks that the reporter sends no requests while nothing changes, except to keep watches open.
func checkIdle(ctx context.Context, t *testing.T, r *reporter) {
	t.Helper()
	const span = 12 * time.Second
	time.Sleep(time.Second) // wait for the last Event
	began := time.Now()
	select {
	case <-time.After(span):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	asked := r.cluster.Requests(t, began)
	watches := 0
	for _, r := range asked {
		if r.Verb == "watch" {
			watches++
		} else {
			t.Errorf("idle: request %s", r)
		}
	}
	perMinute := float64(watches) * float64(time.Minute) / float64(span)
	t.Logf("idle: %.0f requests a minute", perMinute)
	if perMinute > 10 {
		t.Errorf("idle: %.0f requests a minute to keep watches open: %v", perMinute, asked)
	}
}
