package run_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

func writer(t testing.TB, kubeconfig string) run.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return run.NewLiveCluster(c)
}

func configMap(name, value string) k8s.Object {
	return k8s.With(k8s.New("v1", "ConfigMap", "ns", name), any(value), "data", "key")
}

// TestVerbs sends every kind of request to an in-memory API server, one after the other.
func TestVerbs(t *testing.T) {
	values := runtest.New(k8s.New("v1", "Namespace", "", "ns"), k8s.With(k8s.New("v1", "Secret", "ns", "s"), any("c2VjcmV0"), "data", "password"))
	c, ctx := writer(t, runtest.Serve(t, values)), t.Context()
	at := k8s.RefTo(configMap("a", ""))
	if o, err := c.Get(ctx, at); o != nil || err != nil {
		t.Fatalf("%v %v", o, err)
	}
	if o, err := c.Apply(ctx, configMap("a", "1"), "one", false, true); err != nil || o.Name() != "a" || values.Object(at) != nil {
		t.Fatalf("dry run: %v %v", o, err)
	}
	o, err := c.Apply(ctx, configMap("a", "1"), "one", false, false)
	if err != nil || k8s.Text(o, "metadata", "uid") == "" {
		t.Fatalf("%v %v", o, err)
	}
	var refused *cluster.RequestError
	_, err = c.Apply(ctx, configMap("a", "2"), "two", false, false)
	if !errors.As(err, &refused) || !slices.Equal(refused.Fields(), []string{".data.key is managed by one"}) || !strings.Contains(err.Error(), "apply v1 ConfigMap ns/a") {
		t.Fatalf("%v", err)
	}
	other := k8s.With(configMap("a", "2"), any("another"), "metadata", "uid")
	if _, err = c.Apply(ctx, other, "one", true, false); !apierrors.IsConflict(err) {
		t.Fatalf("another UID: %v", err)
	}
	if o, err = c.Apply(ctx, configMap("a", "2"), "two", true, false); err != nil || k8s.Text(o, "data", "key") != "2" {
		t.Fatalf("%v %v", o, err)
	}
	if o, err = c.Patch(ctx, at, cluster.Patch{Merge: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "y"}}}}, false); err != nil || k8s.Text(o, "metadata", "annotations", "x") != "y" {
		t.Fatalf("%v %v", o, err)
	}
	version := k8s.Text(o, "metadata", "resourceVersion")
	wrong := cluster.Patch{JSON: []cluster.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: "0"}, {Op: "remove", Path: "/metadata/annotations/x"}}}
	if _, err = c.Patch(ctx, at, wrong, false); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("%v", err)
	}
	wrong.JSON[0].Value = version
	if o, err = c.Patch(ctx, at, wrong, false); err != nil || k8s.Text(o, "metadata", "annotations", "x") != "" {
		t.Fatalf("%v %v", o, err)
	}
	uid := k8s.Text(o, "metadata", "uid")
	if err = c.Delete(ctx, at, cluster.DeleteOptions{UID: uid, ResourceVersion: version}, false); !apierrors.IsConflict(err) {
		t.Fatalf("an older version: %v", err)
	}
	for range 2 { // deleting a missing object is no error
		if err = c.Delete(ctx, at, cluster.DeleteOptions{UID: uid, Orphan: true}, false); err != nil || values.Object(at) != nil {
			t.Fatalf("%v", err)
		}
	}
	if o, err = c.Create(ctx, configMap("a", "3"), false); err != nil || k8s.Text(o, "metadata", "uid") == uid {
		t.Fatalf("%v %v", o, err)
	}
	if _, err = c.Create(ctx, configMap("a", "3"), false); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("%v", err)
	}
	if ok, err := c.Allowed(ctx, verify.Review{Account: "system:serviceaccount:ns:a", Verb: "get", Resource: "pods"}); ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	listed, err := c.List(ctx, "v1", "ConfigMap", "ns", "")
	if err != nil || len(listed) != 1 || k8s.Text(listed[0], "data", "key") != "3" {
		t.Fatalf("%v %v", listed, err)
	}
	if none, err := c.List(ctx, "no.example.com/v1", "Nothing", "", ""); len(none) != 0 || err != nil {
		t.Fatalf("%v %v", none, err)
	}
}

// TestRequestsNeedName checks that a request without a name is not sent. It also checks that only the metadata
// of a Secret is read.
func TestRequestsNeedName(t *testing.T) {
	values := runtest.New(k8s.New("v1", "Namespace", "", "ns"), k8s.With(k8s.New("v1", "Secret", "ns", "s"), any("c2VjcmV0"), "data", "password"))
	c, ctx := writer(t, runtest.Serve(t, values)), t.Context()
	for _, name := range []string{"", ".", ".."} {
		at := k8s.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: name}
		if err := c.Delete(ctx, at, cluster.DeleteOptions{UID: "x"}, false); err == nil {
			t.Errorf("%q: deleted", name)
		}
	}
	at := k8s.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"}
	if err := c.Delete(ctx, at, cluster.DeleteOptions{}, false); err == nil || values.Object(at) == nil {
		t.Errorf("deleted without a UID: %v", err)
	}
	o, err := c.Get(ctx, at)
	if err != nil || o.Name() != "s" || o["data"] != nil {
		t.Errorf("%v %v", o, err)
	}
}

// TestRetries counts the requests to a server that is busy, fails or disconnects. A request that
// may have been executed must not be repeated.
func TestRetries(t *testing.T) {
	read := func(c run.Client) error {
		_, err := c.Get(t.Context(), k8s.RefTo(configMap("a", "")))
		return err
	}
	remove := func(c run.Client) error {
		return c.Delete(t.Context(), k8s.RefTo(configMap("a", "")), cluster.DeleteOptions{UID: "u"}, false)
	}
	for _, tc := range []struct {
		name string
		do   func(run.Client) error
		code int
		want int // number of requests
		ok   bool
	}{
		{"ok/read, busy", read, 429, 3, true},
		{"ok/read, failing", read, 503, 3, true},
		{"ok/read, hung up", read, 0, 3, true},
		{"ok/write, busy", remove, 429, 3, true},
		{"error/write, failing", remove, 503, 1, false},
		{"error/write, hung up", remove, 0, 1, false},
		{"error/forbidden", remove, 403, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/v1" {
					answer(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`)
					return
				}
				if n.Add(1) < 3 {
					if tc.code == 0 {
						panic(http.ErrAbortHandler)
					}
					clustertest.Refuse(w, tc.code, "No", "not now")
					return
				}
				answer(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`)
			}))
			defer server.Close()
			err := tc.do(writer(t, clustertest.KubeconfigOf(server.URL, nil, "")))
			if got := int(n.Load()); (err == nil) != tc.ok || got != tc.want {
				t.Errorf("%d requests, %v", got, err)
			}
			if tc.code == 403 && !strings.Contains(err.Error(), "delete v1 ConfigMap ns/a") {
				t.Error(err)
			}
		})
	}
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}
