package diff

import (
	"strings"
	"testing"
)

// edits is a table of changes of mutantBase and their highest severity. If a line of edits ends with "then",
// the edit is made in both states.
type edits []struct {
	want  Severity
	lines string // separated by line breaks
}

func (e edits) check(t *testing.T) {
	t.Helper()
	for _, c := range e {
		before := mutantBase(t)
		lines := strings.Split(strings.TrimSpace(c.lines), "\n")
		after := before
		for _, line := range lines {
			line, both := strings.CutSuffix(strings.TrimSpace(line), " then")
			if after = after.mutant(t, line); both {
				before = after
			}
		}
		r := compare(t, before, after)
		if got := worst(r, ""); got != c.want {
			t.Errorf("%s\nis %s, want %s: %q", c.lines, got, c.want, allLines(r))
		}
		if r.Mergeable(Low) != (c.want <= Low) { // spec.propose.automerge with maxSeverity low
			t.Errorf("%s\nis merged without a review: %t", c.lines, r.Mergeable(Low))
		}
	}
}

const (
	podEdit = "set Deployment demo spec.template.spec."
	mounted = "\n" + podEdit + "containers.0.volumeMounts.1 "
)

// TestVolumes changes volumes and their mounts. A finding must report each volume whose type may reach
// outside of the pod, and each mount that reaches more of such a volume.
func TestVolumes(t *testing.T) {
	volume := func(source string) string { return podEdit + "volumes.2 {name: v, " + source + "}" }
	edits{
		{High, volume("flexVolume: {driver: a/b}")},
		{High, volume("csi: {driver: a.example}")},
		{High, volume("nfs: {server: a, path: /}")},
		{High, volume("rbd: {image: a}")},
		{High, volume("aType: {a: b}")},
		{Info, volume("emptyDir: {}")},
		{Info, volume("configMap: {name: a}")},
		{Info, volume("ephemeral: {volumeClaimTemplate: {spec: {}}}")},
		{Info, volume("projected: {sources: [{serviceAccountToken: {path: a}}, {configMap: {name: a}}, {downwardAPI: {items: []}}]}")},
		{High, volume("projected: {sources: [{serviceAccountToken: {path: a, audience: vault}}]}")},
		{High, volume("projected: {sources: [{podCertificate: {signerName: a}}]}")},
		{High, volume("projected: {sources: [{clusterTrustBundle: {name: a}}]}")},
		{High, volume("persistentVolumeClaim: {claimName: a}")},
		{Info, volume("persistentVolumeClaim: {claimName: demo-data}")},

		{High, volume("hostPath: {path: /a}") + " then" + mounted + "{name: v, mountPath: /v}"},
		{Info, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v} then\n" + podEdit + "containers.0.volumeMounts.1.readOnly true"},
		{High, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v, readOnly: true} then" + mounted + "{name: v, mountPath: /v}"},
		{High, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v, subPath: b} then" + mounted + "{name: v, mountPath: /v}"},
		{High, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v, subPath: b} then" + mounted + "{name: v, mountPath: /v, subPathExpr: $(B)}"},
		{High, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v} then" + mounted + "{name: v, mountPath: /v, mountPropagation: HostToContainer}"},
		{High, volume("hostPath: {path: /a/b}") + mounted + "{name: v, mountPath: /v} then\n" + volume("hostPath: {path: /a}")},
		{Info, volume("hostPath: {path: /a}") + mounted + "{name: v, mountPath: /v} then\n" + volume("hostPath: {path: /a/b}")},
		{High, volume("hostPath: {path: /a/b}") + mounted + "{name: v, mountPath: /v} then\n" + volume("hostPath: {path: /a/../a/bc}")},
		{High, volume("nfs: {server: a, path: /}") + mounted + "{name: v, mountPath: /v, readOnly: true} then" + mounted + "{name: v, mountPath: /v}"},
		{High, podEdit + "containers.0.volumeMounts.0.mountPropagation Bidirectional"},
	}.check(t)
}

