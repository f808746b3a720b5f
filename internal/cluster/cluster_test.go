package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

type object = clustertest.Object

// openClient returns a client for the server.
func openClient(t *testing.T, s *clustertest.Server, timeout time.Duration) *cluster.Client {
	t.Helper()
	c, err := cluster.Open(cluster.Options{File: writeKubeconfig(t, s.Kubeconfig()), Timeout: timeout, UserAgent: "quayside/test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeKubeconfig(t testing.TB, kubeconfig string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func managedObject(apiVersion, kind, namespace, name string) object {
	meta := object{"name": name, "labels": object{"quayside.dev/package": "etcd"}, "managedFields": []any{object{"manager": "x"}}}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
}

func refTo(o object) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{
		APIVersion: k8s.Text(o, "apiVersion"), Kind: k8s.Text(o, "kind"),
		Namespace: k8s.Text(o, "metadata", "namespace"), Name: k8s.Text(o, "metadata", "name"),
	}
}

// summarize returns one line for each observation.
func summarize(seen []v1alpha1.Observed) []string {
	var out []string
	for _, o := range seen {
		what := "absent"
		switch {
		case o.Object != nil && (o.Reason != "" || o.Message != ""):
			what = "contradiction"
		case o.Object != nil:
			what = fmt.Sprint(o.Object["apiVersion"], " ", o.Object["kind"], " ", k8s.Text(o.Object, "metadata", "name"))
		case o.Reason != "":
			what = o.Reason + ": " + o.Message
		}
		out = append(out, o.Ref.Kind+" "+o.Ref.Name+" is "+what)
	}
	return out
}

func TestRead(t *testing.T) {
	s := clustertest.New(t)
	var refs []v1alpha1.ObjectReference
	for i := range 5 {
		o := managedObject("v1", "ServiceAccount", fmt.Sprintf("ns%d", i%2), fmt.Sprintf("sa%d", i))
		s.Put(o)
		refs = append(refs, refTo(o))
	}
	bare := managedObject("v1", "ServiceAccount", "ns0", "bare") // without labels, as if applied by another tool
	delete(bare["metadata"].(object), "labels")
	s.Put(bare, managedObject("apps/v1", "Deployment", "ns0", "operator"))
	refs = append(refs, refTo(bare), refTo(managedObject("v1", "ServiceAccount", "ns0", "gone")), refTo(managedObject("apps/v1", "Deployment", "ns0", "operator")),
		refTo(managedObject("etcd.database.coreos.com/v1beta2", "EtcdCluster", "ns0", "one")), refTo(managedObject("v1", "Nonsense", "ns0", "one")), refs[0])
	c := openClient(t, s, 0)
	got, err := c.Read(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ServiceAccount sa0 is v1 ServiceAccount sa0",
		"ServiceAccount sa1 is v1 ServiceAccount sa1",
		"ServiceAccount sa2 is v1 ServiceAccount sa2",
		"ServiceAccount sa3 is v1 ServiceAccount sa3",
		"ServiceAccount sa4 is v1 ServiceAccount sa4",
		"ServiceAccount bare is v1 ServiceAccount bare",
		"ServiceAccount gone is absent",
		"Deployment operator is apps/v1 Deployment operator",
		"EtcdCluster one is NoKind: the cluster serves no etcd.database.coreos.com/v1beta2",
		"Nonsense one is NoKind: the cluster serves no kind Nonsense in v1",
		"ServiceAccount sa0 is v1 ServiceAccount sa0",
	}
	if d := cmp.Diff(want, summarize(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	asked := s.Requests()
	slices.Sort(asked)
	if d := cmp.Diff([]string{
		"GET /api/v1",
		"GET /api/v1/namespaces/ns0/serviceaccounts/bare",
		"GET /api/v1/namespaces/ns0/serviceaccounts/gone",
		"GET /api/v1/serviceaccounts?labelSelector=quayside.dev%2Fpackage&limit=250",
		"GET /apis/apps/v1",
		"GET /apis/apps/v1/namespaces/ns0/deployments/operator",
		"GET /apis/etcd.database.coreos.com/v1beta2",
	}, asked); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if got[0].Object["metadata"].(object)["managedFields"] != nil {
		t.Error("managedFields were kept")
	}
}

func TestReadOneNamespace(t *testing.T) {
	s := clustertest.New(t)
	var refs []v1alpha1.ObjectReference
	for i := range 5 {
		o := managedObject("rbac.authorization.k8s.io/v1", "Role", "ns", fmt.Sprintf("role%d", i))
		s.Put(o)
		refs = append(refs, refTo(o))
	}
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/apis/rbac.authorization.k8s.io/v1/roles" {
			clustertest.Refuse(w, http.StatusForbidden, "Forbidden", "not in all namespaces")
			return
		}
		next.ServeHTTP(w, r)
	})
	if got := read(t, openClient(t, s, 0), refs); slices.ContainsFunc(got, func(o v1alpha1.Observed) bool { return o.Object == nil }) {
		t.Errorf("%q", summarize(got))
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests, want the discovery and one list of the namespace", n)
	}
}

