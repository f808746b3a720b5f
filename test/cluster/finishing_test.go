package cluster_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestFinishing moves operators out of OLM, including operators with webhooks and an aggregated API, and then
// removes OLM's marks from their objects. Each Deployment must get exactly one new ReplicaSet, as in the plan.
// Only objects that the plan deletes may be lost or recreated. In the end, the cluster must match the tree.
func TestFinishing(t *testing.T) {
	t.Parallel() // has its own servers
	ctx := within(t, 10*time.Minute)
	w := restoreCluster(ctx, t, readClusters(t), []string{"aggregated/before.json", "grafana/before.json", "dynatrace/before.json"}, gitops{profile: "flux", url: "https://git.example.com/fleet.git"}, harness.Options{})
	w.awaitDeployments(ctx, t)
	w.awaitGarbageCollector(ctx, t)
	w.must(t, "render", "--offline")
	w.writePlan(t)
	w.runner = w.cluster.Kubeconfig
	w.finishPlan(t)
	w.awaitDeployments(ctx, t)

	secrets, err := client(t, w.cluster).CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: "olm.managed=true"})
	if err != nil {
		t.Fatal(err)
	}
	authorities := ""
	for _, s := range secrets.Items {
		authorities += string(s.Data["olmCAKey"])
	}
	w.write(t, "ca.crt", authorities)
	settings, err := os.ReadFile(filepath.Join(w.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "quayside.yaml", string(settings)+"  certificates: secret\n  certificateSecret: {name: \"%s-cert\", caFile: ca.crt}\n")
	w.must(t, "adopt", "run", "--finish", "--offline")
	w.must(t, "render", "--offline")
	t.Log(w.must(t, "adopt", "plan", "--kubeconfig", w.cluster.Kubeconfig, "--offline", "--file", "finish.yaml"))
	text, err := os.ReadFile(filepath.Join(w.dir, "finish.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var named struct {
		Operators []struct {
			Namespace string
			Restarts  []string
		}
	}
	var p planOutput
	if err := yaml.Unmarshal(text, &named); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	restarts := map[string]int{}
	for _, op := range named.Operators {
		for _, name := range op.Restarts {
			restarts[op.Namespace+"/"+name] = 1
		}
	}
	if len(restarts) != 4 {
		t.Errorf("restarts: %v", restarts)
	}
	before := w.takeCensus(ctx, t)
	w.must(t, "adopt", "run", "finish.yaml", "--kubeconfig", w.runner, "--offline", "--yes", "--clean-up", "--watch", "1s")
	w.must(t, "adopt", "verify", "finish.yaml", "--kubeconfig", w.runner)
	w.awaitDeployments(ctx, t)

	goes, got := map[string]bool{}, map[string]int{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			goes[fromPlan(a.Object)] = goes[fromPlan(a.Object)] || a.Do == "delete"
		}
	}
	after := w.takeCensus(ctx, t)
	gone, anew := before.lost(after)
	gone = slices.DeleteFunc(gone, func(id string) bool { return goes[id] || strings.HasPrefix(id, "ReplicaSet.apps ") }) // old ones beyond the history limit are deleted
	if len(gone)+len(anew) > 0 {
		t.Errorf("lost: %v; recreated: %v", gone, anew)
	}
	for id := range after {
		if name, ok := strings.CutPrefix(id, "ReplicaSet.apps "); ok && before[id] == "" {
			got[name[:strings.LastIndex(name, "-")]]++
		}
	}
	if !maps.Equal(got, restarts) {
		t.Errorf("new ReplicaSets: %v, want %v", got, restarts)
	}
	w.checkMatchesTree(t)
	if out := w.must(t, "adopt", "plan", "--kubeconfig", w.cluster.Kubeconfig, "--offline", "--file", "again.yaml", "-o", "json"); !strings.Contains(out, `"steps": []`) {
		t.Errorf("leftover OLM objects:\n%s", out)
	}
}

// awaitGarbageCollector waits until the garbage collector, which discovers new kinds twice a minute, handles
// OperatorConditions.
func (w *restoredCluster) awaitGarbageCollector(ctx context.Context, t *testing.T) {
	t.Helper()
	maps := client(t, w.cluster).CoreV1().ConfigMaps("default")
	owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition"}}
	o.SetNamespace("default")
	o.SetName("owned")
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}})
	of, err := w.resource(o)
	if err == nil {
		_, err = of.Create(ctx, o, metav1.CreateOptions{})
	}
	if err == nil {
		err = maps.Delete(ctx, "owner", metav1.DeleteOptions{})
	}
	for err == nil {
		time.Sleep(250 * time.Millisecond)
		_, err = of.Get(ctx, "owned", metav1.GetOptions{})
	}
	if !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// checkMatchesTree checks that the objects in the cluster match the tree.
func (w *restoredCluster) checkMatchesTree(t *testing.T) {
	t.Helper()
	rep := w.inspect(t)
	for id, o := range rep.objectsByID() {
		mine := slices.Contains([]string{"CustomResourceDefinition", "APIService", "Namespace"}, o.Kind)
		if o.Class != "equal" && o.Class != "changed" || mine || len(o.Fields) == 0 {
			continue
		}
		text, _ := json.Marshal(o.Fields)
		t.Errorf("%s differs from the tree: %s", id, text)
	}
}
