package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestReturningToOLM stops the migration of operators out of OLM after each step in turn, and reverts the
// migration. The previous objects must be unchanged, with their UIDs and pods. No object of quayside may
// remain. OLM does not run. Instead, simulateOLM recreates ClusterServiceVersions.
func TestReturningToOLM(t *testing.T) {
	if os.Getenv(leavingVariable) != "all" {
		t.Skipf("%s is not \"all\": run make leaving-test to test reverts", leavingVariable)
	}
	t.Parallel() // has its own servers
	ctx := within(t, 15*time.Minute)
	namespaces := []string{"grafana", "argocd", "rabbitmq", "windup"}
	files := []string{"aggregated/before.json"} // the users of the others have permissions for its API
	for _, namespace := range namespaces {
		files = append(files, namespace+"/before.json")
	}
	w := restoreCluster(ctx, t, readClusters(t), files, gitops{profile: "flux", url: "https://git.example.com/fleet.git"}, harness.Options{})
	w.awaitDeployments(ctx, t)
	w.must(t, "render", "--offline")
	w.simulateOLM(ctx, t)
	for i, namespace := range namespaces {
		for last := 1 + i%2; w.runAndReturn(ctx, t, namespace, fmt.Sprintf("%s-%d.yaml", namespace, last), last); last += 2 {
		}
	}
}

