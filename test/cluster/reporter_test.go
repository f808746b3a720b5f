package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/test/cluster/harness"
)

// reporterTest is an operator in a cluster with a running reporter.
type reporterTest struct {
	cluster  *harness.Cluster
	applier  *harness.Applier
	reporter *reporter
	rendered []*unstructured.Unstructured
}

// TestReporter checks the reporter for each kind of change to an operator, in one cluster. Each
// subtest leaves the operator healthy.
func TestReporter(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	q, program := newBeacon(t, true), buildReporter(t)
	q.must(t, "render", "--offline")
	cluster := harness.Start(t, harness.Options{AuditUsers: []string{reporterAccount}})
	ctx := within(t, 3*time.Minute)
	l := &reporterTest{cluster: cluster, applier: applier(t, cluster), rendered: q.rendered(t)}
	own := only(l.rendered, isOfReporter)
	if _, err := l.applier.Apply(ctx, append(objects(t, beaconNamespace), own...)); err != nil {
		t.Fatal(err)
	}
	l.reporter = startReporter(ctx, t, cluster, program)
	for _, step := range []struct {
		name string
		test func(context.Context, *testing.T, *reporterTest)
	}{
		{"it is ready once everything is", testBecomesReady},
		{"a deleted object", testDeleted},
		{"a changed image", testChangedImage},
		{"names of a CRD in use", testNamesTaken},
		{"a webhook without a CA", testWithoutCA},
		{"connections that break", testBrokenConnections},
		{"a revoked permission", testForbidden},
		{"a restart of the API server", testServerRestart},
		{"a restart of the reporter", testReporterRestart},
		{"a standby reporter", testStandby},
		{"metrics and events", testMetrics},
		{"a deleted Installation", testGone},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(within(t, time.Minute), t, l) }) {
			showEvents(t, cluster, "beacon")
			return
		}
	}
	checkWrites(t, cluster.Requests(t, time.Time{}))
}

const beaconNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: beacon}
`

// isOfReporter reports whether an object belongs to the reporter or configures it.
func isOfReporter(o *unstructured.Unstructured) bool {
	return o.GetLabels()["quayside.dev/package"] == "quayside-reporter" || o.GetKind() == "Installation" || o.GetName() == "installations.quayside.dev"
}

// find returns the only rendered object of a kind and name.
func (l *reporterTest) find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	found := only(l.rendered, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && (name == "" || o.GetName() == name)
	})
	if len(found) != 1 {
		t.Fatalf("%d objects %s %s were rendered: %v", len(found), kind, name, names(l.rendered))
	}
	return found[0].DeepCopy()
}

func (l *reporterTest) apply(ctx context.Context, t *testing.T, list ...*unstructured.Unstructured) {
	t.Helper()
	if _, err := l.applier.Apply(ctx, list); err != nil {
		t.Fatal(err)
	}
}

// awaitStatus waits until the function not returns "" for the current status, and returns this status.
func (l *reporterTest) awaitStatus(ctx context.Context, t *testing.T, what string, not func(seenStatus) string) seenStatus {
	t.Helper()
	var last seenStatus
	began := time.Now()
	eventually(ctx, t, what, func() string {
		s, o := statusOf(ctx, t, l.cluster, "beacon", "beacon")
		if s.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("generation %d is not judged yet: %+v", o.GetGeneration(), s)
		}
		last = s
		return not(s)
	})
	t.Logf("%s: after %s", what, time.Since(began).Round(10*time.Millisecond))
	return last
}

func (l *reporterTest) awaitReadyStatus(ctx context.Context, t *testing.T) seenStatus {
	t.Helper()
	return l.awaitStatus(ctx, t, "it is ready", func(s seenStatus) string {
		if s.condition("Ready").Status == metav1.ConditionTrue && len(s.Objects) == 0 {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
}

// awaitUnhealthy waits until the status lists the object with the given health.
func (l *reporterTest) awaitUnhealthy(ctx context.Context, t *testing.T, kind, name, health string) seenStatus {
	t.Helper()
	return l.awaitStatus(ctx, t, kind+" is "+health, func(s seenStatus) string {
		if s.objectStatus(kind, name).Health == health {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
}

// testBecomesReady installs the operator one object at a time.
func testBecomesReady(ctx context.Context, t *testing.T, l *reporterTest) {
	s := l.awaitStatus(ctx, t, "nothing is there", func(s seenStatus) string {
		if s.Summary["notFound"] == s.Summary["total"] && s.Summary["total"] > 0 {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
	if got := s.condition("Ready").Status; got != metav1.ConditionFalse {
		t.Errorf("Ready is %s without any object", got)
	}
	if monitor := s.objectStatus("ServiceMonitor", "beacon"); !strings.Contains(monitor.Message, "kind") && !strings.Contains(monitor.Message, "serve") {
		t.Errorf("status of an object of a missing kind: %+v", monitor)
	}
	rest := only(l.rendered, func(o *unstructured.Unstructured) bool { return !isOfReporter(o) && o.GetKind() != "ServiceMonitor" })
	l.apply(ctx, t, rest...)
	l.injectCA(ctx, t)
	s = l.awaitStatus(ctx, t, "only the monitor is missing", func(s seenStatus) string {
		if s.Summary["total"]-s.Summary["current"] == 1 && s.objectStatus("ServiceMonitor", "beacon").Health == "NotFound" {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
	if s.condition("Ready").Status != metav1.ConditionFalse || s.condition("Reconciling").Status != metav1.ConditionTrue {
		t.Errorf("conditions with a missing object: %+v", s.Conditions)
	}
	l.apply(ctx, t, append(objects(t, monitorCRD), l.find(t, "ServiceMonitor", "beacon"))...)
	l.awaitReadyStatus(ctx, t)
}

const monitorCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// injectCA sets the CA of webhooks, like the cluster's CA injector.
func (l *reporterTest) injectCA(ctx context.Context, t *testing.T) { l.patchCA(ctx, t, `"Q0E="`) }

func (l *reporterTest) patchCA(ctx context.Context, t *testing.T, value string) {
	t.Helper()
	name := l.find(t, "ValidatingWebhookConfiguration", "").GetName()
	_, err := client(t, l.cluster).AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, name, types.JSONPatchType,
		[]byte(`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": `+value+`}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func testDeleted(ctx context.Context, t *testing.T, l *reporterTest) {
	settings := l.find(t, "ConfigMap", "beacon-settings")
	if err := l.applier.Delete(ctx, settings); err != nil {
		t.Fatal(err)
	}
	s := l.awaitUnhealthy(ctx, t, "ConfigMap", "beacon-settings", "NotFound")
	if ready := s.condition("Ready"); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "beacon-settings") {
		t.Errorf("Ready is %+v, want False and the object's name", ready)
	}
	l.apply(ctx, t, settings)
	l.awaitReadyStatus(ctx, t)
}

