package cluster_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// lampChart is a chart with a Deployment, its permissions, and a Secret.
var lampChart = map[string]string{
	"charts/lamp/Chart.yaml": "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
	"charts/lamp/templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lamp, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: lamp}}
  template:
    metadata: {labels: {app: lamp, app.kubernetes.io/managed-by: {{ .Release.Service }}}}
    spec: {serviceAccountName: lamp, containers: [{name: lamp, image: "registry.example.com/lamp:1", env: [{name: A, value: b}]}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: lamp}
---
apiVersion: v1
kind: Secret
metadata: {name: lamp}
stringData: {key: value}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lamp}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lamp}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lamp}
subjects: [{kind: ServiceAccount, name: lamp, namespace: {{ .Release.Namespace }}}]
`,
	"quayside.yaml": `
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: charts, helm: "dir:charts"}]
  kubernetesVersion: "1.36"
  profile: flux
`,
	"subscriptions/lamp.yaml": `
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: lamp, namespace: lights}
spec: {package: lamp, values: {replicas: 2}}
`,
}

// TestLeavingHelm installs charts as Helm does, moves them out of Helm, and moves them back. No object is
// deleted or recreated, except the records of Helm. No pod template changes. Out of Helm, the objects of the
// releases have no marks of Helm.
func TestLeavingHelm(t *testing.T) {
	t.Parallel() // has its own servers
	harness.Require(t, "control-plane")
	cluster := harness.Start(t, harness.Options{NoWebhooks: true})
	program := build(t)
	buildIn(t, "quayside-charts", "./cmd/quayside-charts")
	t.Run("lamp", func(t *testing.T) {
		q := newWorkspace(t, program, lampChart)
		q.must(t, "resolve", "--offline")
		q.must(t, "render", "--offline")
		leaveHelm(t, q, cluster)
	})
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		return
	}
	charts := corpusCharts(t, corpus, 1)
	for _, chart := range []string{"cert-manager-v", "cloudnative-pg-", "external-secrets-"} {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(charts)), func(name string) bool { return !strings.HasPrefix(name, chart) })
		if len(names) == 0 {
			t.Errorf("the corpus has no chart %s", chart)
			continue
		}
		name := names[len(names)-1]
		t.Run(name, func(t *testing.T) {
			leaveHelm(t, chartAlone(t, newWorkspace(t, program, nil), charts[name], name), cluster)
		})
	}
}

// leaveHelm installs the tree of a workspace with one chart as a release of Helm, and moves it out of
// Helm and back.
func leaveHelm(t *testing.T, q quayside, cluster *harness.Cluster) {
	ctx := within(t, 3*time.Minute)
	w := &restoredCluster{quayside: q, cluster: cluster, config: rest.CopyConfig(cluster.RESTConfig), runner: cluster.Kubeconfig}
	w.config.WarningHandler = rest.NoWarnings{}
	var err error
	if w.client, err = dynamic.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	installed, hooks, record := w.installRelease(ctx, t)
	w.awaitDeployments(ctx, t)
	before := w.takeCensus(ctx, t)
	p := w.writePlan(t)
	if len(p.Operators) != 1 {
		t.Fatalf("operators: %v\n%s", p.Operators, w.runWithFindings(t, "adopt", "inspect", "--kubeconfig", cluster.Kubeconfig, "--offline", "--objects"))
	}
	w.must(t, "adopt", "run", "adopt-plan.yaml", "--kubeconfig", cluster.Kubeconfig, "--offline", "--yes", "--watch", "1s")
	w.must(t, "adopt", "verify", "adopt-plan.yaml", "--kubeconfig", cluster.Kubeconfig)
	w.checkKept(ctx, t, p, before)
	secrets := client(t, cluster).CoreV1().Secrets(record.Namespace)
	if left, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d records of Helm are left: %v", len(left.Items), err)
	}
	for _, o := range installed {
		live := w.get(ctx, t, o)
		if live.GetAnnotations()["meta.helm.sh/release-name"] != "" {
			t.Errorf("%s has annotations of Helm: %v", idOf(o), live.GetAnnotations())
		}
		for _, e := range live.GetManagedFields() {
			if e.Manager == "helm" && o.GetAnnotations()["meta.helm.sh/release-name"] != "" {
				t.Errorf("%s has fields of Helm: %s", idOf(o), e.FieldsV1)
			}
		}
	}
	for _, o := range hooks {
		of, err := w.resource(o)
		if err == nil {
			_, err = of.Get(ctx, o.GetName(), metav1.GetOptions{})
		}
		if !apierrors.IsNotFound(err) {
			t.Errorf("the hook %s was applied: %v", idOf(o), err)
		}
	}
	w.must(t, "adopt", "revert", "adopt-plan.yaml", "--kubeconfig", cluster.Kubeconfig, "--yes", "--done", "1")
	w.checkKept(ctx, t, planOutput{}, mapsWithout(before, "Secret "+record.Namespace+"/"+record.Name))
	back, err := secrets.Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Data["release"], record.Data["release"]) || back.Type != record.Type || !maps.Equal(back.Labels, record.Labels) {
		t.Errorf("the record was not restored: %s %v", back.Type, back.Labels)
	}
	for _, o := range installed {
		if live := w.get(ctx, t, o); live.GetAnnotations()["meta.helm.sh/release-name"] != o.GetAnnotations()["meta.helm.sh/release-name"] {
			t.Errorf("%s has the annotations %v", idOf(o), live.GetAnnotations())
		}
	}
}

func mapsWithout(c census, name string) census {
	out := maps.Clone(c)
	delete(out, name)
	return out
}

// get returns an object of the cluster.
func (w *restoredCluster) get(ctx context.Context, t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	of, err := w.resource(o)
	if err != nil {
		t.Fatal(err)
	}
	live, err := of.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// installRelease applies the objects of the tree with the marks of Helm, and stores the record of the release. It
// treats Jobs as hooks that Helm has deleted after they ran. CRDs have no marks, like the CRDs in crds/ of a chart.
func (w *restoredCluster) installRelease(ctx context.Context, t *testing.T) (installed, hooks []*unstructured.Unstructured, record *corev1.Secret) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "quayside.lock"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Pins []struct {
			Namespace, Package, Version string
			Template                    struct {
				Release string
				Values  json.RawMessage
			}
		}
	}
	if err := yaml.Unmarshal(text, &lock); err != nil || len(lock.Pins) != 1 {
		t.Fatalf("%d pins: %v", len(lock.Pins), err)
	}
	pin := lock.Pins[0]
	manifest := ""
	var hookRecords []any
	for _, o := range w.rendered(t) {
		if o.GetKind() == "Job" {
			data, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			hooks, hookRecords = append(hooks, o), append(hookRecords, map[string]any{"events": []string{"post-install"}, "manifest": string(data)})
			continue
		}
		o.SetLabels(withoutOwn(o.GetLabels()))
		o.SetAnnotations(withoutOwn(o.GetAnnotations()))
		if !isCRD(o) && o.GetKind() != "Namespace" {
			data, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			manifest += "---\n" + string(data) + "\n"
			labels, annotations := o.GetLabels(), o.GetAnnotations()
			maps.Copy(labels, map[string]string{"app.kubernetes.io/managed-by": "Helm"})
			maps.Copy(annotations, map[string]string{"meta.helm.sh/release-name": pin.Template.Release, "meta.helm.sh/release-namespace": pin.Namespace})
			o.SetLabels(labels)
			o.SetAnnotations(annotations)
		} else if len(o.GetAnnotations()) == 0 {
			o.SetAnnotations(nil)
		}
		installed = append(installed, o)
	}
	helm, err := harness.NewApplier(w.cluster.RESTConfig, "helm")
	if err == nil {
		_, err = helm.Apply(ctx, installed)
	}
	if err != nil {
		t.Fatal(err)
	}
	release, err := json.Marshal(map[string]any{
		"name": pin.Template.Release, "namespace": pin.Namespace, "version": 1, "info": map[string]any{"status": "deployed"}, "manifest": manifest, "hooks": hookRecords,
		"config": pin.Template.Values, "chart": map[string]any{"metadata": map[string]any{"name": pin.Package, "version": pin.Version}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(release); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pin.Namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v1", pin.Template.Release),
			Labels: map[string]string{"owner": "helm", "name": pin.Template.Release, "status": "deployed", "version": "1"},
		},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
	if secret, err = client(t, w.cluster).CoreV1().Secrets(pin.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return installed, hooks, secret
}

// withoutOwn returns labels or annotations without quayside's own.
func withoutOwn(m map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range m {
		if !strings.Contains(key, "quayside.dev/") && !strings.HasPrefix(key, "argocd.argoproj.io/") && !strings.HasPrefix(key, "kustomize.toolkit.fluxcd.io/") && (key != "app.kubernetes.io/managed-by" || value != "quayside") {
			out[key] = value
		}
	}
	return out
}
