package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestCorpus resolves and renders every real operator that has no dependencies, and installs each operator
// separately in the rendered order.
func TestCorpus(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	cluster := harness.Start(t, harness.Options{})
	program := build(t)
	effective := buildIn(t, "effective", "test/cluster/cmd/effective/main.go")
	prerequisites := prerequisites(t, cluster, program, corpus)
	dirs, err := filepath.Glob(filepath.Join(corpus, "bundles", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles in %q: %v", corpus, err)
	}
	for _, dir := range dirs {
		pkg := filepath.Base(dir)
		t.Run(pkg, func(t *testing.T) {
			objects := renderAlone(t, program, corpus, pkg)
			i := installation{applier: applier(t, cluster), objects: objects, kept: names(prerequisites)}
			i.test(t)
			checkRights(within(t, time.Minute), t, cluster, effective, i.objects)
			if t.Failed() {
				showEvents(t, cluster, pkg)
			}
		})
	}
}

// renderAlone returns the rendered objects of the newest version of an operator. The catalog contains only the
// operator's package. If the operator has dependencies, the test is skipped.
func renderAlone(t *testing.T, program, corpus, pkg string) []*unstructured.Unstructured {
	t.Helper()
	return workspaceOf(t, program, corpus, pkg, pkg, provided).rendered(t)
}

// provided is the setting for clusters with the APIs of the prerequisites.
const provided = "  provides: {apis: [cert-manager.io/v1, monitoring.coreos.com/v1, operators.coreos.com/v1alpha1]}\n"

// workspaceOf returns a workspace that is resolved to the newest version of a package in a namespace. The
// workspace has the given additional settings.
func workspaceOf(t *testing.T, program, corpus, pkg, namespace, settings string) quayside {
	t.Helper()
	q := newWorkspace(t, program, map[string]string{
		"quayside.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: corpus, namespace: olm, source: %q}]
  kubernetesVersion: "1.36"
  profile: plain
%s`, "bundles:"+filepath.Join(corpus, "bundles", pkg), settings),
		"subscriptions/operator.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: operator, namespace: %q}
spec: {package: %q}
`, namespace, pkg),
	})
	_, stderr, code := q.run(t, "resolve", "--offline")
	switch code {
	case 0:
	case 3:
		t.Skipf("the operator has dependencies:\n%s", stderr)
	default:
		t.Fatalf("quayside resolve: exit code %d\n%s", code, stderr)
	}
	return q
}

// knownRejections maps the objects that a CRD of their own bundle does not permit to the reasons. Every cluster
// rejects these objects.
func knownRejections() map[string]string {
	return map[string]string{
		"Service.ecs.services.k8s.aws ack-ecs-controller/example":   "spec.name: Required value",
		"Secret.ecr.mobb.redhat.com ecr-secret-operator/ecr-secret": "field not declared in schema",
	}
}

// installation is an operator and its target cluster.
type installation struct {
	applier *harness.Applier
	objects []*unstructured.Unstructured
	kept    []string // objects that other operators need too
}

func (i *installation) test(t *testing.T) {
	ctx := within(t, time.Minute)
	t.Cleanup(func() {
		if err := i.remove(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("removing it: %v", err)
		}
	})
	i.checkFirstApply(ctx, t)
	if err := i.applier.Await(ctx, only(i.objects, i.becomesReady)); err != nil {
		t.Error(err)
		return
	}
	i.checkSecondApply(ctx, t)
}

// checkFirstApply applies all objects to a cluster that has none of them.
func (i *installation) checkFirstApply(ctx context.Context, t *testing.T) {
	var accepted []*unstructured.Unstructured
	for _, o := range i.objects {
		done, err := i.applier.Apply(ctx, []*unstructured.Unstructured{o})
		if reason, known := knownRejections()[harness.Name(o)]; known {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: got error %v, want it refused: %s", harness.Name(o), err, reason)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range done[0].Warnings {
			if strings.Contains(w, "unknown field") || strings.Contains(w, "duplicate field") {
				t.Errorf("%s: %s", harness.Name(o), w)
			} else {
				t.Logf("%s: warning of the server: %s", harness.Name(o), w)
			}
		}
		accepted = append(accepted, o)
	}
	i.objects = accepted
}

// checkSecondApply applies all objects again and checks that nothing changes. It deletes the
// webhooks after applying them, because no operator runs to answer requests.
func (i *installation) checkSecondApply(ctx context.Context, t *testing.T) {
	hooks := only(i.objects, isWebhook)
	for _, o := range hooks {
		i.checkUnchanged(ctx, t, o)
	}
	for _, o := range hooks {
		if err := i.applier.Delete(ctx, o); err != nil {
			t.Error(err)
		}
	}
	for _, o := range i.objects {
		if !isWebhook(o) {
			i.checkUnchanged(ctx, t, o)
		}
	}
}

// checkUnchanged applies an existing object. A controller may write to the object between the read and the
// apply, so the test fails only if every attempt changes the object.
func (i *installation) checkUnchanged(ctx context.Context, t *testing.T, o *unstructured.Unstructured) {
	for range 3 {
		done, err := i.applier.Apply(ctx, []*unstructured.Unstructured{o})
		if err != nil {
			t.Errorf("second apply: %v", err)
			return
		}
		if !done[0].Changed {
			return
		}
	}
	t.Errorf("%s changes with every apply", harness.Name(o))
}

// remove deletes the operator, so that its webhooks do not affect the next operator. It does not wait.
func (i *installation) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, o := range slices.Backward(i.objects) {
		if slices.Contains(i.kept, harness.Name(o)) {
			continue
		}
		if err := i.applier.Delete(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func only(list []*unstructured.Unstructured, is func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(list), func(o *unstructured.Unstructured) bool { return !is(o) })
}

func isCRD(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }

func isWebhook(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "admissionregistration.k8s.io"
}

// becomesReady reports whether the control plane alone makes the object ready, even if no program runs in pods.
func (i *installation) becomesReady(o *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "priorityClassName")
	known := class == "" || strings.HasPrefix(class, "system-") || slices.Contains(names(i.objects), "PriorityClass.scheduling.k8s.io "+class)
	return isCRD(o) || o.GroupVersionKind().Group == "apps" && known
}