func testChangedImage(ctx context.Context, t *testing.T, l *reporterTest) {
	deployment := l.find(t, "Deployment", "beacon-operator")
	_, err := client(t, l.cluster).AppsV1().Deployments("beacon").Patch(ctx, "beacon-operator", types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "operator", "image": "registry.example.com/other:1"}]}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := l.awaitUnhealthy(ctx, t, "Deployment", "beacon-operator", "Failed")
	if s.condition("Stalled").Status != metav1.ConditionTrue || !strings.Contains(s.objectStatus("Deployment", "beacon-operator").Message, "registry.example.com/other:1") {
		t.Errorf("want Stalled and the image's name, got %+v", s)
	}
	l.apply(ctx, t, deployment)
	l.awaitReadyStatus(ctx, t)
}

// testNamesTaken creates another CRD of the same kind while the operator's CRD is deleted.
func testNamesTaken(ctx context.Context, t *testing.T, l *reporterTest) {
	crd := l.find(t, "CustomResourceDefinition", "beacons.example.com")
	rival := objects(t, strings.NewReplacer(
		"beacons.example.com", "rivals.example.com", "plural: beacons", "plural: rivals", "singular: beacon", "singular: rival",
	).Replace(beaconCRD))
	if err := l.applier.Delete(ctx, crd); err != nil {
		t.Fatal(err)
	}
	if err := l.applier.AwaitGone(ctx, []*unstructured.Unstructured{crd}); err != nil {
		t.Fatal(err)
	}
	l.apply(ctx, t, rival...)
	// The applier would wait for the CRD, whose names are not accepted.
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := l.applier.Apply(soon, []*unstructured.Unstructured{crd}); err == nil {
		t.Fatal("the names were accepted")
	}
	s := l.awaitUnhealthy(ctx, t, "CustomResourceDefinition", "beacons.example.com", "Failed")
	if ready := s.condition("Ready"); ready.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %+v", ready)
	}
	if err := l.applier.Delete(ctx, rival[0]); err != nil {
		t.Fatal(err)
	}
	l.awaitReadyStatus(ctx, t)
}

