package live_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/live/livetest"
	"github.com/quayside/quayside/report/v1alpha1"
)

func TestOpen(t *testing.T) {
	s := livetest.New(t)
	good := written(t, s.Kubeconfig())
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
		return written(t, string(text))
	}
	absent := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		name string
		opt  live.Options
		want string
	}{
		{"ok/file", live.Options{File: good}, ""},
		{"ok/first that is there", live.Options{Files: []string{absent, good}}, ""},
		{"error/absent file", live.Options{File: absent}, "no such file"},
		{"error/nothing there", live.Options{Files: []string{absent}}, "no kubeconfig with a context (looked for " + absent + "): name one with --kubeconfig"},
		{"error/context", live.Options{File: good, Context: "tset"}, `no context "tset" in the kubeconfig (have test) (did you mean "test"?)`},
		{"error/no current", live.Options{File: without("current-context")}, "the kubeconfig has no current context: name one with --context (have test)"},
		{"error/no cluster", live.Options{File: without("clusters")}, `context "test": `},
		{"error/no yaml", live.Options{File: written(t, "{token: "+livetest.Token)}, "reading the kubeconfig: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := live.Open(c.opt)
			if c.want == "" {
				if err != nil || got.Context != "test" || got.Server != s.URL {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), livetest.Token) {
				t.Errorf("%v", err)
			}
		})
	}
	names, err := live.Contexts(live.Options{File: good})
	if d := cmp.Diff([]string{"test"}, names); d != "" || err != nil {
		t.Errorf("%v %v", d, err)
	}
}

// TestUnreachable has clusters that give no answer, and looks for the token in
// what is said of them.
func TestUnreachable(t *testing.T) {
	s := livetest.New(t)
	gone := livetest.New(t)
	gone.Close()
	secret := strings.Replace(s.URL, "https://", "https://user:hunter2@", 1)
	for _, c := range []struct{ name, kubeconfig, want string }{
		{"error/refused", gone.Kubeconfig(), "connection refused"},
		{"error/not trusted", livetest.KubeconfigOf(s.URL, nil, livetest.Token), "certificate"},
		{"error/login", strings.Replace(s.Kubeconfig(), livetest.Token, livetest.Token+"x", 1), "does not accept the login (401 Unauthorized)"},
		{"error/password", livetest.KubeconfigOf(secret, nil, ""), "certificate"},
		{"error/no host", livetest.KubeconfigOf("https://no-such-host.invalid:6443", nil, livetest.Token), "no-such-host.invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, err := live.Open(live.Options{File: written(t, c.kubeconfig)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cluster.Read(t.Context(), []v1alpha1.ObjectReference{refTo(ours("v1", "Secret", "ns", "x"))})
			var unreachable *live.UnreachableError
			if !errors.As(err, &unreachable) {
				t.Fatalf("%v", err)
			}
			text := err.Error()
			if !strings.Contains(text, `context "test" at `+unreachable.Server) || !strings.Contains(text, c.want) {
				t.Errorf("%s", text)
			}
			for _, never := range []string{livetest.Token, "hunter2", "user:"} {
				if strings.Contains(text, never) {
					t.Errorf("says %q: %s", never, text)
				}
			}
		})
	}
}
