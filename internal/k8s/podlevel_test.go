package k8s

import (
	"strings"
	"testing"
)

func TestNeeded(t *testing.T) {
	pod := func(container, more map[string]any) map[string]any {
		container["name"] = "m"
		spec := map[string]any{"containers": []any{container}}
		for k, v := range more {
			spec[k] = v
		}
		return spec
	}
	tight := map[string]any{"runAsNonRoot": true, "allowPrivilegeEscalation": false, "seccompProfile": map[string]any{"type": "RuntimeDefault"}, "capabilities": map[string]any{"drop": []any{"ALL"}}}
	cases := []struct {
		name, want, why string
		spec            map[string]any
	}{
		{"no settings", Baseline, "allowPrivilegeEscalation != false", pod(map[string]any{}, nil)},
		{"all settings", Restricted, "", pod(map[string]any{"securityContext": tight}, nil)},
		{"privileged", Privileged, "privileged", pod(map[string]any{"securityContext": map[string]any{"privileged": true}}, nil)},
		{"host network", Privileged, "host namespaces", pod(map[string]any{"securityContext": tight}, map[string]any{"hostNetwork": true})},
	}
	for _, c := range cases {
		level, why, err := PodSecurityLevel(nil, c.spec)
		if err != nil || level != c.want || !strings.Contains(strings.Join(why, "; "), c.why) {
			t.Errorf("%s: got %s, %v, %v", c.name, level, why, err)
		}
	}
	if _, _, err := PodSecurityLevel(nil, map[string]any{"containers": "none"}); err == nil {
		t.Error("an invalid spec is accepted")
	}
}

func TestWeaker(t *testing.T) {
	for _, c := range []struct {
		need, enforced string
		want           bool
	}{
		{Privileged, Baseline, true}, {Baseline, Baseline, false}, {Restricted, Baseline, false}, {Baseline, "", false}, {Baseline, "strict", false},
	} {
		if got := RejectsPodLevel(c.need, c.enforced); got != c.want {
			t.Errorf("Weaker(%q, %q): got %v", c.need, c.enforced, got)
		}
	}
}
