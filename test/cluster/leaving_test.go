package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestLeavingOLM brings back every cluster of the corpus that OLM runs in, with its
// operators of all install modes, in one cluster, and has them leave OLM.
func TestLeavingOLM(t *testing.T) {
	t.Parallel() // it has servers of its own
	ctx := within(t, 15*time.Minute)
	clusters := dumps(t)
	w := restore(ctx, t, clusters, clusters.Before(), gitops{profile: "flux", url: "https://git.example.com/fleet.git"}, harness.Options{})
	w.predicted(ctx, t)
	w.settle(ctx, t)
	w.naive(ctx, t, "grafana", "team-a")
}

// settle waits until every Deployment runs.
func (w *restored) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	list, err := client(t, w.cluster).AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, d := range list.Items {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		o.SetNamespace(d.Namespace)
		o.SetName(d.Name)
		all = append(all, o)
	}
	if err := applier(t, w.cluster).Await(ctx, all); err != nil {
		t.Fatal(err)
	}
}

// census is the UID of every object, by its name, without what comes and goes by itself.
type census map[string]types.UID

// count takes the census.
func (w *restored) count(ctx context.Context, t *testing.T) census {
	t.Helper()
	list, err := applier(t, w.cluster).List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	out := census{}
	for _, o := range list {
		switch o.GetKind() {
		case "Event", "Lease", "Pod", "EndpointSlice", "Endpoints", "IPAddress":
		default:
			out[idOf(o)] = o.GetUID()
		}
	}
	return out
}

// lost returns what there was before and is not there now, and what was made anew.
func (before census) lost(now census) (gone, anew []string) {
	for name, uid := range before {
		switch now[name] {
		case uid:
		case "":
			gone = append(gone, name)
		default:
			anew = append(anew, name)
		}
	}
	slices.Sort(gone)
	slices.Sort(anew)
	return gone, anew
}

// naive deletes one operator's Subscription and ClusterServiceVersion as `kubectl
// delete` does, then OLM's copy in a target namespace, and wants that to lose what OLM's
// own objects own, so that the checks of this test are known to see a loss. OLM itself
// does not run: what its finalizer deletes beside (ClusterRoles, webhooks) stays.
func (w *restored) naive(ctx context.Context, t *testing.T, namespace, target string) {
	t.Helper()
	rights := w.rights(ctx, t, []string{namespace})
	before := w.count(ctx, t)
	background := metav1.DeletePropagationBackground
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: name}
	}
	csvs := w.client.Resource(resource("clusterserviceversions"))
	remove := func(of schema.GroupVersionResource, at string) {
		list, err := w.client.Resource(of).Namespace(at).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if at == target && o.GetLabels()["olm.copiedFrom"] != namespace {
				continue
			}
			if err := w.client.Resource(of).Namespace(at).Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(resource("subscriptions"), namespace)
	remove(resource("clusterserviceversions"), namespace)
	left, err := csvs.Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].GetDeletionTimestamp() == nil {
		t.Fatalf("without OLM a ClusterServiceVersion hangs on its finalizer; got %d of them, %v", len(left.Items), err)
	}
	if _, err := csvs.Namespace(namespace).Patch(ctx, left.Items[0].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"Deployment.apps", "InstallPlan.operators.coreos.com", "OperatorCondition.operators.coreos.com", "Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "Service", "ServiceAccount"}
	gone := w.loses(ctx, t, before, namespace, want)
	for _, name := range gone {
		if strings.HasPrefix(name, "ClusterRole") {
			t.Errorf("the naive way: %s went without OLM", name)
		}
	}
	if lost := rights.differences(ctx, t, client(t, w.cluster)); len(lost) == 0 {
		t.Error("the naive way lost no right")
	}
	before = w.count(ctx, t)
	remove(resource("clusterserviceversions"), target)
	w.loses(ctx, t, before, target, []string{"Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io"})
}

// loses waits until a namespace has lost an object of each of the kinds, and returns
// what the cluster has lost.
func (w *restored) loses(ctx context.Context, t *testing.T, before census, namespace string, kinds []string) []string {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		gone, _ := before.lost(w.count(ctx, t))
		missing := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
			return slices.ContainsFunc(gone, func(name string) bool { return strings.HasPrefix(name, kind+" "+namespace+"/") })
		})
		if len(missing) == 0 {
			t.Logf("the naive way lost %d objects of %s: %v", len(gone), namespace, gone)
			return gone
		}
		if time.Now().After(limit) {
			t.Fatalf("the naive way: no %v of %s was lost, but %v", missing, namespace, gone)
		}
	}
}

// granted is what ServiceAccounts may: questions whose answer is yes.
type granted []answer