func read(t *testing.T, c *cluster.Client, refs []v1alpha1.ObjectReference) []v1alpha1.Observed {
	t.Helper()
	got, err := c.Read(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSecretContentIsNotRead checks that only the metadata of Secrets and ConfigMaps is requested, and
// that other content in the response is dropped.
func TestSecretContentIsNotRead(t *testing.T) {
	s := clustertest.New(t)
	var refs []v1alpha1.ObjectReference
	for _, kind := range []string{"Secret", "ConfigMap"} {
		o := managedObject("v1", kind, "ns", "hidden")
		o["data"] = object{"password": "c2VjcmV0"}
		s.Put(o)
		refs = append(refs, refTo(o))
	}
	for _, partial := range []bool{true, false} {
		s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/hidden") && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;g=meta.k8s.io;v=v1") {
				t.Errorf("%s: accepts %q", r.URL.Path, r.Header.Get("Accept"))
			}
			if !partial {
				r.Header.Set("Accept", "application/json")
			}
			next.ServeHTTP(w, r)
		})
		for _, o := range read(t, openClient(t, s, 0), refs) {
			if o.Object == nil || o.Object["data"] != nil || o.Object["kind"] != o.Ref.Kind {
				t.Errorf("%v", o)
			}
		}
	}
}

func TestCRDSchemasAreDropped(t *testing.T) {
	s := clustertest.New(t)
	o := managedObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")
	o["spec"] = object{
		"group": "example.com", "scope": "Namespaced", "names": object{"kind": "Thing", "plural": "things"},
		"versions": []any{object{"name": "v1", "served": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}},
	}
	s.Put(o)
	got := read(t, openClient(t, s, 0), []v1alpha1.ObjectReference{refTo(o)})
	version := got[0].Object["spec"].(object)["versions"].([]any)[0].(object)
	if d := cmp.Diff(object{"name": "v1", "served": true}, version); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}

