package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// leavingVariable is the name of an environment variable. If its value is "all", every operator of the corpus
// leaves OLM, instead of only a few.
const leavingVariable = "QUAYSIDE_LEAVING"

// variedOperators returns a few different operators: with each install mode, with webhooks, conversions and an
// aggregated API, with copies in other namespaces, and with a dependency.
func variedOperators() []string {
	var out []string
	for _, namespace := range []string{"aggregated", "argocd", "dynatrace", "gitlab", "grafana", "kafka", "rabbitmq", "windup"} {
		out = append(out, namespace+"/before.json")
	}
	return out
}

// TestLeavingOLM restores the recorded clusters of the corpus, with OLM, in one cluster, and moves their
// operators out of OLM.
func TestLeavingOLM(t *testing.T) {
	t.Parallel() // has its own servers
	clusters, files, limit := readClusters(t), variedOperators(), 15*time.Minute
	if os.Getenv(leavingVariable) == "all" {
		files, limit = clusters.Before(), 80*time.Minute
	}
	ctx := within(t, limit)
	w := restoreCluster(ctx, t, clusters, files, gitops{profile: "flux", url: "https://git.example.com/fleet.git"}, harness.Options{})
	t.Run("predicted", func(t *testing.T) { w.checkPredictions(ctx, t) })
	w.awaitDeployments(ctx, t)
	t.Run("naive", func(t *testing.T) { w.checkPlainDeletion(ctx, t, "grafana", "team-a") })
	t.Run("leave", func(t *testing.T) { w.leaveOLM(ctx, t) })
}

// planOutput mirrors the parts of a plan that the tests read.
type planOutput struct {
	Operators []struct{ Namespace, Package, CSV string }
	Steps     []struct {
		Number                  int
		Name, Namespace, Manual string
		Actions                 []struct {
			Do          string `json:"verb"`
			Object, UID string
		}
	}
}

// runOutput mirrors the output of `adopt run -o json`.
type runOutput struct {
	Steps  []runStep
	Probes []struct {
		Kind, Failure             string
		Targets, Probes, Unprobed int
		Failures                  int
	}
}

type runStep struct {
	Number                 int
	Name, Namespace, State string
	Actions                []struct {
		Do              string `json:"verb"`
		Object, Outcome string
	}
}

