package cluster_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

func TestOpen(t *testing.T) {
	s := clustertest.New(t)
	good := writeKubeconfig(t, s.Kubeconfig())
	var config object
	if err := json.Unmarshal([]byte(s.Kubeconfig()), &config); err != nil {
		t.Fatal(err)
	}
	without := func(field string) string {
		c := object{}
		for k, v := range config {
			if k != field {
				c[k] = v
			}
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return writeKubeconfig(t, string(text))
	}
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		name string
		opt  cluster.Options
		want string
	}{
		{"ok/file", cluster.Options{File: good}, ""},
		{"ok/first existing file", cluster.Options{Files: []string{absent, good}}, ""},
		{"error/absent file", cluster.Options{File: absent}, "no such file"},
		{"error/nothing there", cluster.Options{Files: []string{absent}}, "no kubeconfig with a context (tried " + absent + "): specify one with --kubeconfig"},
		{"error/in no cluster", cluster.Options{Files: []string{absent}, InCluster: true}, "unable to load in-cluster configuration"},
		{"error/context of no kubeconfig", cluster.Options{Files: []string{absent}, InCluster: true, Context: "test"}, "no kubeconfig with a context"},
		{"error/context", cluster.Options{File: good, Context: "tset"}, `no context "tset" in the kubeconfig (available: test) (did you mean "test"?)`},
		{"error/no current", cluster.Options{File: without("current-context")}, "the kubeconfig has no current context: specify one with --context (available: test)"},
		{"error/no cluster", cluster.Options{File: without("clusters")}, `context "test": `},
		{"error/no yaml", cluster.Options{File: writeKubeconfig(t, "{token: "+clustertest.Token)}, "reading the kubeconfig: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := cluster.Open(c.opt)
			if c.want == "" {
				if err != nil || got.Context != "test" || got.Server != s.URL {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), clustertest.Token) {
				t.Errorf("%v", err)
			}
		})
	}
	names, err := cluster.Contexts(cluster.Options{File: good})
	if d := cmp.Diff([]string{"test"}, names); d != "" || err != nil {
		t.Errorf("%v %v", d, err)
	}
}

// TestUnreachable checks the errors for unreachable clusters, which must not contain the token.
func TestUnreachable(t *testing.T) {
	s := clustertest.New(t)
	gone := clustertest.New(t)
	gone.Close()
	secret := strings.Replace(s.URL, "https://", "https://user:hunter2@", 1)
	for _, tc := range []struct{ name, kubeconfig, want string }{
		{"error/refused", gone.Kubeconfig(), "connection refused"},
		{"error/not trusted", clustertest.KubeconfigOf(s.URL, nil, clustertest.Token), "certificate"},
		{"error/login", strings.Replace(s.Kubeconfig(), clustertest.Token, clustertest.Token+"x", 1), "credentials rejected (401 Unauthorized)"},
		{"error/password", clustertest.KubeconfigOf(secret, nil, ""), "certificate"},
		{"error/no host", clustertest.KubeconfigOf("https://no-such-host.invalid:6443", nil, clustertest.Token), "no-such-host.invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := cluster.Open(cluster.Options{File: writeKubeconfig(t, tc.kubeconfig)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Read(t.Context(), []v1alpha1.ObjectReference{refTo(managedObject("v1", "Secret", "ns", "x"))})
			var unreachable *cluster.UnreachableError
			if !errors.As(err, &unreachable) {
				t.Fatalf("%v", err)
			}
			text := err.Error()
			if !strings.Contains(text, `context "test" at `+unreachable.Server) || !strings.Contains(text, tc.want) {
				t.Errorf("%s", text)
			}
			for _, never := range []string{clustertest.Token, "hunter2", "user:"} {
				if strings.Contains(text, never) {
					t.Errorf("contains %q: %s", never, text)
				}
			}
		})
	}
}
