package status

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/testing/clustertest"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

const lampImage = "example.com/lamp@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// objects are the objects of the cluster: the Deployment and the CRD of an operator, two of its
// custom resources, and an Installation without a pin.
const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lamp, namespace: ops, labels: {quayside.dev/package: lamp, quayside.dev/version: 1.0.0}, annotations: {quayside.dev/version: 1.0.0}}
spec:
  selector: {matchLabels: {name: lamp}}
  template: {metadata: {labels: {name: lamp}}, spec: {containers: [{name: lamp, image: "` + lampImage + `"}]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lights.example.com, labels: {quayside.dev/package: lamp, quayside.dev/version: 1.0.0}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Light, plural: lights}
  versions: [{name: v1alpha1, served: true, storage: false}, {name: v1, served: true, storage: true}, {name: v0, served: false, storage: false}]
---
apiVersion: example.com/v1
kind: Light
metadata: {name: a, namespace: ops}
---
apiVersion: example.com/v1
kind: Light
metadata: {name: z, namespace: ops}
status: {conditions: [{type: Ready, status: "False", reason: Dark, message: no oil}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: installations.quayside.dev}
spec: {group: quayside.dev, scope: Namespaced, names: {kind: Installation, plural: installations}, versions: [{name: v1alpha1, served: true, storage: true}]}
---
apiVersion: quayside.dev/v1alpha1
kind: Installation
metadata: {name: other, namespace: ops}
spec: {package: other, version: 0.1.0, pin: x}
`

// serve starts an API server with healthy objects, and returns it with a client and the desired
// state.
func serve(t *testing.T) (*clustertest.Server, *cluster.Client, *Expected) {
	t.Helper()
	s := clustertest.New(t)
	all, err := clustertest.Objects([]byte(objects))
	if err != nil {
		t.Fatal(err)
	}
	s.Put(all...)
	s.Settle()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(s.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{File: file, Timeout: 5 * time.Second, UserAgent: "quayside/test"})
	if err != nil {
		t.Fatal(err)
	}
	lock := lockfile.New([]lockfile.Pin{{
		Namespace: "ops", Package: "lamp", Version: "1.0.0", Image: lampImage,
		Catalog: lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "test"}, "image:example.com/catalog:v1", ""),
	}})
	pin := ""
	for _, p := range lock.Pins {
		pin = string(p.Checksum())
	}
	spec := v1alpha1.InstallationSpec{Package: "lamp", Version: "1.0.0", Pin: pin, Objects: []v1alpha1.ObjectReference{
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "lights.example.com", Version: "1.0.0"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ops", Name: "lamp", Version: "1.0.0", Images: []v1alpha1.ContainerImage{{Container: "lamp", Image: lampImage}}},
	}}
	return s, c, &Expected{Cluster: "prod", Lock: lock, Installations: []render.Installation{{Namespace: "ops", Name: "lamp", Spec: spec}}}
}

func quiet(string, ...any) {}

// TestObserve observes a cluster. Readable objects must have their health, forbidden objects must result in a
// note or in the state Unknown, and an unreachable cluster must be an error.
func TestObserve(t *testing.T) {
	deployment := func(change func(o clustertest.Object)) func(*clustertest.Server) {
		return func(s *clustertest.Server) { s.Edit("Deployment", "ops", "lamp", change) }
	}
	forbid := func(part string) func(*clustertest.Server) {
		return func(s *clustertest.Server) {
			s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.Contains(r.URL.Path, part) {
					clustertest.Refuse(w, http.StatusForbidden, "Forbidden", "you may not")
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	for name, c := range map[string]struct {
		change func(*clustertest.Server)
		all    bool
		states string
		notes  string
	}{
		"well":        {func(*clustertest.Server) {}, false, "lamp Ready", ""},
		"with others": {func(*clustertest.Server) {}, true, "lamp Ready, other Unpinned", ""},
		"missing":     {func(s *clustertest.Server) { s.Delete("Deployment", "ops", "lamp") }, false, "lamp Progressing", ""},
		"nothing": {func(s *clustertest.Server) {
			s.Delete("Deployment", "ops", "lamp")
			s.Delete("CustomResourceDefinition", "", "lights.example.com")
		}, false, "lamp Missing", ""},
		"another image": {func(s *clustertest.Server) {
			s.Edit("Pod", "ops", "lamp-0", func(o clustertest.Object) { o["status"] = nil })
		}, false, "lamp Ready", ""},
		"in progress":    {deployment(func(o clustertest.Object) { o["status"] = clustertest.Object{"observedGeneration": 1, "replicas": 1} }), false, "lamp Progressing", ""},
		"no pods":        {forbid("/pods"), false, "lamp Ready", "its pods cannot be listed: "},
		"no Deployments": {forbid("/deployments"), false, "lamp Unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, client, want := serve(t)
			c.change(s)
			want.All = c.all
			got, err := Observe(t.Context(), client, want, ObserveOptions{Progress: quiet})
			if err != nil {
				t.Fatal(err)
			}
			var states []string
			for _, op := range got.Operators {
				states = append(states, op.Package+" "+string(op.State))
			}
			if d := cmp.Diff(c.states, strings.Join(states, ", ")); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if notes := strings.Join(got.Operators[0].Details.Notes, "; "); !strings.HasPrefix(notes, c.notes) || (notes == "") != (c.notes == "") {
				t.Errorf("notes are %q, want %q", notes, c.notes)
			}
		})
	}
	s, client, want := serve(t)
	s.Close()
	var away *cluster.UnreachableError
	if _, err := Observe(t.Context(), client, want, ObserveOptions{Wait: time.Minute, Progress: quiet}); !errors.As(err, &away) {
		t.Errorf("a cluster that was never there: %v", err)
	}
}

// TestWait checks that Observe repeats until the cluster is healthy, tolerates temporary errors,
// and stops at the time limit.
func TestWait(t *testing.T) {
	s, client, want := serve(t)
	broken := func(o clustertest.Object) { o["status"] = clustertest.Object{"observedGeneration": 1, "replicas": 1} }
	s.Edit("Deployment", "ops", "lamp", broken)
	var said []string
	got, err := Observe(t.Context(), client, want, ObserveOptions{Wait: time.Minute, Progress: func(f string, args ...any) {
		said = append(said, f)
		switch len(said) {
		case 2: // fails
			s.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				clustertest.Refuse(w, http.StatusUnauthorized, "Unauthorized", "")
			})
		case 3:
			s.Intercept(nil)
			s.Settle()
		}
	}})
	if err != nil || !got.Healthy || len(said) != 3 {
		t.Errorf("after %q: %v, %v", said, got, err)
	}
	s.Edit("Deployment", "ops", "lamp", broken)
	start := time.Now()
	got, err = Observe(t.Context(), client, want, ObserveOptions{Wait: 10 * time.Millisecond, Progress: quiet})
	if err != nil || got.Healthy || time.Since(start) > 30*time.Second {
		t.Errorf("after %s: %v, %v", time.Since(start), got, err)
	}
}

// TestCustom checks that custom resources are counted in their storage version. Resources that are not ready
// must be listed first.
func TestCustom(t *testing.T) {
	s, client, want := serve(t)
	second := want.Installations[0]
	second.Namespace = "ops2" // shares the definition
	want.Installations = append(want.Installations, second)
	got, err := Observe(t.Context(), client, want, ObserveOptions{Custom: true, Progress: quiet})
	if err != nil {
		t.Fatal(err)
	}
	lights := []health.CustomKind{{
		APIVersion: "example.com/v1", Kind: "Light", Count: 2, NotReady: 1,
		Resources: []v1alpha1.ObjectHealth{
			{APIVersion: "example.com/v1", Kind: "Light", Namespace: "ops", Name: "z", Health: v1alpha1.InProgress, Message: "no oil"},
			{APIVersion: "example.com/v1", Kind: "Light", Namespace: "ops", Name: "a", Health: v1alpha1.Current},
		},
	}}
	for _, op := range got.Operators {
		if d := cmp.Diff(lights, op.Details.CustomResources); d != "" {
			t.Errorf("%s (-want +got):\n%s", op.Key(), d)
		}
	}
	s.Requests()
	if _, err := Observe(t.Context(), client, want, ObserveOptions{Progress: quiet}); err != nil {
		t.Fatal(err)
	}
	if asked := strings.Join(s.Requests(), "\n"); strings.Contains(asked, "/lights?") {
		t.Errorf("without being asked for, lists:\n%s", asked)
	}
}

// TestSupply checks that the APIs and classes of a cluster are listed if, and only if, they are requested.
func TestSupply(t *testing.T) {
	s, client, want := serve(t)
	s.Put(clustertest.Object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": "high"}})
	got, err := Observe(t.Context(), client, want, ObserveOptions{Supply: true, Progress: quiet})
	if err != nil {
		t.Fatal(err)
	}
	apis, classes := strings.Join(got.APIs, " "), strings.Join(got.Classes, " ")
	if !strings.Contains(apis, "example.com/v1 example.com/v1alpha1") || strings.Contains(apis, "apps/v1") || classes != "PriorityClass//high" {
		t.Errorf("APIs %s, classes %s", apis, classes)
	}
	s.Requests()
	if _, err := Observe(t.Context(), client, want, ObserveOptions{Progress: quiet}); err != nil {
		t.Fatal(err)
	}
	if asked := strings.Join(s.Requests(), "\n"); strings.Contains(asked, "/priorityclasses") {
		t.Errorf("without being asked for, lists:\n%s", asked)
	}
}

// TestServedBy checks that the storage version, if it is served, is preferred to the first served version.
func TestServedBy(t *testing.T) {
	version := func(name string, served, storage bool) any {
		return map[string]any{"name": name, "served": served, "storage": storage}
	}
	for name, c := range map[string]struct {
		versions []any
		want     string
	}{
		"stored":          {[]any{version("v1alpha1", true, false), version("v1", true, true), version("v2", true, false)}, "g/v1"},
		"stored unserved": {[]any{version("v1", false, true), version("v2", true, false), version("v3", true, false)}, "g/v2"},
		"none served":     {[]any{version("v1", false, true)}, ""},
		"none":            {nil, ""},
	} {
		got, ok := newListOptions(map[string]any{"spec": map[string]any{"group": "g", "names": map[string]any{"kind": "K"}, "versions": c.versions}})
		if got.APIVersion != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got.APIVersion, ok, c.want)
		}
	}
}

// TestReporter compares the status that the reporter wrote with the current health.
func TestReporter(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.Ready, Status: status, Message: "m"}}
	}
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	told := func(change func(*v1alpha1.Installation)) *v1alpha1.Installation {
		in := &v1alpha1.Installation{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.InstallationSpec{Pin: "p"}}
		in.Status = v1alpha1.InstallationStatus{ObservedGeneration: 2, Pin: "p", BundleDigest: "d", Version: "1.0.0", ReadySince: &since, Conditions: ready(metav1.ConditionTrue)}
		if change != nil {
			change(in)
		}
		return in
	}
	judged := v1alpha1.InstallationStatus{BundleDigest: "d", Conditions: ready(metav1.ConditionTrue)}
	one := []v1alpha1.Installation{{}}
	for name, c := range map[string]struct {
		of   reporterState
		inst *v1alpha1.Installation
		want *health.Reporter
	}{
		"none":             {reporterState{}, nil, nil},
		"may not be read":  {reporterState{absent: "forbidden"}, nil, nil},
		"wanted":           {reporterState{wanted: true}, nil, &health.Reporter{State: "absent", Message: "Installation missing"}},
		"wanted, no kind":  {reporterState{wanted: true, absent: "no such kind"}, nil, &health.Reporter{State: "absent", Message: "no such kind"}},
		"others are there": {reporterState{objects: one}, nil, &health.Reporter{State: "absent", Message: "Installation missing"}},
		"agrees":           {reporterState{}, told(nil), &health.Reporter{State: "current", Ready: "True", ReadySince: since.Time}},
		"another bundle":   {reporterState{}, told(func(in *v1alpha1.Installation) { in.Status.BundleDigest = "e" }), &health.Reporter{State: "current", Ready: "True"}},
		"disagrees":        {reporterState{}, told(func(in *v1alpha1.Installation) { in.Status.Conditions = ready("False") }), &health.Reporter{State: "current", Ready: "False", ReadySince: since.Time, Message: "it reports Ready=False: m"}},
		"has not looked":   {reporterState{}, told(func(in *v1alpha1.Installation) { in.Status.Conditions = nil }), &health.Reporter{State: "pending", Message: "no report yet"}},
		"old generation":   {reporterState{}, told(func(in *v1alpha1.Installation) { in.Generation = 3 }), &health.Reporter{State: "stale", Ready: "True", Message: "its report is for version 1.0.0, generation 2 of 3"}},
		"another pin":      {reporterState{}, told(func(in *v1alpha1.Installation) { in.Status.Pin = "q" }), &health.Reporter{State: "stale", Ready: "True", Message: "its report is for version 1.0.0, generation 2 of 2"}},
	} {
		if d := cmp.Diff(c.want, c.of.compare(c.inst, judged)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
