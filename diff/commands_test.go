package diff

import (
	"slices"
	"testing"
)

// TestCode changes commands and the variables in them. Code that an interpreter or the dynamic loader executes
// must be reported wherever it is. Other arguments must not be reported as code.
func TestCode(t *testing.T) {
	const container = podEdit + "containers.0."
	for _, c := range []struct {
		want   string
		before []string
		change string
	}{
		{"high pods.code manager command: sh -c run $X → sh -c run $X; more", []string{"command [sh, -c, 'run $X']", "args []"}, "command [sh, -c, 'run $X; more']"},
		{"high pods.code manager command: sh -c run $X\nX=a → sh -c run $X\nX=b", []string{"command [sh, -c, 'run $X']", "args []", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: /usr/bin/tini /bin/bash -c eval ${X}\nX=a → /usr/bin/tini /bin/bash -c eval ${X}\nX=b", []string{"command [/usr/bin/tini, /bin/bash, -c, 'eval ${X}']", "args []", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: python3 -c system(environ['X'])\nX=a → python3 -c system(environ['X'])\nX=b", []string{"command [python3]", "args [-c, \"system(environ['X'])\"]", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: sh -c a → sh -c b", []string{"command [sh, -c]", "args [$(X)]", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: sh -c a c → sh -c b c", []string{"command [sh, -c, $(Y)]", "args []", "env.0 {name: X, value: a}", "env.1 {name: Y, value: $(X) c}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: a → b", []string{"command [$(X)]", "args []", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager command: -c run a → -c run b", []string{"command []", "args [-c, 'run a']"}, "args [-c, 'run b']"},
		{"high pods.code manager livenessProbe.exec.command: /manager a → /manager b", []string{"livenessProbe.exec.command [/manager, $(X)]", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"high pods.code manager env.LD_PRELOAD: - → /x.so", nil, "env.0 {name: LD_PRELOAD, value: /x.so}"},
		{"high pods.code helper command: - → sh -c evil", nil, "containers.1 {name: helper, image: a, command: [sh, -c, evil]}"},
		{"high pods.code helper command: - → sh -c evil", nil, "initContainers [{name: helper, image: a, command: [sh, -c, evil]}]"},
		{"", []string{"args [$$(X)]", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"", []string{"args [--zone, $(X)]", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"", []string{"command [sh, -c, 'run $XY']", "env.0 {name: X, value: a}"}, "env.0 {name: X, value: b}"},
		{"", []string{"args [-c, /etc/a]"}, "args [-c, /etc/b]"},
		{"", []string{"command [sh, -c, run]"}, "command [/manager]"},
	} {
		before := mutantBase(t)
		for _, line := range c.before {
			before = before.mutant(t, container+line)
		}
		at := container
		if c.change[:4] != "args" && c.change[:3] != "env" && c.change[:7] != "command" {
			at = podEdit
		}
		var got []string
		for _, line := range lines(compare(t, before, before.mutant(t, at+c.change))) {
			if len(line) > 15 && line[:15] == "high pods.code " {
				got = append(got, line)
			}
		}
		if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%q, %s: got %q, want %q", c.before, c.change, got, want)
		}
	}
}
