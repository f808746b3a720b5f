package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/adopt/run/kube"
	"github.com/quayside/quayside/adopt/run/runtest"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/live/livetest"
)

func open(t testing.TB, kubeconfig string) *kube.Cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := live.Open(live.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return kube.New(c)
}

func configMap(name, value string) kobj.Object {
	return kobj.With(kobj.New("v1", "ConfigMap", "ns", name), any(value), "data", "key")
}

// TestVerbs does everything once, in order, in a cluster of values.
func TestVerbs(t *testing.T) {
	values := runtest.New(kobj.New("v1", "Namespace", "", "ns"), kobj.With(kobj.New("v1", "Secret", "ns", "s"), any("c2VjcmV0"), "data", "password"))
	c, ctx := open(t, runtest.Serve(t, values)), t.Context()
	at := plan.RefTo(configMap("a", ""))
	if o, err := c.Get(ctx, at); o != nil || err != nil {
		t.Fatalf("%v %v", o, err)
	}
	if o, err := c.Apply(ctx, configMap("a", "1"), "one", false, true); err != nil || o.Name() != "a" || values.Object(at) != nil {
		t.Fatalf("dry run: %v %v", o, err)
	}
	o, err := c.Apply(ctx, configMap("a", "1"), "one", false, false)
	if err != nil || kobj.Text(o, "metadata", "uid") == "" {
		t.Fatalf("%v %v", o, err)
	}
	var conflict *run.ConflictError
	_, err = c.Apply(ctx, configMap("a", "2"), "two", false, false)
	if !errors.As(err, &conflict) || len(conflict.Fields) != 1 || conflict.Fields[0].Manager != "one" || !strings.Contains(err.Error(), "apply v1 ConfigMap ns/a") {
		t.Fatalf("%v", err)
	}
	other := kobj.With(configMap("a", "2"), any("another"), "metadata", "uid")
	if _, err = c.Apply(ctx, other, "one", true, false); !errors.As(err, &conflict) {
		t.Fatalf("another UID: %v", err)
	}
	if o, err = c.Apply(ctx, configMap("a", "2"), "two", true, false); err != nil || kobj.Text(o, "data", "key") != "2" {
		t.Fatalf("%v %v", o, err)
	}
	if o, err = c.Patch(ctx, at, run.Patch{Merge: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "y"}}}}, false); err != nil || kobj.Text(o, "metadata", "annotations", "x") != "y" {
		t.Fatalf("%v %v", o, err)
	}
	version := kobj.Text(o, "metadata", "resourceVersion")
	var refused *run.RefusedError
	wrong := run.Patch{JSON: []run.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: "0"}, {Op: "remove", Path: "/metadata/annotations/x"}}}
	if _, err = c.Patch(ctx, at, wrong, false); !errors.As(err, &refused) || refused.Why != run.Invalid {
		t.Fatalf("%v", err)
	}
	wrong.JSON[0].Value = version
	if o, err = c.Patch(ctx, at, wrong, false); err != nil || kobj.Text(o, "metadata", "annotations", "x") != "" {
		t.Fatalf("%v %v", o, err)
	}
	uid := kobj.Text(o, "metadata", "uid")
	if err = c.Delete(ctx, at, run.Deletion{UID: uid, ResourceVersion: version}, false); !errors.As(err, &conflict) {
		t.Fatalf("an older version: %v", err)
	}
	for range 2 { // what is gone is no error
		if err = c.Delete(ctx, at, run.Deletion{UID: uid, Orphan: true}, false); err != nil || values.Object(at) != nil {
			t.Fatalf("%v", err)
		}
	}
	if o, err = c.Create(ctx, configMap("a", "3"), false); err != nil || kobj.Text(o, "metadata", "uid") == uid {
		t.Fatalf("%v %v", o, err)
	}
	if _, err = c.Create(ctx, configMap("a", "3"), false); !errors.As(err, &conflict) {
		t.Fatalf("%v", err)
	}
	if ok, err := c.Allowed(ctx, verify.Review{Account: "system:serviceaccount:ns:a", Verb: "get", Resource: "pods"}); ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	listed, err := c.List(ctx, "v1", "ConfigMap", "ns", "")
	if err != nil || len(listed) != 1 || kobj.Text(listed[0], "data", "key") != "3" {
		t.Fatalf("%v %v", listed, err)
	}
	if none, err := c.List(ctx, "no.example.com/v1", "Nothing", "", ""); len(none) != 0 || err != nil {
		t.Fatalf("%v %v", none, err)
	}
}

// TestNeverAll sends nothing where no one object is meant, and reads nothing of a
// Secret but its head.
func TestNeverAll(t *testing.T) {
	values := runtest.New(kobj.New("v1", "Namespace", "", "ns"), kobj.With(kobj.New("v1", "Secret", "ns", "s"), any("c2VjcmV0"), "data", "password"))
	c, ctx := open(t, runtest.Serve(t, values)), t.Context()
	for _, name := range []string{"", ".", ".."} {
		at := plan.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: name}
		if err := c.Delete(ctx, at, run.Deletion{UID: "x"}, false); err == nil {
			t.Errorf("%q: deleted", name)
		}
	}
	at := plan.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"}
	if err := c.Delete(ctx, at, run.Deletion{}, false); err == nil || values.Object(at) == nil {
		t.Errorf("deleted without a UID: %v", err)
	}
	o, err := c.Get(ctx, at)
	if err != nil || o.Name() != "s" || o["data"] != nil {
		t.Errorf("%v %v", o, err)
	}
}

// TestPatience has a server that is busy, fails or hangs up, and counts how often it
// is asked: what may have been done is not sent again.
func TestPatience(t *testing.T) {
	read := func(c *kube.Cluster) error {
		_, err := c.Get(t.Context(), plan.RefTo(configMap("a", "")))
		return err
	}
	remove := func(c *kube.Cluster) error {
		return c.Delete(t.Context(), plan.RefTo(configMap("a", "")), run.Deletion{UID: "u"}, false)
	}
	for _, tc := range []struct {
		name string
		do   func(*kube.Cluster) error
		code int
		want int // requests
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
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/api/v1" {
					_, _ = w.Write([]byte(`{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`))
					return
				}
				if n.Add(1) < 3 {
					if tc.code == 0 {
						panic(http.ErrAbortHandler)
					}
					livetest.Refuse(w, tc.code, "No", "not now")
					return
				}
				_, _ = w.Write([]byte(`{"metadata":{"name":"a"}}`))
			}))
			defer server.Close()
			err := tc.do(open(t, livetest.KubeconfigOf(server.URL, nil, "")))
			if got := int(n.Load()); (err == nil) != tc.ok || got != tc.want {
				t.Errorf("%d requests, %v", got, err)
			}
			if tc.code == 403 && !strings.Contains(err.Error(), "quayside adopt plan --rbac") {
				t.Error(err)
			}
		})
	}
}
