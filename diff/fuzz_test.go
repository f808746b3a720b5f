package diff

import (
	"bytes"
	"testing"
)

// FuzzRead compares trees in which one file has arbitrary content.
func FuzzRead(f *testing.F) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules:\n- {apiGroups: [''], resources: [secrets], verbs: ['*']}\n"
	const pod = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: y}\nspec:\n  template: {spec: {hostNetwork: true, containers: [{name: c, image: 'quay.io/a/b:1', securityContext: {privileged: true}}]}}\n"
	const hook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: [{name: a.b.c, failurePolicy: Fail, rules: [{resources: ['*']}]}]\n"
	f.Add([]byte(role), []byte(pod))
	f.Add([]byte(pod), []byte(hook))
	f.Add([]byte(hook), []byte("kind: List\nitems: [1]\n---\n- a\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		side := func(name string, data []byte) Input {
			return Input{Name: name, Tree: []File{{Path: "operators/ns/pkg/x.yaml", Data: data}, {Path: "operators/ns/pkg/role.yaml", Data: []byte(role)}}}
		}
		b, a, err := Read(side("a", before), side("b", after))
		if err != nil {
			return
		}
		r, err := Compare(b, a, CompareOptions{Mirrors: []string{"docker.io"}})
		if err != nil {
			return
		}
		if _, err := indentJSON(r.Document()); err != nil {
			t.Error(err)
		}
		if _, err := HTML(r); err != nil {
			t.Error(err)
		}
		if bytes.Equal(before, after) && !r.Empty() {
			t.Errorf("a state differs from itself: %v", lines(r))
		}
	})
}
