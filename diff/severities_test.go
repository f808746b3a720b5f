package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// TestSeverityOfChange changes single objects of mutantBase and checks the highest severity of the findings.
// Each condition of the severity tables has a case that meets it and one that does not. If a line of edits
// ends with "then", the edit is made in both states, before the change.
func TestSeverityOfChange(t *testing.T) {
	const (
		secret  = "add {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ops}"
		policy  = "add {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n, namespace: ops}, spec: {podSelector: {}, ingress: "
		foreign = "metadata: {name: x, namespace: ops, labels: {quayside.dev/install-namespace: other, quayside.dev/package: thing}}"
		webhook = "set ValidatingWebhookConfiguration demo webhooks.0."
		crd     = "set CustomResourceDefinition widgets.demo.io spec."
		pod     = "set Deployment demo spec.template.spec."
	)
	for _, c := range []struct {
		want  Severity
		edits string // separated by line breaks
	}{
		// Custom resources, by the owner of their CRD.
		{Info, "set Widget demo spec.size 2"},
		{High, "add {apiVersion: demo.io/v1, kind: Widget, " + foreign + ", spec: {size: 1}}"},
		{Medium, "del CustomResourceDefinition widgets.demo.io then\nset Widget demo zzz 1"},
		{Medium, "add {apiVersion: a.example/v1, kind: Thing, metadata: {name: a, namespace: ops}}"},
		{High, "add {apiVersion: a.example/v1, kind: Thing, metadata: {name: a}}"},

		// Added objects, by their content.
		{Medium, secret + ", type: Opaque}"},
		{High, secret + ", type: kubernetes.io/service-account-token}"},
		{Info, "add {apiVersion: v1, kind: Service, metadata: {name: s, namespace: ops}, spec: {type: ClusterIP}}"},
		{High, "add {apiVersion: v1, kind: Service, metadata: {name: s, namespace: ops}, spec: {type: ExternalName, externalName: a.example.com}}"},
		{High, policy + "[{ports: [{port: 1}]}]}}"},
		{Low, strings.Replace(policy, "podSelector: {}", "podSelector: {matchLabels: {app: demo}}", 1) + "[{ports: [{port: 1}]}]}}"},
		{Low, policy + "[{from: [{podSelector: {}}]}]}}"},
		{High, policy + "[{}]}}"},
		{High, policy + "[{ports: [{port: 1}], from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}}"},
		{High, "add {apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v2.demo.io}, spec: {group: demo.io, version: v2}}"},
		{Critical, "add {apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v2.demo.io, labels: {quayside.dev/install-namespace: other, quayside.dev/package: thing}}, spec: {group: demo.io, version: v2}}"},

		// Fields of webhooks and conversion.
		{Low, webhook + "clientConfig.service.path /other"},
		{Off, webhook + "clientConfig.service.port 443"},
		{High, webhook + "clientConfig.service.name other"},
		{High, webhook + "clientConfig.caBundle YQ=="},
		{High, webhook + "zzz x"},
		{Off, webhook + "matchPolicy Equivalent"},
		{Low, "set ValidatingWebhookConfiguration demo zzz x"},
		{Low, crd + "conversion.webhook.clientConfig.service.path /other"},
		{High, crd + "conversion.webhook.clientConfig.service.name other"},
		{High, crd + "conversion.webhook.clientConfig.caBundle YQ=="},
		{Low, crd + "conversion.webhook.conversionReviewVersions [v1, v1beta1]"},

		// Fields of metadata and of pods.
		{High, "set ConfigMap demo metadata.ownerReferences [{kind: A, name: b}]"},
		{Critical, "set Namespace ops metadata.ownerReferences [{kind: A, name: b}]"},
		{Critical, "add {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: ops, ownerReferences: [{kind: A, name: b}]}}"},
		{High, "set ConfigMap demo metadata.labels {app.kubernetes.io/instance: other}"},
		{Medium, "set ConfigMap demo metadata.finalizers [a]"},
		{Info, "set ConfigMap demo metadata.labels {a: b}"},
		{High, "set ServiceAccount demo metadata.annotations.eks.amazonaws.com/role-arn x"},
		{Info, pod + "containers.0.securityContext.readOnlyRootFilesystem true"},
		{Medium, pod + "containers.0.securityContext.procMount x"},
		{Info, pod + "containers.0.terminationMessagePath /x"},
		{Medium, pod + "containers.0.image2 secret"},

		// Fields of CRDs without their own rule.
		{Info, crd + "versions.0.additionalPrinterColumns [{name: a, type: string, jsonPath: .spec.a}]"},
		{Info, crd + "versions.0.schema.openAPIV3Schema.properties.spec.x-kubernetes-int-or-string false"},
		{Low, crd + "versions.0.zzz x"},
	} {
		before := mutantBase(t)
		lines := strings.Split(c.edits, "\n")
		for _, line := range lines[:len(lines)-1] {
			before = before.mutant(t, strings.TrimSuffix(line, " then"))
		}
		r := compare(t, before, before.mutant(t, lines[len(lines)-1]))
		worst := Off
		for _, f := range r.Findings {
			worst = max(worst, f.Severity)
		}
		if worst != c.want {
			t.Errorf("%s:\nis %s, want %s: %q", c.edits, worst, c.want, allLines(r))
		}
	}
}

