package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMetadataIsCode adds and changes annotations on objects of several kinds and in their templates. An
// added object, an added annotation and a changed annotation must have the same severity.
func TestMetadataIsCode(t *testing.T) {
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ops%s}}"
	const set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: ops}, spec: {volumeClaimTemplates: [{metadata: {name: d%s}}], template: {metadata: {labels: {a: b}}, spec: {containers: []}}}}"
	const ingress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: ops%s}}"
	const account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: s, namespace: ops%s}}"
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ops}, spec: {template: {metadata: {labels: {a: b}%s}, spec: {containers: []}}}}"
	const job = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: ops}, spec: {jobTemplate: {metadata: {name: x%s}, spec: {template: {spec: {containers: []}}}}}}"
	const certificate = "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: c, namespace: ops}, spec: {secretTemplate: {x: y%s}}}"
	for _, c := range []struct {
		object, key, value string
		want               Severity
	}{
		{claim, "argocd.argoproj.io/hook", "PostSync", Critical},
		{claim, "argocd.argoproj.io/sync-options", "Replace=true,Force=true", Critical},
		{claim, "kustomize.toolkit.fluxcd.io/force", "enabled", Critical},
		{claim, "helm.sh/hook", "pre-install", Critical},
		{set, "argocd.argoproj.io/hook", "PostSync", Critical},
		{deployment, "argocd.argoproj.io/hook", "PostSync", High},
		{ingress, "argocd.argoproj.io/sync-options", "Force=true", High},
		{ingress, "argocd.argoproj.io/sync-wave", "5", Low},
		{ingress, "nginx.ingress.kubernetes.io/configuration-snippet", "x", High},
		{ingress, "haproxy-ingress.github.io/config-backend", "x", High},
		{account, "eks.amazonaws.com/role-arn", "x", High},
		{account, "iam.gke.io/gcp-service-account", "x", High},
		{deployment, "openshift.io/required-scc", "privileged", High},
		{job, "openshift.io/required-scc", "privileged", High},
		{deployment, "cdi.k8s.io/devices", "x", High},
		{deployment, "vault.hashicorp.com/agent-inject-command-x", "sh", High},
		{deployment, "sidecar.istio.io/inject", "true", High},
		{deployment, "quayside.dev/version", "1.0.0", High},
		{deployment, "reloader.stakater.com/auto", "true", Medium},
		{deployment, "Example.com/Server-Snippet", "x", High},
		{deployment, "example.com/note", "x", Off},
		{deployment, "app.kubernetes.io/description", "x", Off},
		{certificate, "reflector.v1.k8s.emberstack.com/reflection-allowed", "true", High},
	} {
		base := mutantBase(t)
		worst := func(before, after State) Severity {
			s := Off
			for _, f := range compare(t, before, after).Findings {
				if f.Rule == MetadataObeyed {
					s = max(s, f.Severity)
				}
			}
			return s
		}
		with := func(value string) State {
			return base.mutant(t, "add "+fmt.Sprintf(c.object, fmt.Sprintf(", annotations: {%q: %q}", c.key, value)))
		}
		without := base.mutant(t, "add "+fmt.Sprintf(c.object, ""))
		for name, got := range map[string]Severity{
			"object added": worst(base, with(c.value)), "annotation added": worst(without, with(c.value)), "annotation changed": worst(with("other"), with(c.value)),
		} {
			if got != c.want {
				t.Errorf("%s: %s %s=%s: %s, want %s", c.object[:60], name, c.key, c.value, got, c.want)
			}
		}
	}
}

// TestMetadataRow checks that each key in the table has a domain or a pattern in lower case, and that no row
// hides another.
func TestMetadataRow(t *testing.T) {
	for i, r := range metadataTable() {
		for _, name := range append(strings.Fields(r.domains), strings.Fields(r.keys)...) {
			if name != strings.ToLower(name) {
				t.Errorf("%s: %s is not in lower case", r.program, name)
			}
			key := strings.ReplaceAll(name, "*", "x")
			if slices.Contains(strings.Fields(r.domains), name) {
				key += "/x"
			}
			found, _, _ := readerOf(key)
			if first := slices.IndexFunc(metadataTable(), func(o metadataReader) bool { return o == found }); first > i || found.severity == Off {
				t.Errorf("%s: %s belongs to %s", r.program, name, found.program)
			}
		}
	}
}

// TestWrittenMetadata checks that only the values that quayside itself writes are exempt, and only on the
// objects on which it writes them.
func TestWrittenMetadata(t *testing.T) {
	base := mutantBase(t)
	for line, want := range map[string]bool{
		"set CustomResourceDefinition widgets.demo.io metadata.annotations.argocd.argoproj.io/sync-options ServerSideApply=true": true,
		"set Namespace ops metadata.annotations.argocd.argoproj.io/sync-options Prune=confirm,PruneLast=true,Delete=confirm":     false,
		"set Namespace ops metadata.annotations.kustomize.toolkit.fluxcd.io/prune disabled":                                      false,
		"set Namespace ops metadata.annotations.argocd.argoproj.io/sync-options Prune=false":                                     true,
		"set ConfigMap demo metadata.annotations.kustomize.toolkit.fluxcd.io/reconcile disabled":                                 true,
		"set Deployment demo metadata.annotations.quayside.dev/version 1.0.0":                                                    false,
		"set Deployment demo metadata.annotations.quayside.dev/version 6.6.6":                                                    true,
		"set ConfigMap demo metadata.annotations.quayside.dev/version 1.0.0":                                                     true,
		"set Deployment demo metadata.annotations.quayside.dev/other 1.0.0":                                                      true,
	} {
		r := compare(t, base, base.mutant(t, line))
		if got := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity >= High && f.Rule == MetadataObeyed }); got != want {
			t.Errorf("%s: reported %t, want %t: %q", line, got, want, allLines(r))
		}
	}
}
