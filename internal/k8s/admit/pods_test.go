package admit_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestPods checks required fields and enumerations of pods.
func TestPods(t *testing.T) {
	for name, c := range map[string]struct{ pod, want string }{
		"ok":                  {"{containers: [{name: a, image: b, imagePullPolicy: Always, ports: [{protocol: UDP}]}], tolerations: [{operator: Exists, effect: NoExecute}]}", "[]"},
		"error/no image":      {"{containers: [{name: a}]}", "[{spec.template.spec.containers[0].image missing}]"},
		"error/no name":       {"{initContainers: [{image: a}]}", "[{spec.template.spec.initContainers[0].name missing}]"},
		"error/effect":        {"{tolerations: [{effect: NoSched}]}", `[{spec.template.spec.tolerations[0].effect unsupported value "NoSched": expected one of NoSchedule, PreferNoSchedule, NoExecute}]`},
		"error/pull policy":   {"{containers: [{name: a, image: b, imagePullPolicy: never}]}", `[{spec.template.spec.containers[0].imagePullPolicy unsupported value "never": expected one of Always, IfNotPresent, Never}]`},
		"error/port protocol": {"{containers: [{name: a, image: b, ports: [{protocol: tcp}]}]}", `[{spec.template.spec.containers[0].ports[0].protocol unsupported value "tcp": expected one of TCP, UDP, SCTP}]`},
	} {
		objects, err := yamlnode.Objects("a.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: "+c.pod+"}}\n"), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, fmt.Sprint(admit.Pods(k8s.Object(objects[0])))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