// allLines formats every finding of a report.
func allLines(r *Report) (out []string) {
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s %s %s→%s %s", f.Severity, f.Rule, f.Field, f.Before, f.After, f.Message))
	}
	return out
}

// TestExemptChanges makes changes that must not be reported, and similar changes that must be reported.
func TestExemptChanges(t *testing.T) {
	const schema = "set CustomResourceDefinition widgets.demo.io spec.versions.0.schema.openAPIV3Schema.properties.spec."
	for _, c := range []struct {
		exempt bool
		line   string
	}{
		{true, "set CustomResourceDefinition widgets.demo.io status.a b"},
		{true, "set CustomResourceDefinition widgets.demo.io metadata.creationTimestamp null"},
		{false, "set CustomResourceDefinition widgets.demo.io metadata.creationTimestamp a"},
		{false, "set ConfigMap demo metadata.resourceVersion a"},
		{false, "set ConfigMap demo metadata.uid a"},
		{true, "set CustomResourceDefinition widgets.demo.io metadata.annotations.controller-gen.kubebuilder.io/version v0.1.2"},
		{false, "set ConfigMap demo metadata.annotations.controller-gen.kubebuilder.io/version v0.1.2"},
		{true, "set Deployment demo metadata.annotations.quayside.dev/version 1.1.0"},
		{true, "set CustomResourceDefinition widgets.demo.io metadata.labels {quayside.dev/version: 1.1.0}"},
		{false, "set ConfigMap demo data.quayside.dev/version v1"},
		{true, "set Deployment demo metadata.labels {app.kubernetes.io/version: 1.1.0}"},
		{false, "set Deployment demo metadata.labels {app.kubernetes.io/version: 1.0.1}"},
		{true, schema + "description a"},
		{false, schema + "properties.description {type: string}"},
		{true, schema + "x-kubernetes-list-type atomic"},
		{false, schema + "x-kubernetes-list-type set"},
		{false, schema + "properties.minItems 0"},
		{true, schema + "x-kubernetes-map-type granular"},
		{false, schema + "x-kubernetes-map-type atomic"},
		{true, schema + "minLength 0"},
		{false, schema + "minLength 1"},
		{true, schema + "nullable false"},
		{false, schema + "nullable true"},
	} {
		base := mutantBase(t)
		after := base.mutant(t, c.line)
		after.Pins = []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: "1.1.0"}}
		for _, reverse := range []bool{false, true} {
			a, b := base, after
			if reverse {
				a, b = after, base
			}
			r := compare(t, a, b)
			found := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return strings.HasPrefix(f.Rule, "objects.") || strings.HasPrefix(f.Rule, "crd.")
			})
			if found == c.exempt {
				t.Errorf("%s, reversed %t: exempt %t, want %t: %q", c.line, reverse, !found, c.exempt, allLines(r))
			}
		}
	}
}