// TestHostPorts changes the port and the address of a host port.
func TestHostPorts(t *testing.T) {
	port := func(rest string) string {
		return podEdit + "containers.0.ports [{containerPort: 1, hostPort: 80" + rest + "}]"
	}
	edits{
		{Medium, port("")},
		{Medium, port(", hostIP: 127.0.0.1") + " then\n" + port("")},
		{Medium, port(", hostIP: 127.0.0.1") + " then\n" + port(", hostIP: 10.0.0.1")},
		{Info, port(", hostIP: 0.0.0.0") + " then\n" + port(", hostIP: 127.0.0.1")},
		{Off, port("") + " then\n" + port(", protocol: TCP")},
		{Medium, port("") + " then\n" + port(", protocol: UDP")},
	}.check(t)
}

// TestSecretsOfOthers refers to Secrets of other operators in every way that the API allows.
func TestSecretsOfOthers(t *testing.T) {
	volume := func(source string) string { return podEdit + "volumes.2 {name: v, " + source + "}" }
	edits{
		{High, podEdit + "containers.0.envFrom [{secretRef: {name: a}}]"},
		{Medium, podEdit + "containers.0.envFrom [{secretRef: {name: demo-a}}]"},
		{High, podEdit + "containers.0.envFrom [{secretRef: {name: other}}]"},
		{High, podEdit + "containers.0.env.2 {name: A2, valueFrom: {secretKeyRef: {name: a, key: b}}}"},
		{High, podEdit + "initContainers [{name: i, image: a, env: [{name: A2, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]"},
		{High, podEdit + "ephemeralContainers [{name: i, image: a, env: [{name: A2, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]"},
		{High, volume("secret: {secretName: a}")},
		{High, volume("projected: {sources: [{secret: {name: a}}]}")},
		{Medium, podEdit + "imagePullSecrets [{name: a}]"},
		{High, "add {apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {csi: {driver: a, volumeHandle: a, nodeStageSecretRef: {name: a, namespace: argocd}}}}"},
		{High, "set ServiceAccount demo secrets [{name: a}]"},
		{High, "add {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: ops}, spec: {tls: [{secretName: a}]}}"},
		{High, "add {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: a, envFrom: [{secretRef: {name: a}}]}]}}}}"},
		{High, "add {apiVersion: demo.io/v1, kind: Widget, metadata: {name: a, namespace: ops}, spec: {jobs: [{name: j, pod: {spec: {containers: [{name: c, image: a, envFrom: [{secretRef: {name: a}}]}]}}}]}}"},
	}.check(t)
}

// TestSpellings changes fields that have several spellings.
func TestSpellings(t *testing.T) {
	const caps = podEdit + "containers.0.securityContext.capabilities "
	edits{
		{High, podEdit + "serviceAccount other\nunset Deployment demo spec.template.spec.serviceAccountName"},
		{Off, "unset Deployment demo spec.template.spec.serviceAccountName\n" + podEdit + "serviceAccount demo"},
		{High, "add {apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ops}, spec: {template: {spec: {serviceAccount: other, containers: [{name: c, image: a}]}}}}"},
		{High, "add {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a, namespace: ops}, spec: {template: {spec: {serviceAccount: other, containers: [{name: c, image: a}]}}}}"},
		{High, caps + "{drop: [ALL], add: [sys_admin]}"},
		{High, caps + "{drop: [ALL], add: [cap_sys_admin]}"},
		{High, caps + "{drop: [ALL], add: [Cap_Sys_Admin]}"},
		{Off, caps + "{drop: [all]}"},
		{Off, podEdit + "dnsPolicy ClusterFirst"},
		{Off, podEdit + "containers.0.terminationMessagePath /dev/termination-log"},
		{Off, "set Service demo spec.type ClusterIP"},
		{Off, "set Service demo spec.ports.0.protocol TCP"},
	}.check(t)
}