func testWithoutCA(ctx context.Context, t *testing.T, l *reporterTest) {
	l.patchCA(ctx, t, "null")
	name := l.find(t, "ValidatingWebhookConfiguration", "").GetName()
	s := l.awaitUnhealthy(ctx, t, "ValidatingWebhookConfiguration", name, "InProgress")
	if got := s.objectStatus("ValidatingWebhookConfiguration", name); !strings.Contains(got.Message, "CA") {
		t.Errorf("message %q", got.Message)
	}
	l.injectCA(ctx, t)
	l.awaitReadyStatus(ctx, t)
}

// testBrokenConnections breaks every watch, and changes an object before the watches restart.
func testBrokenConnections(ctx context.Context, t *testing.T, l *reporterTest) {
	settings := l.find(t, "ConfigMap", "beacon-settings")
	if n := l.reporter.proxy.Cut(); n == 0 {
		t.Error("no open connection to break")
	}
	if err := l.applier.Delete(ctx, settings); err != nil {
		t.Fatal(err)
	}
	l.awaitUnhealthy(ctx, t, "ConfigMap", "beacon-settings", "NotFound")
	l.reporter.proxy.Cut()
	l.apply(ctx, t, settings)
	l.awaitReadyStatus(ctx, t)
}

// testForbidden removes the permission to read ConfigMaps, and breaks the watch, because a running watch is not
// authorized again. Before it breaks the watch, it waits until the server's authorizer, which watches the roles,
// has observed the change. Otherwise the watch would restart with the old permission and never be checked again.
func testForbidden(ctx context.Context, t *testing.T, l *reporterTest) {
	role := l.find(t, "ClusterRole", "quayside-reporter.beacon.beacon")
	less := role.DeepCopy()
	rules, _, _ := unstructured.NestedSlice(less.Object, "rules")
	for _, rule := range rules {
		fields := rule.(map[string]any)
		resources, _, _ := unstructured.NestedSlice(fields, "resources")
		fields["resources"] = slices.DeleteFunc(resources, func(r any) bool { return r == "configmaps" })
	}
	if err := unstructured.SetNestedSlice(less.Object, rules, "rules"); err != nil {
		t.Fatal(err)
	}
	l.apply(ctx, t, less)
	asking := client(t, l.cluster).AuthorizationV1().SubjectAccessReviews()
	eventually(ctx, t, "the right is gone", func() string {
		r, err := asking.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               reporterAccount,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + reporterNamespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "beacon", Verb: "watch", Resource: "configmaps"},
		}}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return err.Error()
		case r.Status.Allowed:
			return "the server still grants it: " + r.Status.Reason
		default:
			return ""
		}
	})
	l.reporter.proxy.Cut()
	s := l.awaitUnhealthy(ctx, t, "ConfigMap", "beacon-settings", "Forbidden")
	if ready := s.condition("Ready"); ready.Status != metav1.ConditionUnknown || !strings.Contains(ready.Message, "beacon-settings") {
		t.Errorf("Ready is %+v, want Unknown and the object's name", ready)
	}
	account := l.find(t, "ServiceAccount", "beacon-operator")
	if err := l.applier.Delete(ctx, account); err != nil {
		t.Fatal(err)
	}
	s = l.awaitUnhealthy(ctx, t, "ServiceAccount", "beacon-operator", "NotFound")
	if s.objectStatus("ConfigMap", "beacon-settings").Health != "Forbidden" {
		t.Errorf("status of the ConfigMap after the others were evaluated: %+v", s.objectStatus("ConfigMap", "beacon-settings"))
	}
	l.apply(ctx, t, account, role)
	l.awaitReadyStatus(ctx, t)
}

// testServerRestart checks that an unavailable server causes no change of status, and that changes
// during that time are detected.
func testServerRestart(ctx context.Context, t *testing.T, l *reporterTest) {
	began := time.Now()
	if err := l.cluster.RestartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	settings := l.find(t, "ConfigMap", "beacon-settings")
	if err := l.applier.Delete(ctx, settings); err != nil {
		t.Fatal(err)
	}
	s := l.awaitUnhealthy(ctx, t, "ConfigMap", "beacon-settings", "NotFound")
	if bad := s.Summary["total"] - s.Summary["current"]; bad != 1 {
		t.Errorf("%d unhealthy objects: %+v", bad, s.Objects)
	}
	wrote := slices.DeleteFunc(l.cluster.Requests(t, began), func(r harness.Request) bool {
		return r.Resource != "installations.quayside.dev/status"
	})
	if len(wrote) != 1 {
		t.Errorf("the status was written %d times, want once", len(wrote))
	}
	l.apply(ctx, t, settings)
	l.awaitReadyStatus(ctx, t)
}

