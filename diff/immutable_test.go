package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// TestImmutableFields compares objects with changes that the API server refuses or accepts.
func TestImmutableFields(t *testing.T) {
	kinds := map[string]string{
		"CSIDriver": "storage.k8s.io/v1", "Deployment": "apps/v1", "Job": "batch/v1", "PersistentVolumeClaim": "v1", "ConfigMap": "v1",
		"PriorityClass": "scheduling.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1", "StatefulSet": "apps/v1", "StorageClass": "storage.k8s.io/v1",
		"ResourceQuota": "v1", "Service": "v1", "PodDisruptionBudget": "policy/v1", "IngressClass": "networking.k8s.io/v1",
	}
	for _, c := range []struct{ kind, before, after, want string }{
		{"CSIDriver", "spec: {attachRequired: false}", "spec: {}", "spec.attachRequired: false → true"},
		{"CSIDriver", "spec: {attachRequired: true}", "spec: {}", ""},
		{"CSIDriver", "spec: {}", "spec: {volumeLifecycleModes: [Persistent]}", ""},
		{"CSIDriver", "spec: {}", "spec: {volumeLifecycleModes: [Ephemeral]}", `spec.volumeLifecycleModes: ["Persistent"] → ["Ephemeral"]`},
		{"CSIDriver", "spec: {podInfoOnMount: true}", "spec: {podInfoOnMount: false}", ""},
		{"Deployment", "spec: {}", "spec: {strategy: {type: Recreate}}", "spec.strategy.type: RollingUpdate → Recreate"},
		{"Deployment", "spec: {strategy: {type: RollingUpdate}}", "spec: {strategy: {type: Recreate}}", "spec.strategy.type: RollingUpdate → Recreate"},
		{"Deployment", "spec: {strategy: {rollingUpdate: {maxSurge: 1}}}", "spec: {strategy: {type: Recreate}}", ""},
		{"Deployment", "spec: {strategy: {type: Recreate}}", "spec: {}", ""},
		{"Job", "spec: {}", "spec: {completions: 1}", ""},
		{"Job", "spec: {}", "spec: {completions: 2}", "spec.completions: 1 → 2"},
		{"Job", "spec: {parallelism: 1}", "spec: {parallelism: 2}", ""},
		{"PersistentVolumeClaim", "spec: {storageClassName: a}", "spec: {}", "spec.storageClassName: a → -"},
		{"PersistentVolumeClaim", "spec: {}", "spec: {storageClassName: a}", ""},
		{"PriorityClass", "value: 1", "value: 2", "value: 1 → 2"},
		{"PriorityClass", "value: 0", "{}", ""},
		{"RuntimeClass", "handler: a", "handler: b", "handler: a → b"},
		{"StatefulSet", "spec: {podManagementPolicy: OrderedReady}", "spec: {}", ""},
		{"StatefulSet", "spec: {volumeClaimTemplates: []}", "spec: {}", ""},
		{"StatefulSet", "spec: {minReadySeconds: 1}", "spec: {minReadySeconds: 2}", ""},
		{"StorageClass", "parameters: {a: b}", "parameters: {}", `parameters: {"a":"b"} → -`},
		{"StorageClass", "{}", "reclaimPolicy: Retain", "reclaimPolicy: Delete → Retain"},
		{"ResourceQuota", "spec: {scopes: [Terminating]}", "spec: {}", `spec.scopes: ["Terminating"] → -`},
		{"Service", "spec: {loadBalancerClass: a}", "spec: {loadBalancerClass: b}", "spec.loadBalancerClass: a → b"},
		{"PodDisruptionBudget", "spec: {minAvailable: 1}", "spec: {minAvailable: 2}", ""},
		{"IngressClass", "spec: {controller: a}", "spec: {controller: b}", "spec.controller: a → b"},
		{"ConfigMap", "data: {a: b}\nimmutable: true", "data: {a: c}", `data: {"a":"b"} → {"a":"c"}, immutable: true → -`},
		{"ConfigMap", "data: {a: b}", "data: {a: c}\nimmutable: true", ""},
	} {
		t.Run(c.kind+" "+c.before+" "+c.after, func(t *testing.T) {
			object := func(fields string) string {
				return strings.ReplaceAll("apiVersion: "+kinds[c.kind]+"\nkind: "+c.kind+"\nmetadata: {name: a, namespace: ops}\n"+fields, "\n{}", "\n")
			}
			var got []string
			for _, line := range lines(compareManifests(t, object(c.before), object(c.after))) {
				if rest, ok := strings.CutPrefix(line, "high immutable.field-changed "); ok {
					got = append(got, rest)
				}
			}
			if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestRecreated compares a Service that an entry in spec.recreate selects. At the version in the entry, a change of an
// immutable field has medium severity, and only the GitOps options for recreating are not reported.
func TestRecreated(t *testing.T) {
	state := func(version, annotations, spec, entry string) State {
		text := "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: ops, annotations: {" + annotations + "}}\nspec: " + spec
		s := State{Objects: parsed(t, "ops/demo", "rendered/s.yaml", text), Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: version, Bundle: "demo.v" + version}}}
		if entry != "" {
			s.Recreate = []profile.Recreation{{Operator: "ops/demo", Version: entry, Kind: "Service", Name: "s"}}
		}
		return s
	}
	const (
		wave    = "argocd.argoproj.io/sync-wave: '0'"
		options = wave + ", argocd.argoproj.io/sync-options: 'Replace=true,Force=true'"
		more    = wave + ", argocd.argoproj.io/sync-options: 'Replace=true,Force=true,Prune=false'"
		force   = "kustomize.toolkit.fluxcd.io/force: enabled"
	)
	for name, c := range map[string]struct {
		before, after State
		want          []string
	}{
		"not recreated": {state("1.0.0", wave, "{}", ""), state("1.0.0", wave, "{clusterIP: None}", ""), []string{"high immutable.field-changed spec.clusterIP: - → None"}},
		"recreated":     {state("1.0.0", wave, "{}", "1.0.0"), state("1.0.0", options, "{clusterIP: None}", "1.0.0"), []string{"medium immutable.recreated"}},
		"by Flux":       {state("1.0.0", "", "{}", ""), state("1.0.0", force, "{}", "1.0.0"), []string{"medium immutable.recreated"}},
		"other version": {state("1.0.0", wave, "{}", ""), state("1.0.0", options, "{}", "1.1.0"), []string{"high metadata.obeyed metadata.annotations.argocd.argoproj.io/sync-options: - → Replace=true,Force=true"}},
		"other options": {state("1.0.0", wave, "{}", ""), state("1.0.0", more, "{}", "1.0.0"), []string{"high metadata.obeyed metadata.annotations.argocd.argoproj.io/sync-options: - → Replace=true,Force=true,Prune=false", "medium immutable.recreated"}},
		"afterwards":    {state("1.0.0", options, "{clusterIP: None}", "1.0.0"), state("1.0.0", wave, "{clusterIP: None}", ""), nil},
		"still options": {state("1.0.0", options, "{clusterIP: None}", "1.0.0"), state("1.0.0", more, "{clusterIP: None}", ""), []string{"high metadata.obeyed metadata.annotations.argocd.argoproj.io/sync-options: Replace=true,Force=true → Replace=true,Force=true,Prune=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range lines(compare(t, c.before, c.after)) {
				if !strings.HasPrefix(line, "info objects.changed") {
					got = append(got, line)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