// rights returns what the ServiceAccounts of the operators in some namespaces may, of each
// account and each namespace in which it may anything a few.
func (w *restored) rights(ctx context.Context, t *testing.T, namespaces []string) granted {
	t.Helper()
	list, err := client(t, w.cluster).AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var accounts []string
	for _, d := range list.Items {
		if slices.Contains(namespaces, d.Namespace) {
			name := d.Spec.Template.Spec.ServiceAccountName
			accounts = append(accounts, d.Namespace+"/"+orDefault(name))
		}
	}
	slices.Sort(accounts)
	accounts = slices.Compact(accounts)
	var out granted
	for _, a := range modelled(ctx, t, w.cluster, buildIn(t, "effective", "test/cluster/cmd/effective/main.go"), accounts) {
		if a.Allowed && a.Grant.Role == "" {
			out = append(out, a)
		}
	}
	return out
}

func orDefault(account string) string {
	if account == "" {
		return "default"
	}
	return account
}

// some returns at most n of the questions for each account and namespace.
func (g granted) some(n int) granted {
	seen := map[[2]string]int{}
	var out granted
	for _, a := range g {
		key := [2]string{a.Account, a.Grant.Namespace}
		if seen[key]++; seen[key] <= n {
			out = append(out, a)
		}
	}
	return out
}

// differences returns what is not answered yes any more.
func (g granted) differences(ctx context.Context, t *testing.T, asking *kubernetes.Clientset) []string {
	t.Helper()
	out := make([]string, len(g))
	var wg sync.WaitGroup
	room := make(chan struct{}, 8)
	for i, a := range g {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			r, err := asking.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: a.question()}, metav1.CreateOptions{})
			switch {
			case err != nil && ctx.Err() == nil:
				out[i] = err.Error()
			case err == nil && !r.Status.Allowed:
				out[i] = fmt.Sprintf("%s may no longer %+v", a.Account, a.Grant)
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// watched is what is asked again and again while operators leave OLM.
type watched struct {
	rounds int
	faults []string // with their times
	end    func()
}

// watch asks for rights and writes custom resources every 200 ms, until it is ended.
func (w *restored) watch(ctx context.Context, t *testing.T, rights granted, written []*unstructured.Unstructured, read []string) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	out := &watched{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	fault := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			out.faults = append(out.faults, time.Now().Format("15:04:05.000 ")+what)
		}
	}
	every := func(do func(round int)) {
		wg.Go(func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for round := 1; ; round++ {
				do(round)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	asking, raw := client(t, w.cluster), client(t, w.cluster).RESTClient()
	every(func(round int) {
		for _, d := range rights.differences(ctx, t, asking) {
			fault(d)
		}
		mu.Lock()
		out.rounds = round
		mu.Unlock()
	})
	every(func(round int) {
		for _, o := range written {
			if err := w.touch(ctx, o, round); err != nil {
				fault("writing " + idOf(o) + ": " + err.Error())
			}
		}
		for _, path := range read {
			if err := raw.Get().AbsPath(path).Do(ctx).Error(); err != nil {
				fault("reading " + path + ": " + err.Error())
			}
		}
	})
	out.end = func() { cancel(); wg.Wait() }
	return out
}

// touch writes to an object what does nobody any harm.
func (w *restored) touch(ctx context.Context, o *unstructured.Unstructured, round int) error {
	of, err := w.resource(o)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.example/round":"%d"}}}`, round)
	_, err = of.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "user"})
	return err
}

// used makes a custom resource of each operator that shows how one looks, and returns
// them with those that were there.
func (w *restored) used(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	add := func(o *unstructured.Unstructured) bool {
		of, err := w.resource(o)
		if err != nil {
			return false
		}
		if _, err = of.Create(ctx, o, metav1.CreateOptions{FieldManager: "user"}); err == nil || apierrors.IsAlreadyExists(err) {
			out = append(out, o)
			return true
		}
		t.Logf("%s cannot be made: %v", idOf(o), err)
		return false
	}
	csvs, err := w.client.Resource(schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, csv := range csvs.Items {
		if csv.GetLabels()["olm.copiedFrom"] != "" {
			continue
		}
		namespace, _, _ := strings.Cut(csv.GetAnnotations()["olm.targetNamespaces"], ",")
		var samples []map[string]any
		if json.Unmarshal([]byte(csv.GetAnnotations()["alm-examples"]), &samples) != nil {
			continue
		}
		for _, s := range samples {
			o := &unstructured.Unstructured{Object: s}
			if !strings.Contains(o.GroupVersionKind().Group, ".") || strings.HasSuffix(o.GroupVersionKind().Group, ".k8s.io") || o.GetName() == "" {
				continue
			}
			o.SetNamespace(orTeam(namespace))
			if add(o) {
				break
			}
		}
	}
	return out
}

func orTeam(namespace string) string {
	if namespace == "" {
		return "team-a"
	}
	return namespace
}
