package diff

import (
	"strings"
	"testing"
)

// worst returns the highest severity of the findings about an object of the given kind, or of all
// findings if the kind is empty.
func worst(r *Report, kind string) Severity {
	out := Off
	for _, f := range r.Findings {
		if kind == "" || f.Object.Kind == kind {
			out = max(out, f.Severity)
		}
	}
	return out
}

// definition is a line of mutants that adds a CRD to the operator ops/demo.
func definition(plural, group, kind, scope string) string {
	return strings.NewReplacer("PLURAL", plural, "GROUP", group, "KIND", kind, "SCOPE", scope).Replace(
		"add {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: PLURAL.GROUP}, spec: {group: GROUP, scope: SCOPE, names: {kind: KIND, plural: PLURAL}, versions: [{name: v1, served: true, storage: true}]}}")
}

// TestKindsOfOthers adds a custom resource to the operator that ships its CRD. The kind belongs to the
// operator only if the state before says so, and never if the kind is in the table of kinds.
func TestKindsOfOthers(t *testing.T) {
	for _, c := range []struct {
		want           Severity
		before, change string // separated by line breaks
	}{
		{High, "", definition("objects", "kubernetes.crossplane.io", "Object", "Cluster") + "\nadd {apiVersion: kubernetes.crossplane.io/v1, kind: Object, metadata: {name: x}}"},
		{Medium, "", definition("things", "things.example", "Thing", "Namespaced") + "\nadd {apiVersion: things.example/v1, kind: Thing, metadata: {name: x, namespace: ops}}"},
		{Info, definition("things", "things.example", "Thing", "Cluster"), "add {apiVersion: things.example/v1, kind: Thing, metadata: {name: x}}"},
		{Info, "", definition("gadgets", "demo.io", "Gadget", "Cluster") + "\nadd {apiVersion: demo.io/v1, kind: Gadget, metadata: {name: x}}"},
		{High, definition("machineconfigs", "machineconfiguration.openshift.io", "MachineConfig", "Cluster"), "add {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: x}}"},
		{High, definition("kustomizations", "kustomize.toolkit.fluxcd.io", "Kustomization", "Namespaced"), "add {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, namespace: ops}}"},
		{High, definition("clusterpolicies", "kyverno.io", "ClusterPolicy", "Cluster"), "add {apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: x}}"},
	} {
		before := mutantBase(t)
		for line := range strings.Lines(c.before) {
			before = before.mutant(t, strings.TrimSpace(line))
		}
		after := before
		for line := range strings.Lines(c.change) {
			after = after.mutant(t, strings.TrimSpace(line))
		}
		kind := c.change[strings.LastIndex(c.change, "kind: ")+len("kind: "):]
		kind, _, _ = strings.Cut(kind, ",")
		if got := worst(compare(t, before, after), kind); got != c.want {
			t.Errorf("%s\nis %s, want %s", c.change, got, c.want)
		}
	}
}