// runAndReturn runs the steps of a namespace's plan up to the step with the number last, and reverts them. It
// returns false if the clean-up of the plan comes before that step.
func (w *restoredCluster) runAndReturn(ctx context.Context, t *testing.T, namespace, file string, last int) bool {
	t.Helper()
	cluster := []string{"--kubeconfig", w.cluster.Kubeconfig, "--offline"}
	w.runWithFindings(t, append([]string{"adopt", "plan", "--namespace", namespace, "--file", file}, cluster...)...)
	text, err := os.ReadFile(filepath.Join(w.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var p planOutput
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, step := range p.Steps {
		if step.Name == "clean-up" {
			return false
		}
		if name = step.Name; step.Number == last {
			break
		}
	}
	before, uids := w.contents(ctx, t)
	for step := 1; step <= last; step++ {
		w.must(t, append([]string{"adopt", "run", file, "--yes", "--olm-sync", "1s", "--watch", "1s", "--step", strconv.Itoa(step)}, cluster...)...)
	}
	w.revertPlan(t, file)
	after, now := w.contents(ctx, t)
	restarted := func(id string) bool { // a step restarts OLM
		return strings.HasPrefix(id, "Deployment.apps olm/") || strings.HasPrefix(id, "ReplicaSet.apps olm/")
	}
	for id, was := range before {
		switch is, there := after[id]; {
		case restarted(id):
		case !there:
			t.Errorf("revert from step %d (%s) of %s: %s is missing", last, name, namespace, id)
		case !isRecreatedByOLM(id) && uids[id] != now[id]:
			t.Errorf("revert from step %d (%s) of %s: %s was recreated", last, name, namespace, id)
		case !reflect.DeepEqual(was, is):
			a, _ := json.Marshal(was)
			b, _ := json.Marshal(is)
			t.Errorf("revert from step %d (%s) of %s: %s differs\n%s\n%s", last, name, namespace, id, a, b)
		}
	}
	for id := range after {
		if _, there := before[id]; !there && !restarted(id) {
			t.Errorf("revert from step %d (%s) of %s: leftover %s", last, name, namespace, id)
		}
	}
	t.Logf("reverted from step %d (%s) of %s", last, name, namespace)
	return true
}

// revertPlan reverts the plan, and confirms manual steps as done.
func (w *restoredCluster) revertPlan(t *testing.T, file string) {
	t.Helper()
	args := []string{"adopt", "revert", file, "--yes", "-o", "json", "--kubeconfig", w.cluster.Kubeconfig}
	for range 6 {
		stdout, stderr, code := w.run(t, args...)
		if code == 0 {
			return
		}
		var r runOutput
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		waits := slices.IndexFunc(r.Steps, func(s runStep) bool { return s.State == "waiting" })
		if waits < 0 {
			t.Fatalf("quayside adopt revert: exit code %d\n%s", code, stderr)
		}
		args = append(args, "--done", strconv.Itoa(r.Steps[waits].Number))
	}
	t.Fatal("quayside adopt revert does not finish")
}

// isRecreatedByOLM reports whether OLM recreates an object when it manages an operator again.
func isRecreatedByOLM(id string) bool {
	return strings.HasPrefix(id, "Subscription.operators.coreos.com ") || strings.HasPrefix(id, "ClusterServiceVersion.operators.coreos.com ")
}

// contents returns the contents and the UIDs of all objects. It omits fields and objects that the API server
// and OLM may change at any time.
func (w *restoredCluster) contents(ctx context.Context, t *testing.T) (map[string]any, map[string]any) {
	t.Helper()
	list, err := applier(t, w.cluster).ListWhole(ctx)
	if err != nil {
		t.Fatal(err)
	}
	contents, uids := map[string]any{}, map[string]any{}
	for _, o := range list {
		switch o.GetKind() {
		case "Event", "Lease", "Pod", "EndpointSlice", "Endpoints", "IPAddress", "Job", "PodMetrics":
			continue
		}
		id := idOf(o)
		uids[id] = o.GetUID()
		delete(o.Object, "status")
		meta := map[string]any{}
		if l := o.GetLabels(); len(l) > 0 {
			meta["labels"] = l
		}
		a := o.GetAnnotations()
		if o.GetKind() == "ReplicaSet" { // these are copied from the Deployment, and never removed
			maps.DeleteFunc(a, func(key, _ string) bool { return strings.HasPrefix(key, "quayside.dev/") })
		}
		if len(a) > 0 {
			meta["annotations"] = a
		}
		o.Object["metadata"] = meta
		if strings.HasPrefix(id, "Subscription.operators.coreos.com ") {
			unstructured.RemoveNestedField(o.Object, "spec", "startingCSV")
		}
		contents[id] = o.Object
	}
	return contents, uids
}

// simulateOLM acts in place of OLM until the test ends. If OLM's controllers are scaled up, it recreates each
// missing ClusterServiceVersion that a Subscription requests, with its copies.
func (w *restoredCluster) simulateOLM(ctx context.Context, t *testing.T) {
	t.Helper()
	resource := func(group, version, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
	}
	csvs := w.client.Resource(resource("operators.coreos.com", "v1alpha1", "clusterserviceversions"))
	subs := w.client.Resource(resource("operators.coreos.com", "v1alpha1", "subscriptions"))
	deployments := w.client.Resource(resource("apps", "v1", "deployments"))
	known, err := csvs.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied := func(csv unstructured.Unstructured) string { return csv.GetLabels()["olm.copiedFrom"] }
	slices.SortStableFunc(known.Items, func(a, b unstructured.Unstructured) int { // the original comes last
		return strings.Compare(copied(b), copied(a))
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	runs := func() bool {
		olm, err := deployments.Namespace("olm").Get(ctx, "olm-operator", metav1.GetOptions{})
		if err != nil {
			return false
		}
		n, _, _ := unstructured.NestedInt64(olm.Object, "spec", "replicas")
		return n > 0
	}
	install := func(csv unstructured.Unstructured) {
		o := csv.DeepCopy()
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		made, err := csvs.Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: "olm"})
		if err == nil {
			made.Object["status"] = csv.Object["status"]
			_, err = csvs.Namespace(o.GetNamespace()).UpdateStatus(ctx, made, metav1.UpdateOptions{FieldManager: "olm"})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			t.Errorf("simulating OLM: %v", err)
		}
	}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond)
			if !runs() {
				continue
			}
			list, err := subs.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, sub := range list.Items {
				want, _, _ := unstructured.NestedString(sub.Object, "spec", "startingCSV")
				if _, err := csvs.Namespace(sub.GetNamespace()).Get(ctx, want, metav1.GetOptions{}); want == "" || !apierrors.IsNotFound(err) {
					continue
				}
				for _, csv := range known.Items {
					if csv.GetName() == want && (csv.GetNamespace() == sub.GetNamespace() || copied(csv) == sub.GetNamespace()) {
						install(csv)
					}
				}
			}
		}
	}()
}