// TestSchemaPath formats paths in the schema of a CRD.
func TestSchemaPath(t *testing.T) {
	for text, want := range map[string]string{
		"properties spec properties size minimum":             "spec.size minimum",
		"properties list items properties a type":             "list[].a type",
		"properties map additionalProperties":                 "map{}",
		"properties properties properties items items format": "properties.items[] format",
		"properties": "properties",
		"properties a x-kubernetes-validations rule": "a x-kubernetes-validationsrule",
		"type":                         "type",
		"items":                        "[]",
		"properties a enum properties": "a enumproperties",
	} {
		var path fieldPath
		for _, key := range strings.Fields(text) {
			path = append(path, step{key: key})
		}
		if got := formatSchemaPath(path); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestRoleGrants converts roles to sets of grants, up to a maximum size. A rule that grants nothing, or
// that has unknown fields, is itself a member of the set.
func TestRoleGrants(t *testing.T) {
	rule := func(n int) map[string]any {
		var names []any
		for i := range n {
			names = append(names, fmt.Sprint(i))
		}
		return map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}, "resourceNames": names}
	}
	role := func(rules ...any) map[string]any { return map[string]any{"rules": rules} }
	keys := func(m map[string]any) []string { return sortedKeys(m) }
	if d := cmp.Diff([]string{"get pods"}, keys(roleGrants(role(rule(0))))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"get /healthz"}, keys(roleGrants(role(map[string]any{"verbs": []any{"get"}, "nonResourceURLs": []any{"/healthz"}})))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"get pods", "rule 1"}, keys(roleGrants(role(rule(0), map[string]any{"verbs": []any{"get"}})))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := roleGrants(role(rule(maxRoleGrants))); len(got) != maxRoleGrants {
		t.Errorf("%d grants, want %d", len(got), maxRoleGrants)
	}
	if got := roleGrants(role(rule(maxRoleGrants + 1))); got != nil {
		t.Errorf("%d grants, want none", len(got))
	}
}

// TestComparedContent converts the subjects of a binding to a set, unless the list is empty or has duplicates.
func TestComparedContent(t *testing.T) {
	binding := func(names ...string) *Object {
		subjects := []any{}
		for _, name := range names {
			subjects = append(subjects, map[string]any{"kind": "ServiceAccount", "name": name, "namespace": "ops"})
		}
		return &Object{Content: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "x"}, "subjects": subjects}}
	}
	for names, isSet := range map[string]bool{"": false, "a": true, "a b": true, "a a": false} {
		if _, got := comparedContent(binding(strings.Fields(names)...))["subjects"].(map[string]any); got != isSet {
			t.Errorf("%q: set %t, want %t", names, got, isSet)
		}
	}
}

// TestSourceOfGrant checks that findSource prefers a role of the subject's operator, and that a Role grants
// permissions only in its own namespace.
func TestSourceOfGrant(t *testing.T) {
	role := func(kind, namespace, name, operator string) Object {
		return Object{Operator: operator, Content: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace},
			"rules": []any{map[string]any{"verbs": []any{"list"}, "apiGroups": []any{"x"}, "resources": []any{"y"}}, map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}}},
		}}
	}
	s := State{Objects: []Object{role("Role", "elsewhere", "a", "ops/demo"), role("Role", "ops", "b", "other/thing"), role("Role", "ops", "c", "ops/demo"), role("ClusterRole", "", "d", "other/thing")}}
	v := mustView(t, s)
	for operator, want := range map[string]string{"ops/demo": "c", "other/thing": "d", "none": "d"} {
		d := rbacDiff{object: &Object{Operator: operator}, subject: k8s.Subject{Kind: "ServiceAccount", Name: "x", Namespace: "ops"}}
		got, i := d.findSource(v, clause{verbs: []string{"get"}, objects: []string{"pods"}, grant: k8s.Grant{Resource: "pods", Namespace: "ops"}})
		if got == nil || got.Key().Name != want || i != 1 {
			t.Errorf("%s: %v, rule %d, want %s", operator, got, i, want)
		}
	}
	d := rbacDiff{subject: k8s.Subject{Kind: "ClusterRole", Name: "d"}}
	if got, _ := d.findSource(v, clause{verbs: []string{"get"}, objects: []string{"pods"}, grant: k8s.Grant{Resource: "pods"}}); got == nil || got.Key().Name != "d" {
		t.Errorf("of the role itself: %v", got)
	}
	d.subject.Name = "another"
	if got, _ := d.findSource(v, clause{verbs: []string{"get"}, objects: []string{"pods"}, grant: k8s.Grant{Resource: "pods"}}); got != nil {
		t.Errorf("of another role: %v", got)
	}
}
