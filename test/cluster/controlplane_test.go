// Package cluster_test tests the rendered output of quayside with a real control plane.
package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quayside/quayside/test/cluster/harness"
)

const web = `
apiVersion: v1
kind: Namespace
metadata: {name: demo, labels: {part: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo, labels: {part: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.com/web@sha256:0000000000000000000000000000000000000000000000000000000000000000}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo, labels: {part: web}}
data: {colour: blue}
`

func TestControlPlane(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	cluster := harness.Start(t, harness.Options{})
	t.Run("a Deployment becomes available", func(t *testing.T) { testAvailable(t, cluster) })
	t.Run("unknown fields are refused", func(t *testing.T) { testStrict(t, cluster) })
	t.Run("authorization denies and allows", func(t *testing.T) { testAuthorization(t, cluster) })
	t.Run("pruning deletes only removed objects", func(t *testing.T) { testPrune(t, cluster) })
	t.Run("data survive a restart of the API server", func(t *testing.T) { testRestart(t, cluster) })
}

func testAvailable(t *testing.T, cluster *harness.Cluster) {
	ctx, applier, objects := within(t, 30*time.Second), applier(t, cluster), objects(t, web)
	first, err := applier.Apply(ctx, objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range first {
		if !a.Changed || len(a.Warnings) > 0 {
			t.Errorf("%s: changed %v, warnings %q; want it created without warnings", harness.Name(a.Object), a.Changed, a.Warnings)
		}
	}
	if err := applier.Await(ctx, objects); err != nil {
		t.Fatal(err)
	}
	deployment, err := client(t, cluster).AppsV1().Deployments("demo").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := deployment.Status.AvailableReplicas; got != 2 {
		t.Errorf("%d replicas are available, want 2", got)
	}
	second, err := applier.Apply(ctx, objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range second {
		if a.Changed {
			t.Errorf("%s changed when applied again", harness.Name(a.Object))
		}
	}
}

func testStrict(t *testing.T, cluster *harness.Cluster) {
	wrong := strings.Replace(web, "replicas:", "replicaz:", 1)
	_, err := applier(t, cluster).Apply(within(t, 10*time.Second), objects(t, wrong))
	if err == nil || !strings.Contains(err.Error(), "replicaz") {
		t.Errorf("got error %v, want one that names the field", err)
	}
}

const reader = `
apiVersion: v1
kind: Namespace
metadata: {name: rights}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: rights}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: rights}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
`

func testAuthorization(t *testing.T, cluster *harness.Cluster) {
	ctx := within(t, 20*time.Second)
	config, err := cluster.User("ann")
	if err != nil {
		t.Fatal(err)
	}
	ann, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.CoreV1().ConfigMaps("rights").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: got error %v, want forbidden", err)
	}
	if _, err := applier(t, cluster).Apply(ctx, objects(t, reader)); err != nil {
		t.Fatal(err)
	}
	if !allowed(ctx, t, cluster, "ann", "list", "rights", true) {
		t.Error("the role grants nothing")
	}
	if allowed(ctx, t, cluster, "ann", "delete", "rights", false) || allowed(ctx, t, cluster, "ann", "list", "default", false) {
		t.Error("the role grants more than its rules")
	}
	if _, err := ann.CoreV1().ConfigMaps("rights").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("with the role: %v", err)
	}
}

// allowed returns the API server's answer to the question whether a user may use a verb on ConfigMaps. If want
// is true, it asks until the answer is yes, because the API server's authorizer reads roles from a watch.
func allowed(ctx context.Context, t *testing.T, cluster *harness.Cluster, user, verb, namespace string, want bool) bool {
	t.Helper()
	for {
		review, err := client(t, cluster).AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "configmaps"},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed || !want {
			return review.Status.Allowed
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func testPrune(t *testing.T, cluster *harness.Cluster) {
	ctx, applier, all := within(t, 30*time.Second), applier(t, cluster), objects(t, web)
	if _, err := applier.Apply(ctx, all); err != nil {
		t.Fatal(err)
	}
	gone, err := applier.Prune(ctx, "part=web", all[:2])
	if err != nil {
		t.Fatal(err)
	}
	if len(gone) != 1 || harness.Name(gone[0]) != "ConfigMap demo/settings" {
		t.Errorf("pruned %v, want the ConfigMap alone", names(gone))
	}
	if _, err := applier.Get(ctx, all[2]); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap after pruning: got error %v, want not found", err)
	}
}

func testRestart(t *testing.T, cluster *harness.Cluster) {
	ctx := within(t, time.Minute)
	if _, err := applier(t, cluster).Apply(ctx, objects(t, web)); err != nil {
		t.Fatal(err)
	}
	if err := cluster.RestartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, cluster).CoreV1().ConfigMaps("demo").Get(ctx, "settings", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestEmulatedVersion(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	cluster := harness.Start(t, harness.Options{APIOnly: true, EmulatedVersion: "1.34"})
	version, err := client(t, cluster).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || version.Minor != "36" || version.EmulationMinor != "34" {
		t.Errorf("version %s.%s emulates %s.%s, want 1.36 and 1.34", version.Major, version.Minor, version.EmulationMajor, version.EmulationMinor)
	}
}