// leaveOLM moves all eligible operators out of OLM. Meanwhile, it kills the program repeatedly. It checks that
// no object or permission is lost.
func (w *restoredCluster) leaveOLM(ctx context.Context, t *testing.T) {
	written := w.createSamples(ctx, t)
	w.must(t, "render", "--offline")
	p := w.writePlan(t)
	var namespaces []string
	for _, op := range p.Operators {
		namespaces = append(namespaces, op.Namespace)
	}
	if want := map[bool]int{false: 8, true: 15}[os.Getenv(leavingVariable) == "all"]; len(namespaces) < want {
		t.Errorf("%d operators leave, want %d: %v", len(namespaces), want, p.Operators)
	}
	w.createRunner(ctx, t)
	rights := w.operatorRights(ctx, t, namespaces)
	before := w.takeCensus(ctx, t)
	watched := w.watch(ctx, t, rights.sampled(3), written, []string{
		"/apis/widgets.lab.example/v1alpha1", "/apis/argoproj.io/v1alpha1/namespaces/team-a/argocds", "/apis/dynatrace.com/v1beta5/namespaces/dynatrace/dynakubes",
	})
	begun := time.Now()
	kills := w.runWithKills(ctx, t, p)
	done := w.finishPlan(t)
	for _, p := range done.Probes {
		if t.Logf("probes: %+v", p); p.Failures > 0 {
			t.Errorf("a probe of %s failed: %s", p.Kind, p.Failure)
		}
	}
	took := time.Since(begun)
	watched.end()
	t.Logf("%d operators left in %s and %d kills; %d permissions and %d custom resources checked %d times", len(p.Operators), took.Round(time.Second), kills, len(rights.sampled(3)), len(written), watched.rounds)
	for _, s := range done.Steps {
		if s.State != "already-done" && s.State != "done" && s.Name != "certificates" && s.Name != "uninstall" {
			t.Errorf("step %d (%s %s) is %s", s.Number, s.Name, s.Namespace, s.State)
		}
	}
	w.checkKept(ctx, t, p, before)
	for _, d := range rights.lostRights(ctx, t, client(t, w.cluster)) {
		t.Error(d)
	}
	if stdout, stderr, code := w.run(t, "adopt", "verify", "adopt-plan.yaml", "--kubeconfig", w.runner); code != 0 {
		t.Errorf("quayside adopt verify: exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, s := range w.finishPlan(t).Steps {
		if len(s.Actions) > 0 {
			t.Errorf("the second run executes actions in step %d", s.Number)
		}
	}
}

// writePlan writes the plan, and returns it.
func (w *restoredCluster) writePlan(t *testing.T) planOutput {
	t.Helper()
	args := []string{"adopt", "plan", "--kubeconfig", w.cluster.Kubeconfig, "--offline"}
	stdout, stderr, code := w.run(t, args...)
	if code > 1 {
		t.Fatalf("quayside adopt plan: %d\n%s", code, stderr)
	}
	t.Log(stdout[:min(len(stdout), 2000)])
	text, err := os.ReadFile(filepath.Join(w.dir, "adopt-plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p planOutput
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// createRunner creates a user with the permissions that `adopt plan --rbac` prints.
func (w *restoredCluster) createRunner(ctx context.Context, t *testing.T) {
	t.Helper()
	list := objects(t, w.must(t, "adopt", "plan", "--kubeconfig", w.cluster.Kubeconfig, "--rbac", "--file", "adopt-plan.yaml", "--offline"))
	for _, role := range slices.Clone(list) {
		binding := &unstructured.Unstructured{Object: map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": role.GetName()},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "runner"}},
		}}
		binding.SetGroupVersionKind(role.GroupVersionKind().GroupVersion().WithKind(role.GetKind() + "Binding"))
		binding.SetNamespace(role.GetNamespace())
		binding.SetName(role.GetName())
		list = append(list, binding)
	}
	if _, err := applier(t, w.cluster).Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
	config, err := w.cluster.User("runner")
	if err != nil {
		t.Fatal(err)
	}
	if w.runner, err = w.cluster.WriteKubeconfig("runner", config); err != nil {
		t.Fatal(err)
	}
}

// runWithKills runs the plan repeatedly and kills the program, first between steps and then at
// random moments. It returns the number of kills.
func (w *restoredCluster) runWithKills(ctx context.Context, t *testing.T, p planOutput) int {
	t.Helper()
	kills, random := 0, rand.New(rand.NewPCG(1, 2))
	boundaries := p.boundaries(random)
	for _, step := range boundaries {
		kills += w.runAndKill(ctx, t, fmt.Sprintf("step %d of", step), 0)
	}
	if kills < len(boundaries) {
		t.Errorf("the program was killed %d times at the boundaries of steps %v", kills, boundaries)
	}
	for range 2 {
		kills += w.runAndKill(ctx, t, "", 1500*time.Millisecond+time.Duration(random.IntN(2500))*time.Millisecond)
	}
	return kills
}

// boundaries returns the steps before which the program is killed: one step of each kind, or every step.
func (p planOutput) boundaries(random *rand.Rand) []int {
	sorts := map[string][]int{}
	var out []int
	for _, s := range p.Steps {
		if s.Manual == "" {
			sorts[s.Name] = append(sorts[s.Name], s.Number)
			out = append(out, s.Number)
		}
	}
	if os.Getenv(leavingVariable) == "all" {
		return out
	}
	out = nil
	for _, name := range slices.Sorted(maps.Keys(sorts)) {
		out = append(out, sorts[name][random.IntN(len(sorts[name]))])
	}
	slices.Sort(out)
	return out
}

// runAndKill runs the plan. It kills the program after the given time, or earlier if the program prints a line
// that contains said. It returns 1 if it killed the program, otherwise 0.
func (w *restoredCluster) runAndKill(ctx context.Context, t *testing.T, said string, after time.Duration) int {
	t.Helper()
	if after == 0 {
		after = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, w.runArguments()...) // sends SIGKILL when ctx ends
	cmd.Dir = w.dir
	cmd.Env = append(cmd.Environ(), "XDG_CACHE_HOME="+filepath.Join(w.dir, ".cache"), "QUAYSIDE_ALLOW_OUTSIDE=/")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said != "" && strings.Contains(lines.Text(), said) {
			cancel()
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() > 1 {
		t.Errorf("killed run: %v", err)
	}
	if cmd.ProcessState.ExitCode() == -1 {
		return 1
	}
	return 0
}

func (w *restoredCluster) runArguments() []string {
	return []string{"adopt", "run", "adopt-plan.yaml", "--kubeconfig", w.runner, "--offline", "--yes", "--clean-up", "--olm-sync", "1s", "--watch", "3s"}
}

// finishPlan continues the plan to its end.
func (w *restoredCluster) finishPlan(t *testing.T) runOutput {
	t.Helper()
	stdout, stderr, code := w.run(t, append(w.runArguments(), "-o", "json")...)
	if code > 1 {
		t.Fatalf("quayside adopt run: %d\n%s", code, stderr)
	}
	var out runOutput
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatal(err)
	}
	t.Logf("exit code %d\n%s", code, stderr[max(0, len(stderr)-1000):])
	return out
}

// checkKept checks that all objects that the plan does not delete exist unchanged, that no object
// is owned by a deleted ClusterServiceVersion, and that there is no new ReplicaSet.
func (w *restoredCluster) checkKept(ctx context.Context, t *testing.T, p planOutput, before census) {
	t.Helper()
	goes := map[string]bool{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Do == "orphan" || a.Do == "delete" {
				goes[fromPlan(a.Object)] = true
			}
		}
	}
	after := w.takeCensus(ctx, t)
	gone, anew := before.lost(after)
	planned := 0
	for _, name := range gone {
		if goes[name] {
			planned++
			continue
		}
		t.Errorf("%s is lost", name)
	}
	for _, name := range anew {
		t.Errorf("%s was recreated", name)
	}
	for name := range after {
		if strings.HasPrefix(name, "ReplicaSet.apps ") && before[name] == "" && !strings.HasPrefix(name, "ReplicaSet.apps olm/") { // OLM is restarted
			t.Errorf("%s is new: pods restarted", name)
		}
	}
	t.Logf("%d objects before, %d of them deleted of %d planned; %d after", len(before), planned, len(goes), len(after))
}

// fromPlan converts the plan's "apps/v1 Deployment ns/name" to an object ID.
func fromPlan(ref string) string {
	parts := strings.Split(ref, " ")
	if len(parts) != 3 {
		return ref
	}
	kind := schema.FromAPIVersionAndKind(parts[0], parts[1])
	namespace, name, ok := strings.Cut(parts[2], "/")
	if !ok {
		namespace, name = "", parts[2]
	}
	return objectID(kind.Group, kind.Kind, namespace, name)
}

// awaitDeployments waits until every Deployment is available.
func (w *restoredCluster) awaitDeployments(ctx context.Context, t *testing.T) {
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

// census maps object IDs to UIDs. It omits transient objects.
type census map[string]types.UID

// takeCensus returns the census of the cluster.
func (w *restoredCluster) takeCensus(ctx context.Context, t *testing.T) census {
	t.Helper()
	list, err := applier(t, w.cluster).List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	out := census{}
	for _, o := range list {
		switch o.GetKind() {
		case "Event", "Lease", "Pod", "EndpointSlice", "Endpoints", "IPAddress", "Job": // Jobs that unpack bundles are eventually deleted
		default:
			out[idOf(o)] = o.GetUID()
		}
	}
	return out
}

// lost compares two censuses, and returns the objects that were deleted (gone) or recreated (anew), sorted.
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

// checkPlainDeletion deletes an operator's Subscription and ClusterServiceVersion like `kubectl delete`, and
// then OLM's copy of the ClusterServiceVersion in a target namespace. The objects that these own must be lost:
// this proves that the test detects a loss. Objects that OLM's finalizer would delete (ClusterRoles, webhooks)
// remain, because OLM does not run.
func (w *restoredCluster) checkPlainDeletion(ctx context.Context, t *testing.T, namespace, target string) {
	t.Helper()
	rights := w.operatorRights(ctx, t, []string{namespace})
	before := w.takeCensus(ctx, t)
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
		t.Fatalf("without OLM, a ClusterServiceVersion waits for its finalizer; got %d, %v", len(left.Items), err)
	}
	if _, err := csvs.Namespace(namespace).Patch(ctx, left.Items[0].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"Deployment.apps", "InstallPlan.operators.coreos.com", "OperatorCondition.operators.coreos.com", "Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "Service", "ServiceAccount"}
	gone := w.awaitLosses(ctx, t, before, namespace, want)
	for _, name := range gone {
		if strings.HasPrefix(name, "ClusterRole") {
			t.Errorf("plain deletion: %s was deleted without OLM", name)
		}
	}
	if lost := rights.lostRights(ctx, t, client(t, w.cluster)); len(lost) == 0 {
		t.Error("plain deletion lost no permission")
	}
	before = w.takeCensus(ctx, t)
	remove(resource("clusterserviceversions"), target)
	w.awaitLosses(ctx, t, before, target, []string{"Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io"})
}

// awaitLosses waits until a namespace has lost an object of each of the kinds. It returns all lost objects of
// the cluster.
func (w *restoredCluster) awaitLosses(ctx context.Context, t *testing.T, before census, namespace string, kinds []string) []string {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		gone, _ := before.lost(w.takeCensus(ctx, t))
		missing := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
			return slices.ContainsFunc(gone, func(name string) bool { return strings.HasPrefix(name, kind+" "+namespace+"/") })
		})
		if len(missing) == 0 {
			t.Logf("plain deletion lost %d objects of %s: %v", len(gone), namespace, gone)
			return gone
		}
		if time.Now().After(limit) {
			t.Fatalf("plain deletion: no %v of %s was lost, but %v", missing, namespace, gone)
		}
	}
}