// TestReadFaults simulates every kind of failure for the objects of one kind. Objects of other kinds must be
// read as usual.
func TestReadFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects int
		fault   func(w http.ResponseWriter, r *http.Request, next http.Handler, nth int)
		want    string // prefix of the reason and message of each object, %s for the timeout; empty: success
	}{
		{"ok/list forbidden, objects permitted", 5, func(w http.ResponseWriter, r *http.Request, next http.Handler, _ int) {
			if r.URL.Query().Has("limit") {
				clustertest.Refuse(w, http.StatusForbidden, "Forbidden", "no lists")
				return
			}
			next.ServeHTTP(w, r)
		}, ""},
		{"error/all forbidden", 5, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			clustertest.Refuse(w, http.StatusForbidden, "Forbidden", `deployments.apps is forbidden: User "reader" cannot`)
		}, `Forbidden deployments.apps is forbidden: User "reader" cannot`},
		{"ok/busy twice", 5, func(w http.ResponseWriter, r *http.Request, next http.Handler, nth int) {
			if nth < 2 {
				w.Header().Set("Retry-After", "0")
				clustertest.Refuse(w, http.StatusTooManyRequests, "TooManyRequests", "busy")
				return
			}
			next.ServeHTTP(w, r)
		}, ""},
		{"ok/connection cut once", 1, func(w http.ResponseWriter, r *http.Request, next http.Handler, nth int) {
			if nth == 0 {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		}, ""},
		{"ok/list expired once", 5, func(w http.ResponseWriter, r *http.Request, next http.Handler, nth int) {
			if nth == 0 {
				clustertest.Refuse(w, http.StatusGone, "Expired", "the continue token is too old")
				return
			}
			next.ServeHTTP(w, r)
		}, ""},
		{"ok/list always expired", 5, func(w http.ResponseWriter, r *http.Request, next http.Handler, _ int) {
			if r.URL.Query().Has("limit") {
				clustertest.Refuse(w, http.StatusGone, "Expired", "the continue token is too old")
				return
			}
			next.ServeHTTP(w, r)
		}, ""},
		{"error/malformed", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			_, _ = w.Write([]byte("<html>a proxy's page"))
		}, "Error decoding the response: serializer for text/html"},
		{"error/malformed list", 5, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			answer(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[7]}`)
		}, "Error decoding the response: "},
		{"error/about another", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			answer(w, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"other"}}`)
		}, `Error the server returned another object, "other"`},
		{"error/endless list", 5, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			answer(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"continue":"again"},"items":[{"metadata":{"name":"x"}}]}`)
		}, "Error the server returned an endless list"},
		{"error/slow", 5, func(_ http.ResponseWriter, r *http.Request, _ http.Handler, _ int) {
			<-r.Context().Done()
		}, "Error no response within %s"},
		{"error/internal", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			clustertest.Refuse(w, http.StatusInternalServerError, "InternalError", "etcdserver: \x1b[31mleader changed\n")
		}, `Error etcdserver: \u001b[31mleader changed`},
		{"error/redirected", 1, func(w http.ResponseWriter, r *http.Request, _ http.Handler, _ int) {
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusFound)
		}, "Error 302 Found: redirect to another host not followed"},
		{"error/several choices", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			w.WriteHeader(http.StatusMultipleChoices)
		}, "Error 300 Multiple Choices: redirect to another host not followed"},
		{"error/bad request", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			clustertest.Refuse(w, http.StatusBadRequest, "BadRequest", "the server rejected the request")
		}, "Error the server rejected the request"},
		{"error/huge", 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ int) {
			_, _ = w.Write(make([]byte, 11<<20))
		}, "Error the response is too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			account := managedObject("v1", "ServiceAccount", "ns", "operator")
			s.Put(account)
			refs := []v1alpha1.ObjectReference{}
			for i := range c.objects {
				o := managedObject("apps/v1", "Deployment", "ns", fmt.Sprintf("operator%d", i))
				s.Put(o)
				refs = append(refs, refTo(o))
			}
			refs = append(refs, refTo(account))
			nth := make(chan int, 1)
			nth <- 0
			s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !strings.Contains(r.URL.Path, "/deployments") {
					next.ServeHTTP(w, r)
					return
				}
				n := <-nth
				nth <- n + 1
				c.fault(w, r, next, n)
			})
			timeout, want := time.Minute, c.want
			if strings.Contains(want, "%s") {
				timeout = 300 * time.Millisecond
			}
			got := read(t, openClient(t, s, timeout), refs)
			for ; got[c.objects].Object == nil && timeout < time.Minute; timeout *= 4 { // on a busy machine, even a fast response may be late
				got = read(t, openClient(t, s, timeout*4), refs)
			}
			want = strings.ReplaceAll(want, "%s", timeout.String())
			for _, o := range got[:c.objects] {
				if have := strings.TrimSpace(o.Reason + " " + o.Message); have != strings.TrimSpace(want) && (want == "" || !strings.HasPrefix(have, want)) || (o.Object == nil) != (want != "") {
					t.Errorf("%s: %q, object %v", o.Ref.Name, have, o.Object)
				}
			}
			if got[c.objects].Object == nil {
				t.Errorf("the other kind was not read: %v", got[c.objects])
			}
		})
	}
}

// TestLateResponsesEnd checks that the client stops fetching single objects of a kind after a few
// timeouts.
func TestLateResponsesEnd(t *testing.T) {
	s := clustertest.New(t)
	var refs []v1alpha1.ObjectReference
	for i := range 200 {
		refs = append(refs, refTo(managedObject("apps/v1", "Deployment", "ns", fmt.Sprintf("operator%d", i))))
	}
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.URL.Query().Has("limit"):
			clustertest.Refuse(w, http.StatusForbidden, "Forbidden", "no lists")
		case strings.Contains(r.URL.Path, "/deployments/"):
			clustertest.Refuse(w, http.StatusInternalServerError, "InternalError", "broken")
		default:
			next.ServeHTTP(w, r)
		}
	})
	got := read(t, openClient(t, s, 0), refs)
	for _, o := range got {
		if o.Reason != v1alpha1.ReasonError {
			t.Fatalf("%v", o)
		}
	}
	if n := len(s.Requests()); n > 40 {
		t.Errorf("%d requests", n)
	}
}

func TestPages(t *testing.T) {
	s := clustertest.New(t)
	for i := range 620 {
		s.Put(managedObject("v1", "Pod", "ns", fmt.Sprintf("pod%03d", i)))
	}
	c := openClient(t, s, 0)
	for _, test := range []struct {
		most, want int
		more       int64
		requests   int
	}{{0, 620, 0, 3}, {300, 300, 320, 2}, {620, 620, 0, 3}, {1, 1, 619, 1}} {
		c.Forget()
		s.Requests()
		got, err := c.List(t.Context(), cluster.ListOptions{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Limit: test.most})
		if err != nil {
			t.Fatal(err)
		}
		asked := len(s.Requests()) - 1 // discovery
		if len(got.Objects) != test.want || got.More != test.more || asked != test.requests || got.Reason != "" {
			t.Errorf("at most %d: %d objects, %d more, %d requests, %s", test.most, len(got.Objects), got.More, asked, got.Reason)
		}
		if got.Objects[0]["kind"] != "Pod" {
			t.Errorf("an object without its kind: %v", got.Objects[0])
		}
	}
	got, err := c.List(t.Context(), cluster.ListOptions{APIVersion: "v1", Kind: "Pod", Labels: "app=etcd"})
	if err != nil || len(got.Objects) != 0 {
		t.Errorf("%d objects match a label that no object has, %v", len(got.Objects), err)
	}
	got, err = c.List(t.Context(), cluster.ListOptions{APIVersion: "example.com/v1", Kind: "Thing"})
	if want := (cluster.ListResult{Reason: v1alpha1.ReasonNoKind, Message: "the cluster serves no example.com/v1"}); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestListExpires simulates a list that expires at its second page. The client must start the list again, and
// return each object once. If the list expires a second time, List must report an error.
func TestListExpires(t *testing.T) {
	s := clustertest.New(t)
	for i := range 300 {
		s.Put(managedObject("v1", "Pod", "ns", fmt.Sprintf("pod%03d", i)))
	}
	expire := 1
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Has("continue") && expire > 0 {
			expire--
			clustertest.Refuse(w, http.StatusGone, "Expired", "the continue token is too old")
			return
		}
		next.ServeHTTP(w, r)
	})
	c, pods := openClient(t, s, 0), cluster.ListOptions{APIVersion: "v1", Kind: "Pod"}
	got, err := c.List(t.Context(), pods)
	if err != nil || got.Reason != "" || expire != 0 {
		t.Fatalf("%s %s, %v", got.Reason, got.Message, err)
	}
	names := map[string]bool{}
	for _, o := range got.Objects {
		names[k8s.Text(o, "metadata", "name")] = true
	}
	if len(got.Objects) != 300 || len(names) != 300 {
		t.Errorf("%d objects with %d names, want 300", len(got.Objects), len(names))
	}
	expire = 2
	if got, err = c.List(t.Context(), pods); err != nil || got.Reason != v1alpha1.ReasonError || expire != 0 {
		t.Errorf("expired twice: %s %s, %v", got.Reason, got.Message, err)
	}
}

// TestKindServedLater reads a kind that the server did not serve during the first discovery.
func TestKindServedLater(t *testing.T) {
	s := clustertest.New(t)
	c := openClient(t, s, 0)
	thing := managedObject("example.com/v1", "Thing", "ns", "one")
	refs := []v1alpha1.ObjectReference{refTo(thing)}
	if got := read(t, c, refs); got[0].Reason != v1alpha1.ReasonNoKind {
		t.Fatalf("%v", got)
	}
	definition := managedObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com")
	definition["spec"] = object{"group": "example.com", "scope": "Namespaced", "names": object{"kind": "Thing", "plural": "things"}, "versions": []any{object{"name": "v1"}}}
	s.Put(definition, thing)
	c.Forget()
	if got := read(t, c, refs); got[0].Object == nil {
		t.Fatalf("%v", got)
	}
	wide := refs[0]
	wide.Namespace = ""
	if got := read(t, c, []v1alpha1.ObjectReference{wide}); got[0].Message != "the cluster serves Thing with another scope" {
		t.Errorf("%v", got)
	}
}

func TestCancelled(t *testing.T) {
	s := clustertest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Intercept(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		cancel()
		<-r.Context().Done()
	})
	_, err := openClient(t, s, 0).Read(ctx, []v1alpha1.ObjectReference{refTo(managedObject("v1", "Secret", "ns", "x"))})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