func testReporterRestart(ctx context.Context, t *testing.T, l *reporterTest) {
	_, before := statusOf(ctx, t, l.cluster, "beacon", "beacon")
	l.reporter.process.Kill()
	began := time.Now()
	l.reporter.start(ctx, t)
	l.reporter.awaitReady(ctx, t)
	time.Sleep(500 * time.Millisecond) // any write would happen immediately
	if _, after := statusOf(ctx, t, l.cluster, "beacon", "beacon"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the status changed to %v from %v", after.Object["status"], before.Object["status"])
	}
	for _, r := range l.cluster.Requests(t, began) {
		if r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			t.Errorf("unexpected write request %s", r)
		}
	}
}

// awaitReady waits until the reporter has evaluated the operator and reports it ready.
func (r *reporter) awaitReady(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, "it has judged", func() string {
		_, text := r.get(r.metrics, "/metrics")
		if strings.Contains(text, `quayside_installation_ready{namespace="beacon",package="beacon",version="0.1.0"} 1`) {
			return ""
		}
		return "the metrics do not say so"
	})
}

// testStandby runs two reporters. First one of them is active, then the other.
func testStandby(ctx context.Context, t *testing.T, l *reporterTest) {
	if err := l.reporter.process.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--leader-elect", "--leader-election-namespace=" + reporterNamespace}
	one := l.reporter.startAnother(ctx, t, "one", flags...)
	one.awaitReady(ctx, t)
	two := l.reporter.startAnother(ctx, t, "two", flags...)
	if _, text := two.get(two.metrics, "/metrics"); strings.Contains(text, "quayside_installation_ready") {
		t.Error("both reporters are active")
	}
	if err := one.process.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	two.awaitReady(ctx, t)
	l.reporter = two
}

func testMetrics(ctx context.Context, t *testing.T, l *reporterTest) {
	if code, text := l.reporter.get(l.reporter.probes, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, text)
	}
	s, _ := statusOf(ctx, t, l.cluster, "beacon", "beacon")
	_, text := l.reporter.get(l.reporter.metrics, "/metrics")
	for _, want := range []string{
		fmt.Sprintf(`quayside_installation_objects{namespace="beacon",package="beacon",status="Current",version="0.1.0"} %d`, s.Summary["total"]),
		`quayside_installation_objects{namespace="beacon",package="beacon",status="Failed",version="0.1.0"} 0`,
		`quayside_reporter_kinds{state="Forbidden"} 0`,
		"quayside_reporter_build_info{",
		"controller_runtime_reconcile_total{",
		"rest_client_requests_total{",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing metric %s", want)
		}
	}
	list, err := client(t, l.cluster).EventsV1().Events("beacon").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, e := range list.Items {
		if e.ReportingController == "quayside-reporter" && e.Regarding.Kind == "Installation" {
			told[e.Reason] = true
		}
	}
	if !told["Ready"] || !told["NotReady"] {
		t.Errorf("events have %v, want Ready and NotReady", slices.Collect(maps.Keys(told)))
	}
}

func testGone(ctx context.Context, t *testing.T, l *reporterTest) {
	if err := l.applier.Delete(ctx, l.find(t, "Installation", "")); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "its metrics are gone and its kinds are not watched", func() string {
		_, text := l.reporter.get(l.reporter.metrics, "/metrics")
		switch {
		case strings.Contains(text, "quayside_installation_ready{"):
			return "the metrics are there"
		case !strings.Contains(text, `quayside_reporter_kinds{state="Watched"} 0`):
			return "kinds are watched"
		}
		return ""
	})
}

// checkWrites checks that all write requests of a reporter are to the status of Installations, to Events, and
// to the reporter's Lease.
func checkWrites(t *testing.T, requests []harness.Request) {
	t.Helper()
	writes := map[string]string{ // by resource
		"installations.quayside.dev/status": "patch",
		"events.events.k8s.io":              "create patch",
		"leases.coordination.k8s.io":        "create update patch",
		"events":                            "create patch", // from leader election
	}
	for _, r := range requests {
		switch {
		case r.Verb == "get", r.Verb == "list", r.Verb == "watch":
		case !slices.Contains(strings.Fields(writes[r.Resource]), r.Verb):
			t.Errorf("request %s", r)
		}
	}
	if len(requests) == 0 {
		t.Error("no request was logged")
	}
}