// permissions is a list of permissions that ServiceAccounts have according to quayside's RBAC model.
type permissions []answer

// operatorRights returns the permissions that the ServiceAccounts of the operators in some namespaces have in
// any namespace.
func (w *restoredCluster) operatorRights(ctx context.Context, t *testing.T, namespaces []string) permissions {
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
	var out permissions
	for _, a := range modelAnswers(ctx, t, w.cluster, buildIn(t, "effective", "test/cluster/cmd/effective/main.go"), accounts) {
		certificate := a.Grant.Resource == "secrets" && strings.HasSuffix(a.Grant.Name, "-service-cert") // OLM's, which pods mount
		if a.Allowed && a.Grant.Role == "" && !certificate {
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

// sampled returns the first n permissions of each account in each namespace.
func (g permissions) sampled(n int) permissions {
	seen := map[[2]string]int{}
	var out permissions
	for _, a := range g {
		key := [2]string{a.Account, a.Grant.Namespace}
		if seen[key]++; seen[key] <= n {
			out = append(out, a)
		}
	}
	return out
}

// forRound returns the permissions to check in a round: every third permission, or all permissions if all
// operators of the corpus leave OLM.
func (g permissions) forRound(round int) permissions {
	if os.Getenv(leavingVariable) == "all" {
		return g
	}
	var out permissions
	for i := round % 3; i < len(g); i += 3 {
		out = append(out, g[i])
	}
	return out
}

// lostRights returns the permissions that the API server no longer grants.
func (g permissions) lostRights(ctx context.Context, t *testing.T, asking *kubernetes.Clientset) []string {
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

// watchResult is the result of the repeated checks while operators leave OLM.
type watchResult struct {
	rounds int
	faults map[string]int // with the number of occurrences
	end    func()
}

// watch checks permissions and writes custom resources every 200 ms until it is stopped.
func (w *restoredCluster) watch(ctx context.Context, t *testing.T, rights permissions, written []*unstructured.Unstructured, read []string) *watchResult {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	out := &watchResult{faults: map[string]int{}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	fault := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			out.faults[what]++
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
	quiet, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	every(func(round int) {
		for _, d := range rights.forRound(round).lostRights(ctx, t, quiet) {
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
			if err := quiet.RESTClient().Get().AbsPath(path).Do(ctx).Error(); err != nil {
				fault("reading " + path + ": " + err.Error())
			}
		}
	})
	out.end = func() { cancel(); wg.Wait() }
	t.Cleanup(func() {
		out.end()
		for what, n := range out.faults {
			t.Errorf("%d of %d times: %s", n, out.rounds, what)
		}
	})
	return out
}

// touch makes a harmless change to an object.
func (w *restoredCluster) touch(ctx context.Context, o *unstructured.Unstructured, round int) error {
	of, err := w.resource(o)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.example/round":"%d"}}}`, round)
	_, err = of.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "user"})
	return err
}

// createSamples creates a custom resource for each operator that has a sample. It returns these and the
// existing custom resources.
func (w *restoredCluster) createSamples(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
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
		t.Logf("%s cannot be created: %v", idOf(o), err)
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
			o.SetName("test-" + o.GetName()) // a bundle may contain its samples as objects
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
