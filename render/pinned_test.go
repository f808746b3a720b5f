package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
)

// TestPortsAreMerged checks that a port without a protocol counts as TCP, and that several ports have
// names.
func TestPortsAreMerged(t *testing.T) {
	plain, tcp, udp := map[string]any{"port": int64(53)}, map[string]any{"port": int64(53), "protocol": "TCP"}, map[string]any{"port": int64(53), "protocol": "UDP"}
	got := unionPorts([]map[string]any{plain}, []map[string]any{tcp, udp})
	named := func(name, protocol string) map[string]any {
		p := map[string]any{"port": int64(53), "name": name}
		if protocol != "" {
			p["protocol"] = protocol
		}
		return p
	}
	if d := cmp.Diff([]any{named("53-tcp", ""), named("53-udp", "UDP")}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]any{plain}, unionPorts([]map[string]any{plain}, []map[string]any{tcp})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestAffinityOfNull checks that a null kind of affinity in the config changes nothing.
func TestAffinityOfNull(t *testing.T) {
	c, err := parseConfig([]byte(`{"affinity":{"nodeAffinity":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"affinity": map[string]any{"nodeAffinity": map[string]any{"a": "b"}, "podAffinity": map[string]any{"c": "d"}}}
	want := k8s.Copy(pod)
	c.applyAffinity(pod)
	if d := cmp.Diff(want, pod); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestProxyOfTheConfig checks that the workspace's proxy is not set if the config sets any proxy variable.
func TestProxyOfTheConfig(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		in := &install{opt: Options{Proxy: Proxy{HTTP: "h", HTTPS: "s", None: "n"}}, config: config{"env": []any{map[string]any{"name": name, "value": ""}}}}
		pod := map[string]any{"containers": []any{map[string]any{"name": "c"}}}
		in.addEnvironment(pod)
		env := k8s.Items(k8s.Items(pod, "containers")[0], "env")
		if len(env) != 1 || k8s.Text(env[0], "name") != conditionVariable {
			t.Errorf("%s: got %v", name, env)
		}
	}
}
